"""Which layers keep 8 bits where weights have few, what they hold, and when none does."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.small_layers import with_small_layer_bits
from mrt.quantize.weight_groups import WeightGroup, weight_groups
from tests.support.float_models import FloatModel, f32

SECOND_WEIGHTS = "c1"  # of the constants in the order of their layers


def graph() -> ir.Model:
    """Weights: 12 in `first`, 16 that two layers share, 420 in `last`."""
    model = FloatModel(x=(1, 3))
    model.add("MatMul", "x", f32(np.ones((3, 4))), name="first")
    model.add("MatMul", "first", f32(np.ones((4, 4))), name="one")
    model.add("MatMul", "one", SECOND_WEIGHTS, name="two")
    model.add("MatMul", "two", f32(np.ones((4, 105))), name="last")
    return ir.from_proto(model.proto("last"))


def test_layers_that_share_weights_are_one_group():
    assert weight_groups(graph()) == [
        WeightGroup(("first",), 12),
        WeightGroup(("one", "two"), 16),
        WeightGroup(("last",), 420),
    ]


def test_the_smallest_layers_keep_8_bits_up_to_a_sixteenth_of_the_weights():
    # 12 + 16 of 448 are exactly a sixteenth.
    given = QuantizeOptions(weight_bits=4)
    found, small = with_small_layer_bits(graph(), given)
    assert {name: bits.weight_bits for name, bits in found.layers.items()} == {
        "first": 8,
        "one": 8,
        "two": 8,
    }
    assert small is not None
    assert small.note(given) == (
        "the weights of 3 small layers keep 8 bits, the others have 4: rounding a small layer costs as much accuracy as "
        "rounding a large one, and these have 6.2 % of the weights, whose size grows by 6.2 % "
        "(--small-layer-bits 4 leaves all at 4)"
    )


def test_a_layer_with_bits_of_its_own_keeps_them():
    own = {"one": LayerBits(weight_bits=3), "first": LayerBits(None, 8)}
    given = QuantizeOptions(weight_bits=4, layers=own)
    found, _ = with_small_layer_bits(graph(), given)
    assert found.layers == {
        "one": LayerBits(3),
        "two": LayerBits(8),
        "first": LayerBits(8, 8),
    }
    assert with_small_layer_bits(graph(), found) == (found, None)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"weight_bits": 5},  # such weights take a byte of the file
        {"weight_bits": 4, "small_layer_bits": 4},
        {"weight_bits": 4, "activation_bits": 4},
        {"weight_bits": 3, "sum_bits": 6},
    ],
    ids=str,
)
def test_all_layers_have_the_same_bits_where_the_file_is_not_what_counts(given):
    options = QuantizeOptions(**given)
    assert with_small_layer_bits(graph(), options) == (options, None)


def test_the_bits_of_small_layers_can_be_given():
    given = QuantizeOptions(weight_bits=8, small_layer_bits=15)
    found, small = with_small_layer_bits(graph(), given)
    assert found.weight_bits_of("first") == 15 and small is not None
