"""Norms of windows keep the windows with small numbers: powers beside those of the greatest number of all would vanish."""

import numpy as np
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.graphs import graph_of, node, run

SHAPE = (1, 2, 6, 7)


@pytest.mark.parametrize(("bits", "decibels"), [(8, 35), (16, 60)])
@pytest.mark.parametrize("p", [3, 4, 7])
@pytest.mark.parametrize(
    "pool",
    [node("LpPool", "v", "y", kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1], dilations=[2, 1], p=3),
     node("GlobalLpPool", "v", "y", p=3)],
    ids=["windows", "all"],
)  # fmt: skip
def test_norms_of_small_numbers_are_as_exact_as_those_of_great_ones(
    pool, p, bits, decibels
):
    power = next(item for item in pool.attribute if item.name == "p")
    power.i = p
    sizes = np.float32(
        [0.05] * 4 + [1.0] * 3
    )  # windows of which the 4th powers are 160,000 times as small
    model, original = (
        graph_of([node("Mul", "x s", "v"), pool], {"x": SHAPE}, {"s": sizes})
        for _ in range(2)
    )
    rewrite(model)
    table = calibrate(
        model,
        synthetic_samples({"x": SHAPE}, 12),
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, bits))
    x = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    expected = run(original, {"x": x})["y"]
    found = run_real(program, {"x": x})["y"]
    assert (
        10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())
        > decibels
    )
    small = expected < 0.1
    assert np.abs(expected - found)[small].max(initial=0) < (
        0.02 if bits == 8 else 0.0005
    )


def test_where_everything_is_0_the_norm_is_0():
    model = graph_of(
        [node("LpPool", "x", "y", kernel_shape=[2, 2], p=3)], {"x": SHAPE}
    )
    rewrite(model)
    table = calibrate(
        model,
        synthetic_samples({"x": SHAPE}, 3),
        CalibrationOptions(),
        model_sha256="0" * 64,
    )
    zeros = {"x": np.zeros(SHAPE, np.float32)}
    assert not run(model, zeros)["y"].any()
    assert not run_real(quantize(model, table, QuantizeOptions(8, 16)), zeros)[
        "y"
    ].any()
