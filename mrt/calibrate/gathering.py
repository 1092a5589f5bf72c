"""Gathers the statistics of values, sample by sample or block by block of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.clipped_values import ClippedValue
from mrt.calibrate.dropped_values import DroppedValues
from mrt.calibrate.infinite_masks import advice_on_mask
from mrt.calibrate.observed_tensor import ClippedTensor, ObservedTensor
from mrt.calibrate.observers import NO_SUCH_NUMBERS, Observer
from mrt.calibrate.ordered_sum import OrderedSum
from mrt.calibrate.samples import SYNTHETIC, Sample, Samples
from mrt.calibrate.subsampling import Subsampling
from mrt.errors import BadData
from mrt.table.table import CalibrationOptions

Array = npt.NDArray[Any]
Values = Mapping[str, Array]


class WithoutRange(BadData):
    """A value that has no range for a sample; `index` is the sample's, among those that are gathered."""

    index: int

    def __init__(self, message: str, name: str, advice: str) -> None:
        super().__init__(message)
        self.name, self.advice = name, advice


@contextmanager
def naming_the_sample_without_range(
    samples: Samples, model: ir.Model
) -> Iterator[None]:
    """Name the sample that has no range as its file does, of which these may be a few, and say what to do."""
    try:
        yield
    except WithoutRange as problem:
        where = f"{samples.source}, {samples.name_of(problem.index)}"
        advice = advice_on_mask(model, problem.name) or problem.advice
        raise BadData(f"{where}: {problem}; {advice}") from None


class ValueStatistics:
    """The entries of a table for one value: its range and, on request, the mean of each channel.

    A channel is an index of axis 1. Statistics `of_block` are to be merged into those of
    all samples.
    """

    def __init__(
        self,
        options: CalibrationOptions,
        *,
        by_channel: bool = False,
        summed: int = 1,
        of_block: bool = False,
    ) -> None:
        self.observer = Observer(options, summed)
        self._by_channel = by_channel
        self._sums = OrderedSum(of_block=of_block)
        self._count = 0  # the elements of each channel

    def update(self, tensor: ObservedTensor, subsample: Array) -> None:
        """Add one more sample: all numbers to the range, `subsample` of them to the histogram."""
        if subsample.size:
            self.observer.count(subsample, *tensor.range)
        if self._by_channel and tensor.subsample.ndim > 1:
            self._sums.add(tensor.sums)
            self._count += tensor.subsample.size // tensor.subsample.shape[1]

    def merge(self, block: ValueStatistics) -> None:
        """Add the samples of a block, as if they had been added here."""
        self.observer.merge(block.observer)
        self._sums.merge(block._sums)
        self._count += block._count

    @property
    def channel_means(self) -> tuple[float, ...] | None:
        """The means, if they were requested."""
        total = self._sums.total
        if total is None:
            return None
        return tuple((total / self._count + 0.0).tolist())


class CalibrationCallback(Protocol):
    """Gathers statistics besides those of a table, in the same run of the float model."""

    def observe(
        self, index: int, sample: Sample, name: str, seen: ObservedTensor
    ) -> None:
        """Take one value that a node computed for a sample."""

    def for_block(self) -> Self:
        """Return an empty callback for some of the samples, on this or on another machine."""

    def merge(self, block: Self) -> None:
        """Take what the callback of a block has gathered, as if its samples had come here."""


@dataclass(frozen=True)
class Gathering:
    """The statistics to which a sample's values are added."""

    statistics: Mapping[str, ValueStatistics]
    callbacks: Sequence[CalibrationCallback]
    subsampling: Subsampling
    only_clipped: frozenset[str]
    clipped: Mapping[str, Sequence[ClippedValue]]
    dropped: DroppedValues
    source: str
    with_inputs: bool  # false when the inputs were gathered with an earlier group of values

    def for_block(self, statistics: Mapping[str, ValueStatistics]) -> Gathering:
        """Return what gathers the same from a block of the samples, with these empty statistics."""
        callbacks = [callback.for_block() for callback in self.callbacks]
        return replace(self, statistics=statistics, callbacks=callbacks)

    def merge(self, block: Gathering) -> None:
        """Add what was gathered of a block of samples."""
        merged: set[int] = set()
        for name, of_block in block.statistics.items():
            if id(of_block) not in merged:  # values may share one object
                merged.add(id(of_block))
                self.statistics[name].merge(of_block)
        for callback, other in zip(
            self.callbacks, block.callbacks, strict=True
        ):
            callback.merge(other)

    def gather(self, index: int, sample: Sample, values: Values) -> None:
        """Add a sample and the values that nodes computed for it."""
        try:
            self._gather(index, sample, values)
        except WithoutRange as problem:
            problem.index = index
            raise

    def _gather(self, index: int, sample: Sample, values: Values) -> None:
        if self.with_inputs:
            self._gather_inputs(sample)
        for name, computed in values.items():
            array = self.dropped.finite(name, computed)
            tensor = ObservedTensor(
                array, self.subsampling.subsample(array, index)
            )
            observed = [(name, tensor)]
            for value in self.clipped.get(name, ()):
                clipped = ClippedTensor(tensor, value.low, value.high)
                observed.append((value.name, clipped))
            for value_name, value_tensor in observed:
                subsample = self._subsample(value_name, value_tensor, index)
                self._update(value_name, value_tensor, subsample, "value")
                for callback in self.callbacks:
                    callback.observe(index, sample, value_name, value_tensor)

    def _gather_inputs(self, sample: Sample) -> None:
        for name, array in sample.items():
            self._update(name, ObservedTensor(array, array), array, "input")

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
            raise WithoutRange(
                f"the model's {what} '{name}' has {problem}",
                name,
                self._advice,
            ) from None

    @property
    def _advice(self) -> str:
        if SYNTHETIC in self.source:
            return "noise may be no input that this model can take: give --data"
        return NO_SUCH_NUMBERS
