"""Measures the ranges of a float model's values, by running it with every value exposed.

While the model runs on one sample, a second thread gathers statistics of the sample
before. Memory holds the values of two samples and one observer for each value, however
many samples there are. The thread gathers all statistics of a value before the next
value, while it is in the cache. That takes about as long as the model, which runs on
one thread, too; more threads would gain nothing unless the model ran on several samples
at once.
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

from mrt.calibrate.clipped_values import ClippedValue, clipped_values
from mrt.calibrate.observed_tensor import ClippedTensor, ObservedTensor
from mrt.calibrate.observers import Observer
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.calibrate.subsampling import Subsampling
from mrt.errors import BadData
from mrt.graph.notes import shared_range_of
from mrt.graph.operators import CLIPS, SUMS_OF_PRODUCTS
from mrt.table.table import CalibrationOptions, CalibrationTable

Array = npt.NDArray[Any]
RunProgress = Callable[[int, int], None]  # runs done, runs in all
Values = Mapping[str, Array]
Gather = Callable[[int, Sample, Values], None]  # index, inputs, values of nodes
MAX_EXPOSED_BYTES = 256 * 2**20
"""The most bytes of values that one run exposes.

A model with more is run once for each group of values.
"""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


class ValueStatistics:
    """The entries of a table for one value: its range and, on request, the mean of each channel.

    A channel is an index of axis 1.
    """

    def __init__(
        self,
        options: CalibrationOptions,
        *,
        by_channel: bool = False,
        summed: int = 1,
    ) -> None:
        self.observer = Observer(options, summed)
        self._by_channel = by_channel
        self._sums: npt.NDArray[np.float64] | None = None
        self._count = 0  # the elements of each channel

    def update(self, tensor: ObservedTensor, subsample: Array) -> None:
        """Add one more sample: all numbers to the range, `subsample` of them to the histogram."""
        if subsample.size:
            self.observer.count(subsample, *tensor.range)
        if self._by_channel and tensor.subsample.ndim > 1:
            sums = tensor.sums
            self._sums = sums if self._sums is None else self._sums + sums
            self._count += tensor.subsample.size // tensor.subsample.shape[1]

    @property
    def channel_means(self) -> tuple[float, ...] | None:
        """The means, if they were requested."""
        if self._sums is None:
            return None
        return tuple((self._sums / self._count + 0.0).tolist())


class CalibrationCallback(Protocol):
    """Gathers statistics besides those of a table, in the same run of the float model."""

    def observe(
        self, index: int, sample: Sample, name: str, seen: ObservedTensor
    ) -> None:
        """Take one value that a node computed for a sample."""


def calibrate(
    model: ir.Model,
    samples: Samples,
    options: CalibrationOptions,
    *,
    model_sha256: str,
    callbacks: Sequence[CalibrationCallback] = (),
    progress: RunProgress | None = None,
) -> CalibrationTable:
    """Measure the range of every float input and node output of the rewritten model.

    Each run takes one sample.
    """
    if not len(samples):
        raise BadData(
            f"{samples.source}: holds no samples; expected at least one"
        )
    statistics = _statistics(model, options)
    digest = hashlib.sha256()
    clipped = clipped_values(model)
    groups = _groups(model, clipped)
    for number, names in enumerate(groups):
        gathering = _Gathering(
            statistics=statistics,
            callbacks=callbacks,
            subsampling=Subsampling.of(len(samples)),
            only_clipped=_only_clipped(model),
            clipped=clipped,
            source=samples.source,
            digest=digest if number == 0 else None,
        )
        session = FloatSession(model, names)
        with closing(_runs(session, samples, gathering.gather)) as runs:
            for done in runs:
                if progress is not None:
                    total = len(groups) * len(samples)
                    progress(number * len(samples) + done, total)
    ranges = {name: item.observer.range() for name, item in statistics.items()}
    means = {name: item.channel_means for name, item in statistics.items()}
    return CalibrationTable(
        model_sha256=model_sha256,
        options=options,
        samples=len(samples),
        data_sha256=digest.hexdigest(),
        ranges=ranges,
        channel_means={
            name: numbers
            for name, numbers in means.items()
            if numbers is not None
        },
    )


@dataclass(frozen=True)
class _Gathering:
    """The statistics to which a sample's values are added."""

    statistics: Mapping[str, ValueStatistics]
    callbacks: Sequence[CalibrationCallback]
    subsampling: Subsampling
    only_clipped: frozenset[str]
    clipped: Mapping[str, Sequence[ClippedValue]]
    source: str
    digest: Any  # the digest of the inputs; None when an earlier group of values has added them

    def gather(self, index: int, sample: Sample, values: Values) -> None:
        """Add a sample and the values that nodes computed for it."""
        where = f"{self.source}, sample {index}: the model's"
        if self.digest is not None:
            self._gather_inputs(sample, f"{where} input")
        for name, array in values.items():
            tensor = ObservedTensor(
                array, self.subsampling.subsample(array, index)
            )
            observed = [(name, tensor)]
            for value in self.clipped.get(name, ()):
                clipped = ClippedTensor(tensor, value.low, value.high)
                observed.append((value.name, clipped))
            for value_name, value_tensor in observed:
                subsample = self._subsample(value_name, value_tensor, index)
                self._update(
                    value_name, value_tensor, subsample, f"{where} value"
                )
                for callback in self.callbacks:
                    callback.observe(index, sample, value_name, value_tensor)

    def _gather_inputs(self, sample: Sample, where: str) -> None:
        for name, array in sample.items():
            self.digest.update(np.ascontiguousarray(array, "<f4").data)
            self._update(name, ObservedTensor(array, array), array, where)

    def _subsample(
        self, name: str, tensor: ObservedTensor, index: int
    ) -> Array:
        """Return the numbers for the histogram.

        A value that is then clipped has a coarse subsample, because its range has
        little effect.
        """
        if name in self.only_clipped:
            return self.subsampling.coarse_subsample(tensor.values, index)
        return tensor.subsample

    def _update(
        self, name: str, tensor: ObservedTensor, subsample: Array, what: str
    ) -> None:
        try:
            self.statistics[name].update(tensor, subsample)
        except BadData as problem:
            raise BadData(
                f"{what} '{name}' has {problem}; leave the sample out or mend the model"
            ) from None


