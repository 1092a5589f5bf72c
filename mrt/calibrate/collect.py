"""Runs the float model over samples, every value known, while another thread looks at what the last gave.

Memory holds the values of two samples and one observer for each value, however many samples there are. One thread looks
at one value after another, and does all that is to be done with it while it is in the cache. It takes about as long as the
model, which has one thread, too; more threads would gain nothing unless the model ran on several samples at once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.clipped_values import CUTS, Cut, cuts
from mrt.calibrate.observed_tensor import Clipped, ObservedTensor
from mrt.calibrate.observers import Observer
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.calibrate.subsampling import Subsampling
from mrt.errors import BadData
from mrt.graph.notes import ONE_RANGE
from mrt.table.table import CalibrationOptions, CalibrationTable

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]  # runs done, runs in all
Values = Mapping[str, Array]
Look = Callable[[int, Sample, Values], None]  # at a sample and what nodes gave for it
MAX_EXPOSED_BYTES = (
    256 * 2**20
)  # values exposed by one run; a model with more is run once for each group of values
SUMS_OF_PRODUCTS = ("Conv", "ConvTranspose", "Gemm")
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


class Watch:
    """What is gathered about one value: its range and, where wanted, the mean of each index of axis 1."""

    def __init__(
        self, options: CalibrationOptions, *, by_channel: bool = False, summed: int = 1
    ) -> None:
        self.observer = Observer(options, summed)
        self._by_channel = by_channel
        self._sums: npt.NDArray[np.float64] | None = None
        self._count = 0  # elements of each channel

    def update(self, seen: ObservedTensor, few: Array) -> None:
        """See the value for one more sample: all of it for the ends of its range, `few` of it for its histogram."""
        if few.size:
            self.observer.count(few, *seen.range)
        if self._by_channel and seen.few.ndim > 1:
            self._sums = seen.sums if self._sums is None else self._sums + seen.sums
            self._count += seen.few.size // seen.few.shape[1]

    @property
    def channel_means(self) -> tuple[float, ...] | None:
        """The means, if they were wanted."""
        return (
            None
            if self._sums is None
            else tuple((self._sums / self._count + 0.0).tolist())
        )


class CalibrationCallback(Protocol):
    """Wants to know more of the values than calibration does, and sees them on the same occasion."""

    def see(self, index: int, sample: Sample, name: str, seen: ObservedTensor) -> None:
        """A value that a node gives for a sample."""


def calibrate(
    model: ir.Model,
    samples: Samples,
    options: CalibrationOptions,
    *,
    model_sha256: str,
    callbacks: Sequence[CalibrationCallback] = (),
    progress: Progress | None = None,
) -> CalibrationTable:
    """The range of every float input and node output of the rewritten model over the samples, one sample a run."""
    if not len(samples):
        raise BadData(f"{samples.source}: holds no samples; expected at least one")
    watches = _watches(model, options)
    digest = hashlib.sha256()
    subsampling, cut_off, clipped = (
        Subsampling.of(len(samples)),
        _cut_off(model),
        cuts(model),
    )
    groups = _groups(model, clipped)
    for number, names in enumerate(groups):
        of_inputs = digest if number == 0 else None
        gathering = _Gathering(
            watches, callbacks, subsampling, cut_off, clipped, samples.source, of_inputs
        )
        with closing(_runs(FloatSession(model, names), samples, gathering.see)) as runs:
            for done in runs:
                if progress is not None:
                    progress(number * len(samples) + done, len(groups) * len(samples))
    means = {name: watch.channel_means for name, watch in watches.items()}
    return CalibrationTable(
        model_sha256=model_sha256,
        options=options,
        samples=len(samples),
        data_sha256=digest.hexdigest(),
        ranges={name: watch.observer.range() for name, watch in watches.items()},
        channel_means={name: item for name, item in means.items() if item is not None},
    )


@dataclass(frozen=True)
class _Gathering:
    """All that is to be known of values."""

    watches: Mapping[str, Watch]
    callbacks: Sequence[CalibrationCallback]
    subsampling: Subsampling
    cut_off: frozenset[str]
    clipped: Mapping[str, Sequence[Cut]]
    source: str
    digest: Any  # of the inputs, unless they have been seen already

    def see(self, index: int, sample: Sample, values: Values) -> None:
        """What nodes give for a sample, and the sample."""
        where = f"{self.source}, sample {index}: the model's"
        if self.digest is not None:
            for name, array in sample.items():
                self.digest.update(np.ascontiguousarray(array, "<f4").data)
                self._watch(name, ObservedTensor(array, array), array, f"{where} input")
        for name, array in values.items():
            seen = ObservedTensor(array, self.subsampling.few(array, index))
            clipped = (
                (cut.name, Clipped(seen, cut.low, cut.high))
                for cut in self.clipped.get(name, ())
            )
            for given, item in ((name, seen), *clipped):
                few = (
                    self.subsampling.fewer(item.values, index)
                    if given in self.cut_off
                    else item.few
                )
                self._watch(given, item, few, f"{where} value")
                for callback in self.callbacks:
                    callback.see(index, sample, given, item)

    def _watch(self, name: str, seen: ObservedTensor, few: Array, what: str) -> None:
        try:
            self.watches[name].update(seen, few)
        except BadData as problem:
            raise BadData(
                f"{what} '{name}' has {problem}; leave the sample out or mend the model"
            ) from None


def _runs(session: FloatSession, samples: Samples, look: Look) -> Generator[int]:
    """Run the model on each sample, in order, and say how many have been seen: by another thread, one behind.

    Two samples' values are all the memory that it takes: each is written over those of the last but one.
    """
    with ThreadPoolExecutor(1) as thread:
        seeing: Future[None] | None = None
        values: dict[str, Array] | None = None
        before: dict[str, Array] | None = None  # seen already
        for index, sample in enumerate(samples):
            values, before = session.run(sample, into=before), values
            if seeing is not None:
                seeing.result()
                yield index
            seeing = thread.submit(look, index, sample, values)
        if seeing is not None:
            seeing.result()
            yield len(samples)


def _produced(model: ir.Model) -> list[ir.Value]:
    """The float values that nodes give, in the order of the graph."""
    return [
        value
        for node in model.graph
        for value in node.outputs
        if value.name and value.dtype in _FLOATS
    ]


def _watches(model: ir.Model, options: CalibrationOptions) -> dict[str, Watch]:
    groups: dict[str, list[ir.Value]] = {}
    for value in (*model_inputs(model), *_produced(model)):
        groups.setdefault(
            value.metadata_props.get(ONE_RANGE, f"={value.name}"), []
        ).append(value)
    watches: dict[str, Watch] = {}
    for values in groups.values():
        by_channel, summed = (
            any(map(_feeds_a_sum_of_products, values)),
            min(map(_summed_together, values)),
        )
        watch = Watch(options, by_channel=by_channel, summed=summed)
        watches |= dict.fromkeys((str(value.name) for value in values), watch)
    return watches


def _feeds_a_sum_of_products(value: ir.Value) -> bool:
    return any(
        use.node.op_type in SUMS_OF_PRODUCTS and use.idx == 0 for use in value.uses()
    )


def _summed_together(value: ir.Value) -> int:
    """How many numbers of the value each of its readers adds to one, at the least; 1 unless all do nothing else.

    Of what a layer gives, that is: squares, of which one may be all that matters of some sums and nothing of others, are
    clipped like any other value.
    """
    node = value.producer()
    if (
        node is None
        or node.op_type not in (*CUTS, *SUMS_OF_PRODUCTS, "Add")
        or value.is_graph_output()
    ):
        return 1
    if not value.uses() or any(use.node.op_type != "ReduceSum" for use in value.uses()):
        return 1
    sums = (use.node.outputs[0] for use in value.uses())
    return min(_size(value) // max(_size(output), 1) for output in sums)


def _cut_off(model: ir.Model) -> frozenset[str]:
    """The values that nothing but a Relu or a Clip reads: what is then quantised is what that leaves of them."""
    found = set()
    for value in _produced(model):
        uses = [use.node.op_type for use in value.uses()]
        if len(uses) == 1 and uses[0] in CUTS and not value.is_graph_output():
            found.add(str(value.name))
    return frozenset(found)


def _groups(model: ir.Model, clipped: Mapping[str, Sequence[Cut]]) -> list[list[str]]:
    """Names of the values that the model is asked for, cut where a run would expose too much at once."""
    groups: list[list[str]] = [[]]
    exposed, known = 0, {cut.name for some in clipped.values() for cut in some}
    for value in (value for value in _produced(model) if value.name not in known):
        size = 4 * _size(value)
        if groups[-1] and exposed + size > MAX_EXPOSED_BYTES:
            groups.append([])
            exposed = 0
        groups[-1].append(str(value.name))
        exposed += size
    return groups


def _size(value: ir.Value) -> int:
    """How many numbers the value holds; a dimension that is not known counts as 1."""
    return math.prod(
        []
        if value.shape is None
        else [size for size in value.shape if isinstance(size, int)]
    )
