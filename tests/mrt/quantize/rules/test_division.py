"""Quotients and roots in i32: signs, divisors over several octaves or near 0, and when a table would have been too coarse."""

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

SIXTEEN = QuantizeOptions(8, 16)


def quotient(**shapes: tuple[int, ...]):
    model = FloatModel(**shapes)
    return model, model.add("Div", "x", "z")


def test_signs_of_both_operands_count():
    model, output = quotient(x=(1, 4), z=(1, 4))
    sample = {"x": f32([[1, -1, 1.5, -1.5]]), "z": f32([[2, 2, -0.5, -0.5]])}
    found = run_real(convert(model, output, options=SIXTEEN), sample)[output]
    assert np.abs(found - [[0.5, -0.5, -3, 3]]).max() < 2e-2


@pytest.mark.parametrize("scales", ["real", "shift"])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_count_of_a_few_divides(most, scales):
    """A rescale multiplies by 2^28 at most, and 30 bits of a count below 4 are finer than that."""
    model = FloatModel(x=(1, 4), z=(1, most))
    kept = model.add("Cast", model.add("Greater", "z", f32(0)), to=7)
    count = model.add("ReduceSum", kept, np.array([1]), keepdims=1)
    least = model.add("Max", count, np.array([[1]]))
    output = model.add("Div", "x", model.add("Cast", least, to=1))
    options = QuantizeOptions(8, 16, scales=scales)
    program = convert(model, output, options=options)
    for places in range(most + 1):
        z = f32([[2] * places + [-2] * (most - places)])
        sample = {"x": f32([[1, -1, 1.5, -1.5]]), "z": z}
        found = run_real(program, sample)[output]
        expected = np.array([1, -1, 1.5, -1.5]) / max(places, 1)
        assert np.abs(found - expected).max() < 2e-3


def test_zero_divides_as_the_nearest_number_that_a_divisor_can_be():
    model, output = quotient(x=(1, 4), z=(1, 4))
    program = convert(model, output, options=SIXTEEN)
    found = run_real(
        program, {"x": f32([[1, -1, 0, 2]]), "z": f32([[0, 0, 0, 0]])}
    )[output]
    assert (
        found[0, 0] > 20
        and found[0, 1] < -20
        and found[0, 2] == 0
        and found[0, 3] >= found[0, 0]
    )


def test_a_row_is_divided_by_numbers_over_six_octaves():
    model = FloatModel(x=(1, 8, 20))
    spread = model.add("Mul", "x", f32(np.geomspace(1, 8, 8).reshape(8, 1)))
    total = model.add(
        "ReduceSum", model.add("Mul", spread, spread), np.array([2]), keepdims=1
    )
    output = model.add("Div", "x", total)
    assert snr_db(model, output, options=SIXTEEN)[output] > 65
    assert (
        snr_db(model, output)[output] > 26
    )  # the rows themselves are in 8 bits


def test_a_divisor_that_is_never_near_zero_is_held_away_from_it():
    model = FloatModel(x=(1, 30))
    output = model.add(
        "Div",
        f32(np.linspace(-3, 3, 30)[None]),
        model.add("Add", "x", f32(20.0)),
    )
    assert snr_db(model, output, options=SIXTEEN)[output] > 70
    assert np.isfinite(
        run_real(convert(model, output), {"x": f32(np.full((1, 30), -1e9))})[
            output
        ]
    ).all()


def test_a_divisor_by_table_has_16_bits_where_all_else_has_8():
    model = FloatModel(x=(1, 30), z=(1, 30))
    output = model.add("Div", "x", model.add("Exp", "z"))
    assert snr_db(model, output)[output] > 32


@pytest.mark.parametrize("scales", ["real", "shift"])
def test_the_root_of_a_sum_is_taken_of_the_accumulator(scales):
    model = FloatModel(x=(1, 8, 20))
    spread = model.add("Mul", "x", f32(np.geomspace(0.05, 4, 8).reshape(8, 1)))
    total = model.add(
        "ReduceSum", model.add("Mul", spread, spread), np.array([2]), keepdims=1
    )
    output = model.add(
        "Mul",
        model.add("Sqrt", total),
        f32(np.geomspace(80, 1, 8).reshape(8, 1)),
    )
    assert (
        snr_db(model, output, options=QuantizeOptions(8, 16, scales=scales))[
            output
        ]
        > 54
    )


def test_the_magnitude_of_the_least_integer_fits():
    model = FloatModel(x=(1, 16))
    output = model.add("Abs", "x")
    found = run_real(
        convert(model, output), {"x": f32(np.linspace(-9, 9, 16)[None])}
    )[output]
    assert found.min() >= 0 and found[0, 0] == found.max()


@pytest.mark.parametrize(("shift", "signs"), [(20.0, 0), (0.0, 1)])
def test_only_a_divisor_that_may_be_negative_costs_a_sign(shift, signs):
    model = FloatModel(x=(1, 4), z=(1, 4))
    divisor = model.add("Add", "z", f32(shift))
    program = convert(model, model.add("Div", "x", divisor), options=SIXTEEN)
    names = [item.name for item in program.instructions]
    assert names.count("abs") == signs
