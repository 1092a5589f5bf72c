"""Runs the float model over samples, every value exposed, while other threads look at what the last gave.

Memory holds the values of two samples and one observer for each value, however many samples there are. Each value has
one thread at a time, that does all that is to be done with it while it is in the cache; so nothing depends on how many
threads there are.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.observers import Observer
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.calibrate.table import CalibrationOptions, CalibrationTable
from mrt.calibrate.thinning import Thinning
from mrt.errors import BadData
from mrt.words import ONE_RANGE

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]  # runs done, runs in all
Values = Mapping[str, Array]
Look = Callable[[Sequence[str], int, Sample, Values], None]  # as `_Gathering.see`
Seen = tuple[int, Sample]  # how many samples have been seen, the last of them
MAX_EXPOSED_BYTES = 256 * 2**20  # values exposed by one run; a model with more is run once for each group of values
SHARES = 16  # parts of about equal size, of the values of one run, that threads take one after another
MOST_THREADS = 8
SUMS_OF_PRODUCTS = ("Conv", "ConvTranspose", "Gemm")
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


class Watch:
    """What is gathered about one value: its range and, where wanted, the mean of each index of axis 1."""

    def __init__(self, options: CalibrationOptions, *, by_channel: bool = False) -> None:
        self.observer = Observer(options)
        self._by_channel = by_channel
        self._sums: npt.NDArray[np.float64] | None = None
        self._count = 0  # elements of each channel

    def update(self, values: Array, few: Array) -> None:
        """See the value for one more sample: all of it for the ends of its range; for the rest `few` of it, thinned."""
        self.observer.update(values, few)
        if self._by_channel and few.ndim > 1:
            sums = few.sum(axis=tuple(axis for axis in range(few.ndim) if axis != 1), dtype=np.float64)
            self._sums = sums if self._sums is None else self._sums + sums
            self._count += few.size // few.shape[1]

    @property
    def channel_means(self) -> tuple[float, ...] | None:
        """The means, if they were wanted."""
        return None if self._sums is None else tuple((self._sums / self._count + 0.0).tolist())


class Onlooker(Protocol):
    """Wants to know more of the values than calibration does, and sees them on the same occasion."""

    def see(self, index: int, sample: Sample, name: str, values: Array, few: Array) -> None:
        """A value that a node gives for a sample, and the same thinned.

        The arrays are written over afterwards: what is to be kept of them is copied. Samples come in order; the values of
        one come in any, from several threads at once.
        """


def calibrate(
    model: ir.Model,
    samples: Samples,
    options: CalibrationOptions,
    *,
    model_sha256: str,
    onlookers: Sequence[Onlooker] = (),
    progress: Progress | None = None,
) -> CalibrationTable:
    """The range of every float input and node output of the rewritten model over the samples, one sample a run."""
    if not len(samples):
        raise BadData(f"{samples.source}: holds no samples; expected at least one")
    watches = _watches(model, options)
    digest = hashlib.sha256()
    gathering = _Gathering(watches, onlookers, Thinning.of(len(samples)), samples.source)
    groups = _groups(model)
    for number, names in enumerate(groups):
        inputs = [str(value.name) for value in model_inputs(model)] if number == 0 else []
        shares = _shares([*inputs, *names], watches, model)
        with closing(_runs(FloatSession(model, names), samples, shares, gathering.see)) as runs:
            for done, sample in runs:
                for name in inputs:
                    digest.update(np.ascontiguousarray(sample[name], "<f4").data)
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
    onlookers: Sequence[Onlooker]
    thinning: Thinning
    source: str

    def see(self, names: Sequence[str], index: int, sample: Sample, values: Values) -> None:
        """Some values of one sample, one after another: inputs, and what nodes give."""
        for name in names:
            if name in sample:
                self._watch(name, index, sample[name], sample[name])
                continue
            few = self.thinning.few(values[name], index)
            self._watch(name, index, values[name], few)
            for onlooker in self.onlookers:
                onlooker.see(index, sample, name, values[name], few)

    def _watch(self, name: str, index: int, values: Array, few: Array) -> None:
        try:
            self.watches[name].update(values, few)
        except BadData as problem:
            raise BadData(
                f"{self.source}, sample {index}: the model's value '{name}' has {problem}"
                "; leave the sample out or mend the model"
            ) from None


def _runs(session: FloatSession, samples: Samples, shares: Sequence[Sequence[str]], look: Look) -> Generator[Seen]:
    """Run the model on each sample, in order, and say how many have been seen, and the last: by threads, one behind.

    Two samples' values are all the memory that it takes: each is written over those of the last but one.
    """
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_THREADS)) as threads:
        seeing: list[Future[None]] = []
        values: dict[str, Array] | None = None
        before: dict[str, Array] | None = None  # seen already
        last: Sample = {}
        for index, sample in enumerate(samples):
            values, before = session.run(sample, into=before), values
            if _all_done(seeing):
                yield index, last
            seeing = [threads.submit(look, names, index, sample, values) for names in shares]
            last = sample
        if _all_done(seeing):
            yield len(samples), last


def _all_done(seeing: Sequence[Future[None]]) -> bool:
    """Wait for all; whether there were any. The first that failed, in order, says why."""
    wait(seeing)
    for item in seeing:
        item.result()
    return bool(seeing)


def _produced(model: ir.Model) -> list[ir.Value]:
    """The float values that nodes give, in the order of the graph."""
    return [value for node in model.graph for value in node.outputs if value.name and value.dtype in _FLOATS]


def _watches(model: ir.Model, options: CalibrationOptions) -> dict[str, Watch]:
    groups: dict[str, list[ir.Value]] = {}
    for value in (*model_inputs(model), *_produced(model)):
        groups.setdefault(value.metadata_props.get(ONE_RANGE, f"={value.name}"), []).append(value)
    watches: dict[str, Watch] = {}
    for values in groups.values():
        watch = Watch(options, by_channel=any(map(_feeds_a_sum_of_products, values)))
        watches |= dict.fromkeys((str(value.name) for value in values), watch)
    return watches


def _feeds_a_sum_of_products(value: ir.Value) -> bool:
    return any(use.node.op_type in SUMS_OF_PRODUCTS and use.idx == 0 for use in value.uses())


def _groups(model: ir.Model) -> list[list[str]]:
    """Names of the produced values, cut where a run would expose too much at once."""
    groups: list[list[str]] = [[]]
    exposed = 0
    for value in _produced(model):
        size = _bytes(value)
        if groups[-1] and exposed + size > MAX_EXPOSED_BYTES:
            groups.append([])
            exposed = 0
        groups[-1].append(str(value.name))
        exposed += size
    return groups


def _shares(names: Sequence[str], watches: Mapping[str, Watch], model: ir.Model) -> list[list[str]]:
    """The names in `SHARES` parts or so of about equal size; those that have a watch together stay together, in order."""
    sizes = {str(value.name): _bytes(value) for value in (*model_inputs(model), *_produced(model))}
    together: dict[int, list[str]] = {}
    for name in names:
        together.setdefault(id(watches[name]), []).append(name)
    shares: list[list[str]] = [[]]
    most, filled = sum(sizes[name] for name in names) / SHARES, 0
    for some in together.values():
        if filled >= most:
            shares.append([])
            filled = 0
        shares[-1].extend(some)
        filled += sum(sizes[name] for name in some)
    return shares


def _bytes(value: ir.Value) -> int:
    """The value's size; a dimension that is not known counts as 1."""
    sizes = [] if value.shape is None else [size for size in value.shape if isinstance(size, int)]
    return 4 * math.prod(sizes)
