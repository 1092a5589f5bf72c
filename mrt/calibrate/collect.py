"""Measures the ranges of a float model's values, by running it with every value exposed.

While the model runs on one sample, a second thread gathers statistics of the sample
before, and reads the next. Memory holds the values of two samples and one observer for
each value, however many samples there are. The thread gathers all statistics of a value before the next
value, while it is in the cache. That takes about as long as the model, which runs on
one thread, too; more threads would gain nothing unless the model ran on several samples
at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import onnx_ir as ir

from cvm.cluster import Cluster
from mrt.calibrate.clipped_values import ClippedValue, clipped_values
from mrt.calibrate.dropped_values import DroppedValues
from mrt.calibrate.exposed import in_groups, size_of
from mrt.calibrate.gathering import (
    Array,
    CalibrationCallback,
    Gathering,
    Values,
    ValueStatistics,
    naming_the_sample_without_range,
)
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, SessionSource, model_inputs
from mrt.calibrate.spread import spread
from mrt.calibrate.subsampling import Subsampling
from mrt.calibrate.table_indices import naming_the_sample
from mrt.errors import BadData
from mrt.graph.notes import shared_range_of
from mrt.graph.operators import CLIPS, SUMS_OF_PRODUCTS
from mrt.table.table import CalibrationOptions, CalibrationTable

RunProgress = Callable[[int, int], None]  # runs done, runs in all
Gather = Callable[[int, Sample, Values], None]  # index, inputs, values of nodes
MAX_EXPOSED_BYTES = 192 * 2**20
"""The most bytes of values that one run exposes.

A model with more is run once for each group of values.
"""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


def calibrate(
    model: ir.Model,
    samples: Samples,
    options: CalibrationOptions,
    *,
    model_sha256: str,
    callbacks: Sequence[CalibrationCallback] = (),
    progress: RunProgress | None = None,
    cluster: Cluster | None = None,
) -> CalibrationTable:
    """Measure the range of every float input and node output of the rewritten model.

    Each run takes one sample. With a cluster, its workers run the model.
    """
    if not len(samples):
        raise BadData(
            f"{samples.source}: holds no samples; expected at least one"
        )
    statistics = _statistics(model, options)
    digest = _InputDigest()
    clipped = clipped_values(model)
    dropped = DroppedValues.of(model)
    groups = _groups(model, clipped)
    for number, names in enumerate(groups):
        gathering = Gathering(
            statistics=statistics,
            callbacks=callbacks,
            subsampling=Subsampling.of(len(samples)),
            only_clipped=_only_clipped(model),
            clipped=clipped,
            dropped=dropped,
            source=samples.source,
            with_inputs=number == 0,
        )
        stream = digest.added(samples) if number == 0 else iter(samples)
        session = SessionSource.of(model, names)
        if cluster is None:
            counts = _runs(FloatSession(session), stream, gathering.gather)
        else:
            empty = _statistics(model, options, of_block=True)
            block = gathering.for_block(empty)
            counts = spread(cluster, session, stream, block, gathering.merge)
        before, total = number * len(samples), len(groups) * len(samples)
        with (
            naming_the_sample(samples),
            naming_the_sample_without_range(samples, model),
        ):
            _make_runs(counts, before, total, progress)
    return CalibrationTable(
        model_sha256=model_sha256,
        options=options,
        samples=len(samples),
        data_sha256=digest.hexdigest(),
        ranges={
            name: of_value.observer.range()
            for name, of_value in statistics.items()
        },
        channel_means=_channel_means(statistics),
    )


def _make_runs(
    counts: Generator[int],
    before: int,
    total: int,
    progress: RunProgress | None,
) -> None:
    """Make the runs of one group of values, and report the progress after each."""
    with closing(counts) as runs:
        for done in runs:
            if progress is not None:
                progress(before + done, total)


def _channel_means(
    statistics: Mapping[str, ValueStatistics],
) -> dict[str, tuple[float, ...]]:
    """Return the means of channels, of the values that have them."""
    means = {
        name: of_value.channel_means for name, of_value in statistics.items()
    }
    return {
        name: numbers for name, numbers in means.items() if numbers is not None
    }


class _InputDigest:
    """The digest of all inputs, in the order in which they are read."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def added(self, samples: Samples) -> Iterator[Sample]:
        """Yield the samples, and add each one's inputs."""
        for sample in samples:
            for array in sample.values():
                numbers = np.ascontiguousarray(array, "<f4")
                self._digest.update(numbers.data)
            yield sample

    def hexdigest(self) -> str:
        """The digest so far."""
        return self._digest.hexdigest()


def _runs(
    session: FloatSession, samples: Iterable[Sample], gather: Gather
) -> Generator[int]:
    """Run the model on each sample, in order, and yield the number of samples gathered.

    Another thread gathers, one sample behind, and then reads the next but one. Memory
    holds two samples' values: each overwrites those of the last but one.
    """
    stream = iter(samples)

    def gather_and_read(
        index: int, sample: Sample, values: Values
    ) -> Sample | None:
        gather(index, sample, values)
        return next(stream, None)

    with ThreadPoolExecutor(1) as thread:
        index, sample = 0, next(stream, None)
        values: dict[str, Array] | None = None
        done: dict[str, Array] | None = None
        following = thread.submit(next, stream, None)
        while sample is not None:
            values, done = session.run(sample, into=done), values
            next_sample = following.result()
            if index:
                yield index
            following = thread.submit(gather_and_read, index, sample, values)
            index, sample = index + 1, next_sample
        following.result()
        if index:
            yield index


def _computed_floats(model: ir.Model) -> list[ir.Value]:
    """Return the float values that nodes compute, in the order of the graph."""
    values = [value for node in model.graph for value in node.outputs]
    return [value for value in values if value.name and value.dtype in _FLOATS]


def _statistics(
    model: ir.Model, options: CalibrationOptions, *, of_block: bool = False
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
            of_block=of_block,
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
        size_of(value) // max(size_of(reader.outputs[0]), 1)
        for reader in readers
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
    values = [
        value for value in _computed_floats(model) if value.name not in derived
    ]
    return in_groups(values, MAX_EXPOSED_BYTES)
