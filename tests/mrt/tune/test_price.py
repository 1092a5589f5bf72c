"""The estimate of the engine's time, counted by hand from the rates."""

import numpy as np
import pytest

from cvm.program import (
    Input,
    Instruction,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.tune.price import engine_time, price
from tests.support.float_models import FloatModel, calibrated

RNG = np.random.default_rng(4)
SUMS = 6 * 6 * 16  # of each convolution: 4 and 5 outputs, whose vectors hold 16
WEIGHTS, NEXT_WEIGHTS = 4 * 27, 5 * 4
ENDS = 6 * (3 * 8 * 8 * 2 + 6 * 6 * 5 * (2 + 2))
"""Transposes of the input, of bytes, and of the output, of 16 bits, read and written."""


def program(options: QuantizeOptions):
    model = FloatModel(x=(1, 3, 8, 8))
    first = model.conv("x", RNG.normal(size=(4, 3, 3, 3)), np.zeros(4))
    relu = model.add("Relu", first, name="relu")
    model.conv(relu, RNG.normal(size=(5, 4, 1, 1)), np.zeros(5), name="out")
    graph, table = calibrated(model.proto("out"), model.inputs, 3)
    return validate(quantize(graph, table, options))


@pytest.mark.parametrize(
    ("bits", "words", "clamps", "fetch"), [(8, 1, 0, 4), (16, 2, 1, 12)]
)
def test_a_wide_value_makes_its_readers_multiply_words(
    bits, words, clamps, fetch
):
    options = QuantizeOptions(layers={"relu": LayerBits(activation_bits=bits)})
    first = SUMS * (27 + 15 * (2 + clamps))  # with its rescale
    second = SUMS * (words * 4 + 15 * 2)
    fetched = 4 * WEIGHTS + fetch * NEXT_WEIGHTS
    assert price(program(options)) == first + second + fetched + ENDS


@pytest.mark.parametrize("rows", [7, 700])
def test_of_a_table_only_the_rows_that_are_taken_cost(rows):
    table = np.zeros((1, rows, 4), np.int16)
    form = validate(
        Program(
            (Input("ids", TensorType("i32", (1, 5)), 0, rows - 1),),
            (table,),
            (
                Instruction("gather", (1, 0)),
                Instruction("reshape", (2,), {"shape": (20,)}),
                Instruction("slice", (3,), {"start": (0,), "size": (3,)}),
            ),
            (Output("rows", 4),),
        )
    )
    assert price(form) == 6 * 2 * 2 * (20 + 3)


@pytest.mark.parametrize(
    ("looked_up", "touched"), [(2, 2 * 64), (5000, 65_536 * 2)]
)
def test_of_a_great_table_the_time_is_that_of_what_is_looked_up(
    looked_up, touched
):
    """A table of 16 bits has 128 KiB, and two numbers in it take no longer to find than in one of 256."""
    table = np.zeros(65_536, np.int16)
    form = validate(
        Program(
            (Input("x", TensorType("i16", (1, looked_up)), -9, 9),),
            (table,),
            (Instruction("table", (0, 1)),),
            (Output("y", 2),),
        )
    )
    read_and_written = 2 * 2 * looked_up
    assert engine_time(form) == 6 * (read_and_written + touched)
    assert price(form) == 6 * (read_and_written + 65_536 * 2)


def test_wide_weights_of_bytes_store_the_sums_of_their_halves():
    narrow, wide = (
        price(program(QuantizeOptions(layers={"out": LayerBits(bits)})))
        for bits in (8, 15)
    )
    # A second product, two more instructions, the stored sums, and the second half of the weights.
    more = SUMS * (4 + 15 * 3 + 50) + 4 * NEXT_WEIGHTS
    assert wide - narrow == more


def test_wide_weights_of_wide_values_are_one_product():
    words = LayerBits(activation_bits=16)
    narrow, wide = (
        price(
            program(
                QuantizeOptions(layers={"relu": words, "out": LayerBits(bits)})
            )
        )
        for bits in (8, 11)
    )
    assert wide == narrow


def test_a_convolution_of_single_channels_multiplies_words_nearly_as_fast_as_bytes():
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
    fetched = (12 - 4) * 16 * 9
    assert wide - narrow == products + fetched + read_twice
