"""Which values only channelwise convolutions read, and that they can be finer than the rest."""

import numpy as np
import onnx_ir as ir

import cvm
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.channelwise_inputs import (
    channelwise_inputs,
    with_channelwise_bits,
)
from tests.support.float_models import FloatModel, convert, snr_db

CHANNELS = 6


def network() -> FloatModel:
    """Two channelwise convolutions; a third reads what another layer reads, too."""
    rng = np.random.default_rng(5)
    model = FloatModel(x=(1, CHANNELS, 8, 8))

    def layer(x: str, name: str, inputs: int) -> str:
        weights = rng.normal(size=(CHANNELS, inputs, 3, 3)) / inputs / 2
        group = CHANNELS // inputs
        bias = rng.normal(size=CHANNELS)
        pads = (1, 1, 1, 1)
        return model.conv(x, weights, bias, pads=pads, group=group, name=name)

    mixed = model.add("Relu", layer("x", "mix", CHANNELS), name="mixed")
    apart = model.add("Relu", layer(mixed, "one", 1), name="apart")
    both = model.add("Relu", layer(apart, "two", 1), name="both")
    third = layer(both, "three", 1)
    model.add("Add", layer(both, "four", CHANNELS), third, name="out")
    return model


def graph() -> ir.Model:
    return ir.from_proto(network().proto("out"))


def test_they_are_what_nothing_else_reads():
    assert channelwise_inputs(graph()) == ["mixed", "apart"]


def test_they_get_bits_unless_they_have_their_own():
    own = {"apart": LayerBits(activation_bits=6, weight_bits=4)}
    options = QuantizeOptions(channelwise_bits=16, layers=own)
    found = with_channelwise_bits(graph(), options)
    names = ("mixed", "apart", "both")
    assert [found.activation_bits_of(name) for name in names] == [16, 6, 8]
    assert found.weight_bits_of("apart") == 4
    assert found.channelwise_bits is None
    plain = QuantizeOptions()
    assert with_channelwise_bits(graph(), plain) is plain
    assert "channelwise_bits" not in plain.key()


def test_a_program_holds_them_in_16_bits_and_is_nearer_to_float():
    fine = QuantizeOptions(weight_bits=15, channelwise_bits=16)
    wide = with_channelwise_bits(graph(), fine)
    program = convert(network(), "out", options=wide)
    types = cvm.proof.validate.validate(program).types
    held = {
        item.source: types[number].dtype
        for number, item in program.metadata.values.items()
    }
    expected = {"mixed": "i16", "apart": "i16", "both": "i8"}
    assert {name: held[name] for name in expected} == expected
    narrow = snr_db(network(), "out", options=QuantizeOptions(weight_bits=15))
    found = snr_db(network(), "out", options=wide)
    assert found["out"] > narrow["out"] + 1