def _runs(
    session: FloatSession, samples: Samples, gather: Gather
) -> Generator[int]:
    """Run the model on each sample, in order, and yield the number of samples gathered.

    Another thread gathers, one sample behind. Memory holds two samples' values: each
    overwrites those of the last but one.
    """
    with ThreadPoolExecutor(1) as thread:
        gathering: Future[None] | None = None
        values: dict[str, Array] | None = None
        done: dict[str, Array] | None = None
        for index, sample in enumerate(samples):
            values, done = session.run(sample, into=done), values
            if gathering is not None:
                gathering.result()
                yield index
            gathering = thread.submit(gather, index, sample, values)
        if gathering is not None:
            gathering.result()
            yield len(samples)


def _computed_floats(model: ir.Model) -> list[ir.Value]:
    """Return the float values that nodes compute, in the order of the graph."""
    values = [value for node in model.graph for value in node.outputs]
    return [value for value in values if value.name and value.dtype in _FLOATS]


def _statistics(
    model: ir.Model, options: CalibrationOptions
) -> dict[str, ValueStatistics]:
    """Return statistics by name of a value; values of one shared range have the same object."""
    groups: dict[str, list[ir.Value]] = {}
    for value in (*model_inputs(model), *_computed_floats(model)):
        key = shared_range_of(value) or f"={value.name}"
        groups.setdefault(key, []).append(value)
    statistics: dict[str, ValueStatistics] = {}
    for values in groups.values():
        shared = ValueStatistics(
            options,
            by_channel=any(map(_feeds_a_sum_of_products, values)),
            summed=min(map(_summed_together, values)),
        )
        for value in values:
            statistics[str(value.name)] = shared
    return statistics


def _feeds_a_sum_of_products(value: ir.Value) -> bool:
    return any(
        use.node.op_type in SUMS_OF_PRODUCTS and use.idx == 0
        for use in value.uses()
    )


def _summed_together(value: ir.Value) -> int:
    """Return the least count of numbers of the value that its readers add up.

    It is 1 unless every reader is a ReduceSum and the value is the output of a layer.
    Squares, for example, are clipped like any other value: one of them may decide some
    sums and have no effect on others.
    """
    node = value.producer()
    if node is None or value.is_graph_output():
        return 1
    if node.op_type not in (*CLIPS, *SUMS_OF_PRODUCTS, "Add"):
        return 1
    readers = [use.node for use in value.uses()]
    if not readers or any(reader.op_type != "ReduceSum" for reader in readers):
        return 1
    counts = [
        _size(value) // max(_size(reader.outputs[0]), 1) for reader in readers
    ]
    return min(counts)


def _only_clipped(model: ir.Model) -> frozenset[str]:
    """Return the values whose only reader is a Relu or Clip, so that its output is quantized."""
    names = set()
    for value in _computed_floats(model):
        readers = [use.node.op_type for use in value.uses()]
        if (
            len(readers) == 1
            and readers[0] in CLIPS
            and not value.is_graph_output()
        ):
            names.add(str(value.name))
    return frozenset(names)


def _groups(
    model: ir.Model, clipped: Mapping[str, Sequence[ClippedValue]]
) -> list[list[str]]:
    """Return the names of the values to expose, in groups that one run can expose."""
    derived = {value.name for values in clipped.values() for value in values}
    groups: list[list[str]] = [[]]
    exposed = 0
    for value in _computed_floats(model):
        if value.name in derived:
            continue
        size = 4 * _size(value)
        if groups[-1] and exposed + size > MAX_EXPOSED_BYTES:
            groups.append([])
            exposed = 0
        groups[-1].append(str(value.name))
        exposed += size
    return groups


def _size(value: ir.Value) -> int:
    """Return the count of numbers in the value; an unknown dimension counts as 1."""
    if value.shape is None:
        return 1
    return math.prod(size for size in value.shape if isinstance(size, int))
