"""What differs by little is as exact as what differs by much."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from mrt.graph.canonical_values import name_of
from mrt.quantize.cancellation import with_bits_for_differences
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.table.table import MeasuredRange
from tests.support.graphs import graph_of, node, run

RANDOM = np.random.default_rng(6)
WEIGHTS = {
    "axis": np.array([1]),
    "hundredth": np.float32(1 / 64),
    "offset": np.float32([280.0]),
    "flat": np.array([64]),
    "w": RANDOM.normal(size=(64, 3)).astype(np.float32),
}
KELVIN = [node("Sub", "x offset", "z"), node("MatMul", "z w", "y")]
MOVED = [
    node("Relu", "x", "r"),
    node("Reshape", "r flat", "f"),
    node("MatMul", "f w", "y"),
]
PULSE = [
    node("ReduceSum", "x axis", "total", keepdims=1),
    node("Mul", "total hundredth", "mean"),
    node("Sub", "x mean", "z"),
    node("MatMul", "z w", "y"),
]
WAVES = RANDOM.normal(size=(64, 64)).astype(np.float32)
LEVELS = RANDOM.uniform(-1, 1, (64, 1)).astype(np.float32)


@pytest.mark.parametrize(
    ("nodes", "x"),
    [
        (KELVIN, 280 + 10 * WAVES),
        (MOVED, 280 + 10 * WAVES),
        (PULSE, 300 * WAVES + 50_000 * LEVELS),
    ],
    ids=[
        "an input far from 0",
        "what is moved of it",
        "a mean that is subtracted",
    ],
)
def test_small_differences_of_great_numbers_are_exact(nodes, x, tmp_path):
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 64)}, WEIGHTS))
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": x}, bits=8)
    program = converted.program
    found = program.dequantize(program.run(program.quantize({"x": x})))["y"]
    expected = np.stack(
        [run(proto, {"x": row[np.newaxis]})["y"].ravel() for row in x]
    )
    noise = np.square(found.reshape(expected.shape) - expected).mean()
    signal = np.square(expected - expected.mean(axis=0)).mean()
    assert 10 * np.log10(signal / noise) > 30


def bits_of(options, **magnitudes):
    graph = graph_of(PULSE, {"x": (1, 64)}, WEIGHTS).graph
    sizes = dict.fromkeys(["x", "total", "mean", "z", "y"], 1.0) | magnitudes
    ranges = {
        name: MeasuredRange(-size, size, -size, size)
        for name, size in sizes.items()
    }
    given = with_bits_for_differences(graph, options, ranges)
    names = [name_of(it) for node in graph for it in node.outputs]
    return {
        name: layer.activation_bits
        for name, layer in given.layers.items()
        if name in (*names, "x")
    }


def test_only_terms_of_which_little_is_left_have_more_bits():
    assert bits_of(QuantizeOptions(), z=1 / 8) == {}
    assert bits_of(QuantizeOptions(), z=1 / 16) == {"x": 16, "mean": 16}
    assert bits_of(QuantizeOptions(), z=1 / 16, mean=0.5) == {"x": 16}


def test_bits_that_are_chosen_stay():
    chosen = QuantizeOptions(layers={"x": LayerBits(activation_bits=8)})
    assert bits_of(chosen, z=1 / 16) == {"x": 8, "mean": 16}
    assert bits_of(QuantizeOptions(8, 6), z=1 / 16) == {}
    assert bits_of(QuantizeOptions(8, 16), z=1 / 16) == {}
