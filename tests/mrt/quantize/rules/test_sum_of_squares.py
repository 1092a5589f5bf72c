"""Sums of squares as octave codes: miniature spectrograms against float, and exact sums against fractions."""

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
from tests.support.spectra import SIXTEEN, Spectrogram


def magnitude(model, power):
    return model.add("Sqrt", power)


def decibels(model, power):
    logarithm = model.add("Log", model.add("Add", power, f32(1e-9)))
    return model.add("Mul", logarithm, f32(10 / np.log(10)))


def clipped_logarithm(model, power):
    return model.add("Log", model.add("Max", power, f32(1e-8)))


def log_of_one_plus(model, power):
    scaled = model.add("Mul", power, f32(1e4))
    return model.add("Log", model.add("Add", scaled, f32(1.0)))


def compressed(model, power):
    return model.add("Pow", power, f32(0.15))


def inverse_root(model, power):
    shifted = model.add("Add", power, f32(1e-7))
    return model.add("Reciprocal", model.add("Sqrt", shifted))


FUNCTIONS = [
    magnitude,
    decibels,
    clipped_logarithm,
    log_of_one_plus,
    compressed,
    inverse_root,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_spectrogram_keeps_its_quiet_bins_at_16_bits(function):
    model = Spectrogram()
    features = function(model, model.power())
    output = model.layer(features)
    found = snr_db(model, features, output, options=SIXTEEN)
    assert found[output] > 50 and found[features] > 60


@pytest.mark.parametrize("function", [decibels, compressed])
def test_8_bits_of_features_are_as_good_as_8_bits_can_be(function):
    model = Spectrogram()
    output = model.layer(function(model, model.power()))
    assert snr_db(model, output, options=QuantizeOptions(8, 8))[output] > 25


def test_a_sum_may_be_moved_before_it_is_read():
    model = Spectrogram()
    moved = model.add("Transpose", model.power(), perm=[0, 2, 1, 3])
    row = model.add("Reshape", moved, np.array([1, -1]))
    part = model.add("Slice", row, *(np.array([n]) for n in (0, 30, 1, 1)))
    output = decibels(model, part)
    assert snr_db(model, output, options=SIXTEEN)[output] > 60


def test_parts_may_be_joined_negated_and_scaled_before_they_are_squared():
    model = Spectrogram()
    parts = [
        model.add("Transpose", part, perm=[0, 2, 1, 3])
        for part in (model.real, model.add("Neg", model.imaginary))
    ]
    joined = model.add("Concat", *parts, axis=3)
    scaled = model.add("Mul", joined, f32(np.geomspace(1, 30, 12)[:, None]))
    square = model.add("Mul", scaled, scaled)
    total = model.add("ReduceSum", square, np.array([3]), keepdims=1)
    output = decibels(model, total)
    assert snr_db(model, output, options=SIXTEEN)[output] > 60


def test_the_sum_is_right_to_a_part_of_1024_at_any_loudness():
    model = FloatModel(x=(1, 64), z=(1, 64))
    squares = [model.add("Mul", name, name) for name in "xz"]
    output = model.add("Log", model.add("Add", *squares))
    program = convert(model, output, options=SIXTEEN)
    steps = {
        item.name: program.metadata.inputs[item.name].scale
        for item in program.inputs
    }
    generator = np.random.default_rng(0)
    integers = np.exp(generator.uniform(0, np.log(32767), (2, 1, 64))).round()
    sample = {
        name: f32(row * steps[name])
        for name, row in zip("xz", integers, strict=True)
    }
    x, z = (integers[i] * steps[name] for i, name in enumerate("xz"))
    exact = np.log(x * x + z * z)
    rounding = program.metadata.outputs[output].scale
    inside = np.abs(exact) < 32767 * rounding  # the rest is saturated
    error = np.abs(run_real(program, sample)[output] - exact)[inside]
    assert inside.sum() > 50 and error.max() < 2**-10 + rounding


def test_a_sum_that_a_product_reads_has_linear_steps_for_it():
    model = Spectrogram()
    power = model.power()
    outputs = [model.layer(power), decibels(model, power)]
    found = snr_db(model, *outputs, options=SIXTEEN)
    assert found[outputs[0]] > 60 and found[outputs[1]] > 45


def test_a_sum_along_many_elements_stays_linear():
    model = FloatModel(x=(1, 40, 17))
    square = model.add("Mul", "x", "x")
    total = model.add("ReduceSum", square, np.array([2]), keepdims=1)
    output = model.add("Sqrt", total)
    program = convert(model, output, options=SIXTEEN)
    assert "isqrt" in [step.name for step in program.instructions]


@pytest.mark.parametrize("operator", ["Tanh", "Sigmoid", "Softsign"])
@pytest.mark.parametrize("options", [SIXTEEN, QuantizeOptions(8, 8)])
def test_what_is_squared_may_be_a_function_of_one_number(operator, options):
    """The table of the square begins at the function's own operand, and the sum reads the function."""
    model = FloatModel(x=(1, 8))
    value = model.add(operator, "x")
    square = model.add("Mul", value, value)
    total = model.add("ReduceSum", square, np.array([1]), keepdims=1)
    output = model.add("Sqrt", total)
    assert snr_db(model, output, options=options)[output] > 25
