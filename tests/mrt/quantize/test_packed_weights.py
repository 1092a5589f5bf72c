"""Weights of 4 bits take half a byte in the program's file, and change nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from cvm.file import format as file_format
from mrt.quantize import QuantizeOptions
from tests.support.graphs import build, node
from tests.support.onnx_nodes import converted

WIDTH = 48
LAYERS = "first", "second"


def program_with(**options):
    rng = np.random.default_rng(2)
    weights = {
        name: rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
        for name in ("a", "b")
    }
    nodes = [
        node("MatMul", "x a", "first"),
        node("Relu", "first", "r"),
        node("MatMul", "r b", "second"),
    ]
    model = build(nodes, {"x": [1, WIDTH]}, weights, outputs="second")
    samples = [
        {"x": rng.normal(size=(1, WIDTH)).astype(np.float32)} for _ in range(4)
    ]
    return converted(model, samples, QuantizeOptions(**options))


@pytest.mark.parametrize(
    ("options", "packed"),
    [
        ({"weight_bits": 8}, 0),
        ({"weight_bits": 5}, 0),
        ({"weight_bits": 4}, 2),
        ({"weight_bits": 2}, 2),
    ],
)
def test_weights_of_4_bits_or_fewer_are_packed(options, packed):
    program = program_with(**options)
    assert len(program.packed) == packed
    data = file_format.encode(program)
    assert data[7] == (2 if packed else 1)
    plain = file_format.encode(replace(program, packed=frozenset()))
    assert len(plain) - len(data) == packed * WIDTH * WIDTH // 2
