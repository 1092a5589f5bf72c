"""Normalisation in integers against onnxruntime's floats: what signal-to-noise ratio each form reaches, at 16 bits and at 8.

The limits stand 3 to 6 dB below what was measured. Where a limit is low, the input's own precision is the reason, and it
says so.
"""

import math

import numpy as np
import pytest

from mrt.quantize import QuantizeOptions
from tests.support.float_models import (
    FloatModel,
    convert,
    f32,
    run_real,
    snr_db,
)

ROWS = (1, 10, 96)
IMAGE = (1, 8, 12, 10)


def normal(*shape: int) -> np.ndarray:
    return f32(np.random.default_rng(sum(shape)).normal(size=shape))


def layer_norm(
    m: FloatModel, x: str = "x", epsilon: float = 1e-5, axis: int = 2
) -> str:
    return m.add(
        "LayerNormalization",
        x,
        normal(96),
        normal(96),
        axis=axis,
        epsilon=epsilon,
        stash_type=1,
    )


def instance_norm(m: FloatModel, x: str = "x") -> str:
    return m.add("InstanceNormalization", x, normal(8), normal(8), epsilon=1e-5)


def l2(m: FloatModel, axes: tuple[int, ...], epsilon: float = 1e-10) -> str:
    squares = m.add(
        "ReduceSum", m.add("Mul", "x", "x"), np.array(axes), keepdims=1
    )
    return m.add("Div", "x", m.add("Sqrt", m.add("Add", squares, f32(epsilon))))


def lrn(**attributes: float):
    return lambda m, x="x": m.add(
        "LRN",
        x,
        **({"size": 5, "alpha": 1.0, "beta": 0.75, "bias": 1.0} | attributes),
    )


CASES = {  # shape, model, limits at 16 and at 8 bits
    "layer norm": (ROWS, layer_norm, 74, 40),
    "layer norm of rows far from 0": (
        ROWS, lambda m: layer_norm(m, m.add("Add", "x", 5 * normal(10, 1))), 72, 39),
    "layer norm of rows of very different size, the small ones coarse in 16 bits": (
        ROWS, lambda m: layer_norm(m, m.add("Mul", "x", f32(np.exp(np.linspace(-2, 3, 10))[:, None]))), 48, 28),
    "layer norm with one great element": (
        ROWS, lambda m: layer_norm(m, m.add("Mul", "x", f32(np.where(np.arange(96) == 7, 30, 1)))), 58, 37),
    "layer norm with epsilon near the variance": (ROWS, lambda m: layer_norm(m, epsilon=2.0), 76, 42),
    "layer norm with epsilon far above the variance": (ROWS, lambda m: layer_norm(m, epsilon=1e6), 80, 60),
    "layer norm of all but the first axis": (
        (1, 4, 5, 6),
        lambda m: m.add("LayerNormalization", "x", normal(4, 5, 6), normal(4, 5, 6), axis=1, epsilon=1e-5, stash_type=1),
        74, 40),
    "layer norm without scale and shift": (
        ROWS, lambda m: m.add("LayerNormalization", "x", f32(np.ones(96)), f32(np.zeros(96)), axis=2, epsilon=1e-5,
                              stash_type=1), 74, 38),
    "instance norm": (IMAGE, instance_norm, 74, 39),
    "instance norm behind a convolution, whose weights are coarse": (
        IMAGE, lambda m: instance_norm(m, m.conv("x", normal(8, 8, 3, 3), normal(8))), 42, 37),
    "x over its norm along channels": (IMAGE, lambda m: l2(m, (1,)), 74, 37),
    "x over its norm": (IMAGE, lambda m: l2(m, (1, 2, 3)), 72, 37),
    "x over its norm along rows, epsilon near it": (IMAGE, lambda m: l2(m, (2, 3), 100.0), 72, 37),
    "x over its sum of magnitudes": (
        ROWS, lambda m: m.add("Div", "x", m.add("ReduceSum", m.add("Abs", "x"), np.array([2]), keepdims=1)), 72, 36),
    "local response": (IMAGE, lrn(), 74, 37),
    "local response of great numbers, whose sums range over many octaves": (
        IMAGE, lambda m: lrn()(m, m.add("Mul", "x", f32(30))), 54, 31),
    "local response, hardly any": (IMAGE, lrn(alpha=1e-4, bias=2.0), 74, 38),
    "local response along few channels": (IMAGE, lrn(size=3, beta=0.5), 74, 37),
}  # fmt: skip


