"""lower_arctangent and sign_infinities: the same as onnxruntime for 0 / 0 and x / 0, also in a program."""

import numpy as np
import onnx
import pytest

import mrt
from mrt.graph.infer_shapes import infer_shapes
from mrt.rewrite import rewrite
from mrt.rewrite.elementwise.sign_infinities import sign_infinities
from tests.support.graphs import build, graph_of, node, operators_of, run

A = np.array([[0, 0, 0, 2, -2, 3, -3, 1, -1, 2]], np.float32)
B = np.array([[0, 2, -2, 0, 0, 1, 1, -3, -3, 2]], np.float32)
NUMBERS = {
    "zero": np.float32(0),
    "pi": np.float32(np.pi),
    "low": np.float32(-9),
    "high": np.float32(9),
}
ATAN2 = [
    node("Div", "x z", "q"), node("Atan", "q", "t"),
    node("Greater", "x zero", "above"), node("Add", "t pi", "up"),
    node("Sub", "t pi", "down"), node("Where", "above up down", "turned"),
    node("Less", "z zero", "left"), node("Where", "left turned t", "v"),
    node("IsNaN", "v", "none"), node("Where", "none zero v", "y"),
]  # fmt: skip
NAN_TO_NUM = [
    node("Div", "x z", "q"), node("IsNaN", "q", "none"),
    node("Where", "none zero q", "w"), node("IsInf", "q", "inf"),
    node("Less", "q zero", "n"), node("And", "n inf", "least"),
    node("Where", "least low w", "w2"), node("Greater", "q zero", "p"),
    node("And", "p inf", "most"), node("Where", "most high w2", "y"),
]  # fmt: skip


@pytest.mark.parametrize("nodes", [ATAN2, NAN_TO_NUM])
def test_zeros_give_what_float_gives(nodes):
    model = graph_of(nodes, {"x": A.shape, "z": B.shape}, NUMBERS)
    expected = run(model, {"x": A, "z": B})["y"]
    rewrite(model)
    found = run(model, {"x": A, "z": B})["y"]
    assert not {"IsNaN", "IsInf"} & set(operators_of(model))
    assert np.isfinite(expected).all()
    assert np.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("nodes", "most"), [(ATAN2, 0.05), (NAN_TO_NUM, 0.1)])
def test_a_program_gives_it_too(nodes, most, tmp_path):
    """Small integers, so that many are 0 and all are exact."""
    random = np.random.default_rng(3)
    feeds = {
        name: random.integers(-3, 4, (64, 1, 10)).astype(np.float32)
        for name in "xz"
    }
    proto = build(nodes, {"x": (1, 10), "z": (1, 10)}, NUMBERS)
    onnx.save(proto, tmp_path / "m.onnx")
    program = mrt.convert(tmp_path / "m.onnx", feeds, bits=8).program
    found = program.dequantize(program.run(program.quantize(feeds)))["y"]
    for place in range(64):
        sample = {name: array[place] for name, array in feeds.items()}
        expected = run(proto, sample)["y"]
        assert np.abs(found[place] - expected).max() < most


def test_the_sign_of_an_infinite_numerator_is_not_that_of_the_quotient():
    nodes = [
        node("Log", "x", "l"), node("Div", "l z", "q"), node("IsInf", "q", "i"),
        node("Less", "q zero", "n"), node("And", "n i", "b"), node("Cast", "b", "y", to=1),
    ]  # fmt: skip
    model = graph_of(nodes, {"x": (4,), "z": (4,)}, NUMBERS)
    infer_shapes(model)
    assert sign_infinities(model) == 0


def test_only_the_comparison_of_an_infinite_quotient_reads_the_numerator():
    nodes = [
        node("Div", "x z", "q"), node("IsInf", "z", "i"), node("Less", "q zero", "n"),
        node("And", "n i", "b"), node("Cast", "b", "y", to=1),
    ]  # fmt: skip
    model = graph_of(nodes, {"x": A.shape, "z": B.shape}, NUMBERS)
    infer_shapes(model)
    assert sign_infinities(model) == 0


def test_the_sign_of_an_infinite_quotient_is_that_of_its_numerator():
    """The numerator of x / 0 has a sign even where no quotient was measured on its side of 0."""
    model = graph_of(NAN_TO_NUM, {"x": A.shape, "z": B.shape}, NUMBERS)
    infer_shapes(model)
    assert sign_infinities(model) == 2
    readers = [n for n in model.graph if n.op_type in ("Less", "Greater")]
    assert {n.inputs[0].name for n in readers if n.outputs[0].uses()} == {"x"}
