"""Residual sums: in the scales of accumulators, a shortcut times integers, and rounded once."""

import numpy as np
import pytest

from cvm.program import Program
from mrt.quantize import QuantizeOptions
from mrt.quantize.shortcuts import _shifts
from tests.support.float_models import FloatModel, convert, f32, snr_db


def block(*, projected: bool = False, dead: bool = False) -> FloatModel:
    """A convolution's result, and a second convolution of it (or one of the input) that is added to it."""
    rng = np.random.default_rng(3)
    model = FloatModel(x=(1, 4, 8, 8))

    def layer(x: str, name: str) -> str:
        weights = rng.normal(size=(6, 4 if x == "x" else 6, 1, 1))
        if dead and name == "inner":
            weights[2] *= 1e-7
        return model.conv(x, weights, rng.normal(size=6) / 9, name=name)

    begin = layer("x", "begin")
    inner = layer(begin, "inner")
    other = layer("x", "projected") if projected else begin
    model.add("Add", other, inner, name="sum")
    model.conv(
        "sum", rng.normal(size=(2, 6, 1, 1)), f32(np.zeros(2)), name="out"
    )
    return model


def sources_of_sum(program: Program) -> list[tuple[str, np.ndarray]]:
    """What makes each operand of the add: `conv2d`, or a rescale, as the real numbers that it multiplies by."""
    first, constants = program.first_instruction, program.first_constant
    (add,) = [item for item in program.instructions if item.name == "add"]
    found = []
    for operand in add.operands:
        maker = program.instructions[operand - first]
        ratios = np.zeros(0)
        if maker.name == "rescale":
            multiplier, shift = (
                program.constants[value - constants].astype(np.float64)
                for value in maker.operands[1:]
            )
            ratios = multiplier / 2.0**shift
        found.append((maker.name, ratios))
    return found


def test_a_shortcut_is_multiplied_by_integers_and_the_accumulators_are_shifted():
    program = convert(block(), "out")
    found = sources_of_sum(program)
    assert [name for name, _ in found] == ["rescale", "rescale"]
    (shifts, factors) = (ratios for _, ratios in found)
    assert np.all(factors == np.rint(factors))
    assert np.all((factors >= 2**6) & (factors < 2**12))
    assert np.all(np.log2(shifts) == np.rint(np.log2(shifts)))


@pytest.mark.parametrize(
    ("ratio", "shift"),
    [
        (5.0, 0),
        (100.5, 1),  # 100 would be off by 0.5 %, a step and a quarter
        (
            1 / 3,
            10,
        ),  # 341 of 1024 are off by a tenth of a per cent; 171 of 512 by two
        (40000.0, -1),  # 16 bits
        (32767.9, -1),  # and what rounds up to them
        (2.0**-20, 20),
    ],
)
def test_a_shift_is_the_least_whose_factor_is_near_enough(ratio, shift):
    assert _shifts(np.array([ratio])).tolist() == [shift]


def test_what_is_next_to_nothing_is_shifted_to_the_right():
    program = convert(block(dead=True), "out")
    (shifts, _) = (ratios for _, ratios in sources_of_sum(program))
    assert shifts.min() < 1
    assert np.all(np.log2(shifts) == np.rint(np.log2(shifts)))


def test_two_accumulators_meet_in_the_scales_of_the_later_one():
    found = sources_of_sum(convert(block(projected=True), "out"))
    assert sorted(name for name, _ in found) == ["conv2d", "rescale"]


@pytest.mark.parametrize(
    "options",
    [QuantizeOptions(scales="shift"), QuantizeOptions(sum_bits=6)],
    ids=["scales", "sum_bits"],
)
def test_options_that_ask_for_one_scale_get_it(options):
    program = convert(block(), "out", options=options)
    (_, shortcut), _ = sources_of_sum(program)
    assert shortcut.size == 1


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("dead", [False, True])
def test_the_sum_is_as_good_as_its_operands(projected, dead):
    """8 bits of three layers: about 35 dB."""
    found = snr_db(block(projected=projected, dead=dead), "out")
    assert found["out"] > 30
