"""infer_shapes: only the part of a graph that is unknown is given to ONNX's inference."""

from itertools import pairwise

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import shape_inference

from mrt.graph.infer_shapes import infer_shapes
from tests.support.graphs import graph_of, node

LONG = 200


@pytest.fixture
def sizes_given(monkeypatch):
    """The number of nodes of every graph that was given to ONNX's inference."""
    given = []
    real = shape_inference.infer_shapes

    def counted(model, **options):
        given.append(len(list(model.graph)))
        return real(model, **options)

    monkeypatch.setattr(shape_inference, "infer_shapes", counted)
    return given


def forget(model, *names):
    for each in model.graph:
        for value in each.outputs:
            if value.name in names:
                value.shape = value.type = None


def shapes(model):
    return {
        value.name: tuple(value.shape)
        for each in model.graph
        for value in each.outputs
        if value.name
    }


def test_one_unknown_value_of_many_is_inferred_alone(sizes_given):
    names = ["x", *(f"v{i}" for i in range(LONG)), "y"]
    nodes = [node("Relu", before, after) for before, after in pairwise(names)]
    model = graph_of(nodes, {"x": (2, 3)}, {})
    forget(model, "v7")
    sizes_given.clear()
    infer_shapes(model)
    assert shapes(model)["v7"] == (2, 3)
    assert sizes_given == [1]
    infer_shapes(model)
    assert sizes_given == [1]


def test_a_shape_that_is_computed_is_known_to_its_readers(sizes_given):
    nodes = [
        node("Relu", "x", "r"),
        node("Shape", "r", "s"),
        node("Gather", "s reversed", "t"),
        node("Reshape", "r t", "m"),
        node("ReduceSum", "m", "e", keepdims=0),
        node("Relu", "e", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 3)}, {"reversed": [1, 0]})
    forget(model, "m", "e")
    sizes_given.clear()
    infer_shapes(model)
    assert shapes(model) == {
        "r": (2, 3),
        "s": (2,),
        "t": (2,),
        "m": (3, 2),
        "e": (),
        "y": (),
    }
    assert sizes_given == [
        4
    ]  # neither Relu: what they give is known, and no list


def test_a_graph_with_bodies_is_inferred_whole(sizes_given):
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[2,3] x) => (float[2,3] y) {
      r = Relu(x)
      b = If (c) <then_branch = t () => (float[2,3] u) { u = Neg(r) }, else_branch = f () => (float[2,3] v) { v = Abs(r) }>
      y = Relu(b)
    }"""
    model = ir.from_onnx_text(text)
    infer_shapes(model)
    assert shapes(model) == dict.fromkeys("rby", (2, 3))
    assert sizes_given == [3]


def test_an_output_that_is_left_out_is_not_asked_for(sizes_given, capfd):
    weights = {
        "w": np.zeros((1, 8, 3), np.float32),
        "r": np.zeros((1, 8, 2), np.float32),
    }
    nodes = [
        node("LSTM", "x w r", "- h -", hidden_size=2),
        node("Relu", "h", "y"),
    ]
    model = graph_of(nodes, {"x": (5, 1, 3)}, weights)
    infer_shapes(model)
    assert sizes_given == []
    forget(model, "h")
    infer_shapes(model)
    assert shapes(model)["h"] == (1, 1, 2)
    assert sizes_given == [1]
    assert capfd.readouterr().err == ""
