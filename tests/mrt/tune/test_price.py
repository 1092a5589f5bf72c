"""The estimate of the engine's time, counted by hand from the rates."""

import numpy as np
import pytest

from cvm.proof.validate import validate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.tune.price import price
from tests.support.float_models import FloatModel, calibrated

RNG = np.random.default_rng(4)
SUMS, PRODUCTS = 6 * 6 * 4, 6 * 6 * 4 * 27  # of the first convolution
NEXT_SUMS, NEXT_PRODUCTS = 6 * 6 * 5, 6 * 6 * 5 * 4
ENDS = 6 * (3 * 8 * 8 * 2 + NEXT_SUMS * (2 + 2))
"""Transposes of the input, of bytes, and of the output, of 16 bits, read and written."""


def program(options: QuantizeOptions):
    model = FloatModel(x=(1, 3, 8, 8))
    first = model.conv("x", RNG.normal(size=(4, 3, 3, 3)), np.zeros(4))
    relu = model.add("Relu", first, name="relu")
    model.conv(relu, RNG.normal(size=(5, 4, 1, 1)), np.zeros(5), name="out")
    graph, table = calibrated(model.proto("out"), model.inputs, 3)
    return validate(quantize(graph, table, options))


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (
            LayerBits(),
            PRODUCTS + NEXT_PRODUCTS + 40 * (SUMS + NEXT_SUMS),
        ),
        (
            LayerBits(activation_bits=16),
            PRODUCTS + 2 * NEXT_PRODUCTS + 40 * SUMS + 130 * NEXT_SUMS,
        ),
    ],
)
def test_a_wide_value_makes_its_readers_multiply_words_and_store_sums(
    bits, expected
):
    found = price(program(QuantizeOptions(layers={"relu": bits})))
    assert found == expected + ENDS


def test_a_convolution_of_single_channels_multiplies_words_slowly():
    model = FloatModel(x=(1, 16, 8, 8))
    weights = RNG.normal(size=(16, 1, 3, 3))
    model.conv("x", weights, np.zeros(16), name="out", group=16)
    graph, table = calibrated(model.proto("out"), model.inputs, 3)
    narrow, wide = (
        price(
            validate(
                quantize(
                    graph, table, QuantizeOptions(8, 8, layers={"x": bits})
                )
            )
        )
        for bits in (LayerBits(), LayerBits(activation_bits=16))
    )
    products = 6 * 6 * 16 * 9
    read_twice = 6 * 2 * 8 * 8 * 16  # the input's transpose
    assert wide - narrow == 4 * products + read_twice
