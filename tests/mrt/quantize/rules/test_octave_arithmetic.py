"""Sums and products of octave codes on the reference machine, against the reals that the codes stand for."""

import numpy as np
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import FIRST, OctaveCode
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.rules.octave_products import code_times
from mrt.quantize.rules.octave_sums import (
    codes_at_one_scale,
    sum_of_codes,
    sum_of_two_codes,
)
from mrt.quantize.tensor import Tensor
from mrt.table.table import CalibrationOptions, CalibrationTable

NEAR = 2.0**-9
"""A few roundings to the 11 bits of a code."""

LONG, MIDDLE, SHORT = (OctaveCode.finest(length) for length in (62, 46, 31))

FEW = OctaveCode.finest(3)
"""A code of 3 bits, as of the square of a value of few."""


class Codes:
    """A program of codes, the numbers that are put in, and the reals that these stand for."""

    def __init__(self, shape, *forms):
        table = CalibrationTable("", CalibrationOptions(), 1, "", {})
        self.net = LoweringContext(table, QuantizeOptions())
        self.inputs, self.tensors, self.reals = {}, [], []
        generator = np.random.default_rng(3)
        for index, (octaves, scale) in enumerate(forms):
            name = f"x{index}"
            numbers = (
                2.0 ** generator.uniform(0, octaves.length - 1, shape)
            ).astype(np.int64)
            numbers.flat[:3] = 0, 1, 2**octaves.length - 1
            codes = octaves.integers(numbers)
            input_ = Input(
                name, TensorType("i16", shape), FIRST, FIRST + octaves.count - 1
            )
            value = self.net.builder.input(input_, Meaning(1.0, 0, name))
            layout = tuple(range(len(shape)))
            self.tensors.append(
                Tensor(value, np.array([scale]), 0, layout, octaves=octaves)
            )
            self.inputs[name] = codes.astype(np.int16)
            self.reals.append(octaves.numbers()[codes - FIRST] * scale)

    def found(self, *results):
        """Return the reals for which the codes that were written stand."""
        for index, result in enumerate(results):
            self.net.builder.output(
                f"y{index}", result.value, Meaning(1.0, 0, "y")
            )
        answers = run(validate(self.net.builder.finish({})), self.inputs)
        return [
            result.octaves.numbers()[answers[f"y{index}"].astype(int) - FIRST]
            * result.scale[0]
            for index, result in enumerate(results)
        ]


def assert_near(found, expected, greatest):
    """The code reaches down to 2^-62 of the greatest, where its last number is a whole one."""
    last = greatest * 2.0**-60
    assert (np.abs(found - expected) <= expected * NEAR + last).all()


@pytest.mark.parametrize(
    "forms",
    [
        [(LONG, 1e-9), (MIDDLE, 3e-5)],
        [(MIDDLE, 1e-9), (LONG, 3e-9)],
        [(SHORT, 1e-3), (SHORT, 3e-5)],
        [(LONG, 1.0), (LONG, 1.0)],
        [(FEW, 0.0042), (LONG, 1e-9)],
    ],
)
def test_two_codes_of_other_scales_are_added(forms):
    codes = Codes((64,), *forms)
    expected = codes.reals[0] + codes.reals[1]
    total = sum_of_two_codes(codes.net, *codes.tensors, expected.max())
    assert_near(codes.found(total)[0], expected, expected.max())


@pytest.mark.parametrize(
    "octaves", [LONG, SHORT, OctaveCode.finest(16), OctaveCode.finest(8)]
)
@pytest.mark.parametrize("count", [1, 33, 16384])
def test_codes_are_summed_along_an_axis(octaves, count):
    codes = Codes((2, count), (octaves, 1e-9))
    expected = codes.reals[0].sum(1, keepdims=True)
    total = sum_of_codes(codes.net, codes.tensors[0], [1], expected.max())
    assert_near(codes.found(total)[0], expected, expected.max())


@pytest.mark.parametrize("octaves", [LONG, SHORT, FEW])
@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_codes_are_multiplied_by_constants(octaves, scale):
    codes = Codes((33, 5), (octaves, 1e-9))
    factors = np.array([[0.3, 1e-3, 7.0, 900.0, 0.0]]) * scale
    expected = codes.reals[0] * factors
    product = code_times(codes.net, codes.tensors[0], factors, expected.max())
    assert_near(codes.found(product)[0], expected, expected.max())


def test_codes_that_are_joined_stand_for_the_same_numbers():
    codes = Codes(
        (64,), (LONG, 1e-9), (MIDDLE, 3e-5), (SHORT, 1e-2), (FEW, 0.3)
    )
    greatest = max(reals.max() for reals in codes.reals)
    alike = codes_at_one_scale(codes.net, codes.tensors, greatest)
    assert len({(it.octaves, float(it.scale[0])) for it in alike}) == 1
    for found, expected in zip(codes.found(*alike), codes.reals, strict=True):
        assert_near(found, expected, greatest)


def test_a_mean_of_many_steps_keeps_its_octaves():
    """Its proof doubles in each step, what it was measured at does not."""
    codes = Codes((64,), (MIDDLE, 1e-9), (MIDDLE, 1e-9))
    mean, new = codes.tensors
    expected, term = codes.reals
    greatest = 2 * max(expected.max(), term.max())
    for _ in range(25):
        mean = sum_of_two_codes(
            codes.net, scaled(mean, 0.96), scaled(new, 0.04), greatest
        )
        expected = 0.96 * expected + 0.04 * term
    found = codes.found(mean)[0]
    assert (
        np.abs(found - expected) <= expected * 2.0**-7 + greatest * 2.0**-55
    ).all()


def scaled(code, factor):
    return Tensor(
        code.value, code.scale * factor, 0, code.layout, octaves=code.octaves
    )


def test_sums_beyond_what_is_expected_are_cut_off():
    codes = Codes((64,), (LONG, 1e-9), (LONG, 1e-9))
    expected = codes.reals[0] + codes.reals[1]
    total = sum_of_two_codes(codes.net, *codes.tensors, 1.0)
    found = codes.found(total)[0]
    assert_near(found[expected < 1], expected[expected < 1], 1.0)
    assert (found[expected > 2] >= 0.99).all() and (found <= 2.01).all()
