"""Curves that are steep near 0, on accumulators: which they are, and their error against exact numbers."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.quantize import QuantizeOptions
from mrt.quantize.curves.octave_roots import is_steep
from mrt.quantize.curves.table_fusion import find_curves
from tests.support.float_models import (
    FloatModel,
    convert,
    f32,
    run_real,
    snr_db,
)
from tests.support.spectra import SIXTEEN

ROWS = np.geomspace(1, 1e-5, 24)
"""Sums of a spectrum's bands over 100 dB."""


def energies(model):
    """Return sums that are never negative, over five decades, as accumulators of a Gemm."""
    positive = model.add("Abs", "x")
    return model.gemm(positive, np.diag(ROWS), np.zeros(24))


def curve_of(build):
    model = FloatModel(x=(1, 24))
    output = build(model, energies(model))
    graph = ir.from_proto(model.proto(output)).graph
    return find_curves(list(graph))[output]


def chain(*operators):
    """Return a function that adds operators one after another; a pair has a constant operand."""

    def build(model, value):
        for operator in operators:
            name, *constants = (
                operator if isinstance(operator, tuple) else (operator,)
            )
            value = model.add(
                name, value, *(f32(number) for number in constants)
            )
        return value

    return build


@pytest.mark.parametrize(
    "operators",
    [
        ["Log"],
        ["Sqrt"],
        ["Reciprocal"],
        [("Add", 1e-6), "Log", ("Mul", 0.43)],
        [("Max", 1e-5), "Log"],
        [("Mul", 1e4), ("Add", 1.0), "Log"],
        [("Pow", 0.3)],
        ["Relu", ("Add", 1e-6), "Sqrt", "Reciprocal"],
    ],
)
def test_roots_logarithms_and_small_powers_are_steep(operators):
    assert is_steep(curve_of(chain(*operators)))


@pytest.mark.parametrize(
    "operators",
    [
        ["Sigmoid"],
        ["Softplus"],
        ["Exp", "Log"],
        [("Pow", 3.0)],
        [("Mul", -1.0), ("Add", 4.0), "Log"],
        [("Add", -1.0), "Sqrt"],
        [("Sub", 1.0), "Sqrt"],
    ],
)
def test_other_curves_are_not(operators):
    assert not is_steep(curve_of(chain(*operators)))


@pytest.mark.parametrize(
    ("operators", "least"),
    [
        ([("Add", 1e-7), "Log"], 60),
        ([("Max", 1e-6), "Log"], 60),
        (["Sqrt"], 60),
        ([("Pow", 0.3)], 60),
        ([("Add", 1e-4), "Reciprocal"], 60),
    ],
)
def test_quiet_bands_count_as_much_as_loud_ones(operators, least):
    model = FloatModel(x=(1, 24))
    output = chain(*operators)(model, energies(model))
    assert snr_db(model, output, options=SIXTEEN)[output] > least


def test_the_logarithm_of_each_sum_is_right_to_two_to_the_minus_12():
    model = FloatModel(x=(1, 24))
    output = chain("Log")(model, energies(model))
    program = convert(model, output, options=SIXTEEN)
    step = program.metadata.inputs["x"].scale
    generator = np.random.default_rng(3)
    integers = generator.integers(2000, 20000, (1, 24))
    found = run_real(program, {"x": f32(integers * step)})[output]
    exact = np.log(integers * step * ROWS)
    rounding = program.metadata.outputs[output].scale / 2
    inside = np.abs(exact) < 32767 * 2 * rounding
    assert inside.sum() > 20
    error = np.abs(found - exact)[inside]
    assert error.max() < 2**-12 + rounding + 1e-5  # 1e-5: a scale in 31 bits


def test_a_root_that_was_negative_stays_linear():
    model = FloatModel(x=(1, 24))
    sums = model.gemm("x", np.diag(ROWS), np.zeros(24))
    output = chain(("Max", 1e-3), "Log")(model, sums)
    program = convert(model, output, options=QuantizeOptions())
    assert "clz" not in [step.name for step in program.instructions]
