"""Columns that a scaler gives to trees: every row takes the way of float through them, where 8 bits lose one in ten."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

import mrt
from mrt.purposes import PURPOSES
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.scaled_columns import with_scaled_column_bits
from tests.support.graphs import graph_of, node, run

ROWS, THRESHOLDS = 400, 40
RNG = np.random.default_rng(8)
MEANS, SIZES = np.float32([40, 30_000, 0]), np.float32([12, 25_000, 1])
SCALER = {"mean": -MEANS, "inverse": 1 / SIZES}
SCALED = [
    node("Add", "x mean", "centred"),
    node("Mul", "centred inverse", "scaled"),
]


def table():
    """Ages, incomes whose greatest is forty times the mean, and a number."""
    ages = RNG.uniform(18, 80, ROWS)
    incomes = np.exp(RNG.normal(10, 1.2, ROWS))
    columns = [ages, incomes, RNG.normal(size=ROWS)]
    return np.stack(columns, axis=1).astype(np.float32)


def stumps(joined="scaled", *more):
    """How many thresholds each of three columns passes, behind these nodes."""
    levels = np.quantile(
        (table() - MEANS) / SIZES, np.linspace(0.02, 0.98, THRESHOLDS), axis=0
    )
    weights = {
        **SCALER,
        "levels": levels[..., None].reshape(THRESHOLDS, 3).astype(np.float32),
        "axes": np.array([1]),
        "shape": np.array([1, 3]),
        "w": RNG.normal(size=(3, 3)).astype(np.float32),
    }
    nodes = [
        *SCALED,
        *more,
        node("Greater", f"{joined} levels", "passed"),
        node("Cast", "passed", "ones", to=TensorProto.FLOAT),
        node("ReduceSum", "ones", "counts", keepdims=1),
    ]
    outputs = [node("Identity", "counts", "y")]
    return graph_of([*nodes, *outputs], {"x": (1, 3)}, weights)


def test_rows_pass_the_thresholds_that_they_pass_in_float(tmp_path):
    graph = stumps()
    onnx.save(ir.to_proto(graph), tmp_path / "m.onnx")
    rows = table()
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows}, bits=8)
    program = converted.program
    wrong = 0
    for row in rows[:200]:
        feeds = {"x": row[None]}
        found = program.dequantize(program.run(program.quantize(feeds)))["y"]
        wrong += bool(np.rint(found) != run(graph, feeds)["y"])
    assert wrong <= 2  # of 120 thresholds each; with 8 bits, half of the rows
    (note,) = [
        it for it in converted.conversion.remarks.notes if "then compared" in it
    ]
    assert "have 16 bits" in note


@pytest.mark.parametrize(
    ("joined", "more"),
    [
        ("scaled", ()),
        ("moved", [node("Reshape", "scaled shape", "moved")]),
        ("again", [node("Mul", "scaled inverse", "again")]),
    ],
)
def test_scaled_columns_that_comparisons_read_have_16_bits(joined, more):
    bits = bits_of(stumps(joined, *more))
    assert bits["scaled"] == bits[joined] == 16


@pytest.mark.parametrize(
    "more",
    [
        [node("MatMul", "scaled w", "product")],
        [node("Relu", "scaled", "positive")],
    ],
)
def test_columns_that_others_read_too_keep_theirs(more):
    (reader,) = more
    result = reader.output[0]
    graph = stumps("scaled", *more, node("Sign", result, "used"))
    graph.graph.outputs.append(
        next(n for n in graph.graph if n.op_type == "Sign").outputs[0]
    )
    assert bits_of(graph) == {}


def test_columns_that_are_an_output_keep_theirs():
    graph = stumps()
    scaled = next(n for n in graph.graph if n.op_type == "Mul").outputs[0]
    graph.graph.outputs.append(scaled)
    assert bits_of(graph) == {}


@pytest.mark.parametrize(
    "options",
    [
        QuantizeOptions(**PURPOSES["fhe"]),
        QuantizeOptions(activation_bits=16),
        QuantizeOptions(activation_bits=7),
    ],
)
def test_other_bits_stay(options):
    changed, note = with_scaled_column_bits(stumps(), options)
    assert (changed, note) == (options, "")


def test_bits_of_their_own_stay():
    own = {"scaled": LayerBits(activation_bits=8)}
    assert bits_of(stumps(), QuantizeOptions(layers=own))["scaled"] == 8


def test_what_no_table_gives_keeps_its_bits():
    weights = {**SCALER, "half": np.float32([0.5])}
    nodes = [
        node("Relu", "x", "positive"),
        node("Add", "positive mean", "centred"),
        node("Greater", "centred half", "passed"),
        node("Cast", "passed", "y", to=TensorProto.FLOAT),
    ]
    assert bits_of(graph_of(nodes, {"x": (1, 3)}, weights)) == {}


def bits_of(graph, options=None):
    changed, note = with_scaled_column_bits(graph, options or QuantizeOptions())
    assert bool(note) == (changed != (options or QuantizeOptions()))
    return {name: of.activation_bits for name, of in changed.layers.items()}
