"""Statistics gathered block by block are those of all samples, to the last bit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.ordered_sum import OrderedSum
from mrt.calibrate.sample_checks import SampleChecks
from mrt.calibrate.samples import Samples, synthetic_samples
from mrt.errors import BadData
from mrt.refine import FloatStatistics, RefineOptions
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.table.table import OBSERVERS, CalibrationOptions, CalibrationTable
from tests.support.clusters import Backwards
from tests.support.float_models import FloatModel

SAMPLES = 21  # a few blocks, of which the last is smaller


def network() -> tuple[FloatModel, ir.Model]:
    rng, model = np.random.default_rng(5), FloatModel(x=(1, 3, 8, 8))
    y = model.conv("x", rng.normal(size=(5, 3, 3, 3)), rng.normal(size=5))
    y = model.add("Relu", y, name="inner")
    y = model.conv(y, rng.normal(size=(4, 5, 1, 1)), rng.normal(size=4))
    model.add("Relu", y, name="out")
    return model, ir.from_proto(model.proto("out"))


def gathered(
    cluster: Backwards | None, observer: str
) -> tuple[CalibrationTable, FloatStatistics, SampleChecks, list[int]]:
    model, graph = network()
    samples = synthetic_samples(model.inputs, SAMPLES, 3)
    samples = replace(samples, labels=tuple(range(SAMPLES)))
    statistics = FloatStatistics(graph, RefineOptions(), SAMPLES)
    checks, done = SampleChecks(samples, "out"), []
    table = calibrate(
        graph,
        samples,
        CalibrationOptions(observer),
        model_sha256="0" * 64,
        callbacks=[statistics, checks],
        progress=lambda count, total: done.append(count),
        cluster=cluster,
    )
    return table, statistics, checks, done


def channels_of(statistics: FloatStatistics) -> dict[str, list[bytes]]:
    return {
        name: [
            np.asarray(numbers, np.float64).tobytes()
            for half in halves
            for numbers in (
                half.minimum, half.maximum, half.sums, half.squares,
                half.counts, half.last_bin, half.samples, half.elements,
            )
        ]
        for name, halves in statistics.channels.items()
    }  # fmt: skip


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("exposed", [2**20, 1000])
def test_blocks_give_the_statistics_of_all_samples(
    observer: str, exposed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few exposed bytes the model runs once for each value, over all blocks each time."""
    monkeypatch.setattr("mrt.calibrate.collect.MAX_EXPOSED_BYTES", exposed)
    table, statistics, checks, done = gathered(None, observer)
    there, others, other_checks, steps = gathered(Backwards(), observer)
    assert there == table
    assert there.channel_means == table.channel_means != {}
    assert channels_of(others) == channels_of(statistics) != {}
    for name, outputs in statistics.layers.items():
        assert np.array_equal(others.layers[name], outputs)
    for mine, theirs in zip(statistics.samples, others.samples, strict=True):
        assert np.array_equal(mine["x"], theirs["x"])
    assert other_checks.doubts() == checks.doubts()
    assert vars(other_checks).keys() == vars(checks).keys()
    assert max(steps) == max(done)


def test_the_terms_of_a_block_are_added_one_by_one() -> None:
    """In float64, 1 + 1e-16 + 1e-16 is 1, and 1 + (1e-16 + 1e-16) is more."""
    tiny, total = np.array([1e-16]), OrderedSum()
    total.add(np.array([1.0]))
    block = OrderedSum(of_block=True)
    block.add(tiny)
    block.add(tiny)
    assert block.total is None
    total.merge(block)
    assert total.total == 1.0 < 1.0 + 2 * tiny


def test_statistics_are_sent_without_the_counts_that_are_0() -> None:
    """1,000 channels have 1,000 x 2 x 192 counts of 4 bytes: 1.5 MB, of which one is not 0."""
    statistics = ChannelStatistics.empty(1000, of_block=True)
    statistics.counts[999, 1, 191] = 70_000
    sent = pickle.dumps(statistics)
    assert len(sent) < 50_000
    taken = pickle.loads(sent)
    assert taken.counts.dtype == statistics.counts.dtype
    assert np.array_equal(taken.counts, statistics.counts)
    assert np.array_equal(taken.minimum, statistics.minimum)
    assert taken.terms == []


def test_a_sample_that_cannot_be_measured_is_named_by_its_own_number() -> None:
    _model, graph = network()
    numbers = [np.ones((1, 3, 8, 8), np.float32) for _ in range(SAMPLES)]
    numbers[13][:] = np.nan
    samples = Samples(
        ("x",), SAMPLES, None, "d", lambda: iter([{"x": x} for x in numbers])
    )
    with pytest.raises(BadData, match="sample 13: the model's input 'x'"):
        calibrate(
            graph,
            samples,
            CalibrationOptions(),
            model_sha256="",
            cluster=Backwards(),
        )
