"""Weights of 4 bits take half a byte in the program's file, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from mrt.quantize import LayerBits, QuantizeOptions
from tests.support.float_models import FloatModel, convert

WIDTH = 48
HALF = WIDTH * WIDTH // 2  # the bytes of a layer's packed weights


def program_with(**options):
    """Two layers with as many weights as WIDTH * WIDTH each."""
    rng = np.random.default_rng(2)
    model = FloatModel(x=(1, WIDTH))
    value = "x"
    for _ in range(2):
        weights = rng.normal(size=(WIDTH, WIDTH))
        value = model.gemm(value, weights, rng.normal(size=WIDTH))
    return convert(model, value, options=QuantizeOptions(**options)), value


@pytest.mark.parametrize(
    ("options", "packed"),
    [
        ({"weight_bits": 8}, 0),
        ({"weight_bits": 5}, 0),
        ({"weight_bits": 4}, 2),
        ({"weight_bits": 2}, 2),
    ],
)
def test_weights_of_4_bits_or_fewer_take_half_a_byte(options, packed):
    program, _ = program_with(**options)
    assert len(program.packed) == packed
    data = file_format.encode(program)
    assert data[7] == (2 if packed else 1)
    plain = file_format.encode(replace(program, packed=frozenset()))
    assert len(plain) - len(data) == packed * HALF


def test_one_layer_of_4_bits_is_packed_and_the_others_are_not():
    _, output = program_with()
    layers = {output: LayerBits(weight_bits=4)}
    program, _ = program_with(layers=layers)
    assert len(program.packed) == 1


def test_every_machine_gives_what_it_gives_unpacked():
    program, _ = program_with(weight_bits=4)
    packed = validate(file_format.decode(file_format.encode(program)))
    plain = validate(replace(program, packed=frozenset()))
    x = program.inputs[0]
    rng = np.random.default_rng(1)
    sample = {x.name: rng.integers(x.lo, x.hi, x.type.shape, np.int8)}
    (expected,) = run(plain, sample).values()
    assert np.array_equal(*run(packed, sample).values(), expected)
    if native.available():
        (found,) = native.Engine(packed).run(sample).values()
        assert np.array_equal(found, expected)