def ratio(name: str, bits: int) -> float:
    model = FloatModel(x=CASES[name][0])
    output = CASES[name][1](model)
    return snr_db(model, output, options=QuantizeOptions(8, bits))[output]


@pytest.mark.parametrize("name", CASES)
def test_the_signal_is_far_above_the_noise_at_16_bits(name):
    assert ratio(name, 16) > CASES[name][2]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (index % 2))
        for index, name in enumerate(CASES)
    ],
)
def test_the_signal_is_far_above_the_noise_at_8_bits(name):
    assert ratio(name, 8) > CASES[name][3]


@pytest.mark.parametrize(
    "build",
    [lambda m: layer_norm(m, axis=3), lambda m: l2(m, (2,)), lrn()],
    ids=["layer norm", "norm", "lrn"],
)
def test_scales_that_are_powers_of_two_stay_so(build):
    model = FloatModel(x=(1, 4, 3, 96))
    output = build(model)
    options = QuantizeOptions(8, 16, scales="shift")
    assert snr_db(model, output, options=options)[output] > 60
    meanings = convert(model, output, options=options).metadata
    scales = [
        meaning.scale
        for meaning in (*meanings.values.values(), *meanings.outputs.values())
    ]
    assert all(math.frexp(scale)[0] == 0.5 for scale in scales)


@pytest.mark.slow
def test_a_mean_over_more_elements_than_a_sum_of_16_bits_can_be_proven_for():
    model = FloatModel(x=(1, 1, 300, 260))
    output = model.add(
        "InstanceNormalization", "x", f32([2]), f32([1]), epsilon=1e-5
    )
    assert snr_db(model, output, options=QuantizeOptions(8, 16))[output] > 70


def test_a_constant_row_becomes_the_shift():
    model = FloatModel(x=(1, 2, 8))
    output = model.add(
        "LayerNormalization",
        "x",
        f32(np.ones(8)),
        f32(np.arange(8)),
        axis=2,
        epsilon=1e-5,
        stash_type=1,
    )
    program = convert(model, output, options=QuantizeOptions(8, 16))
    found = run_real(program, {"x": f32(np.full((1, 2, 8), 1.25))})[output]
    assert np.abs(found - np.arange(8)).max() < 1e-3


def test_one_element_is_its_own_mean():
    model = FloatModel(x=(1, 3, 1))
    output = model.add(
        "LayerNormalization",
        "x",
        f32([2]),
        f32([-1]),
        axis=2,
        epsilon=1e-5,
        stash_type=1,
    )
    found = run_real(convert(model, output), {"x": f32([[[3], [-2], [0.1]]])})[
        output
    ]
    assert np.abs(found + 1).max() < 0.01


def test_an_epsilon_beyond_any_square_has_its_limit_at_every_shift():
    """Inputs near 2^-30 are nothing beside an epsilon of 1; indices of i8 start at -128, shifts at 0."""
    model = FloatModel(x=(1, 2, 8))
    output = model.add(
        "LayerNormalization",
        model.add("Mul", "x", f32(2.0**-30)),
        f32(np.ones(8)),
        f32(np.zeros(8)),
        axis=2,
        epsilon=1.0,
        stash_type=1,
    )
    program = convert(model, output, options=QuantizeOptions(8, 16))
    limits = [array for array in program.constants if 2**29 in array]
    (table,) = [array.tolist() for array in limits if len(array) == 256]
    assert table == [0] * 128 + [2**29] * 31 + [0] * 97
