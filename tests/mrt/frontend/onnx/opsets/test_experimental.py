"""Operators that ONNX dropped with opset 10: onnxruntime still runs them, and says what they mean."""

import numpy as np
import onnx
import pytest
from onnx import helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, run, seeded

SHAPE = (1, 3, 7, 6)
FORMS = {
    "Affine": ("Affine", {"alpha": 1.5, "beta": -0.25}, SHAPE),
    "Crop by a border": ("Crop", {"border": [1, 2, 3, 0]}, (1, 3, 5, 2)),
    "Crop to a size": (
        "Crop",
        {"border": [1, 2, 0, 0], "scale": [4, 3]},
        (1, 3, 4, 3),
    ),
    "Crop of nothing": ("Crop", {"border": [0, 0, 0, 0]}, SHAPE),
    "ImageScaler": (
        "ImageScaler",
        {"scale": 0.5, "bias": [-1.0, 2.0, 3.0]},
        SHAPE,
    ),
    "ParametricSoftplus": (
        "ParametricSoftplus",
        {"alpha": 0.5, "beta": 2.0},
        SHAPE,
    ),
    "ScaledTanh": ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}, SHAPE),
}


def model_of(operator, attributes, shape, opset=7):
    """The operator between two others, so that names are seen to stay."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node(operator, ["a"], ["b"], name="one", **attributes),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(name, 1, dims)
        for name, dims in (("x", SHAPE), ("y", shape))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3
    )


@pytest.mark.parametrize("name", FORMS)
def test_it_means_what_onnxruntime_computes(name, tmp_path):
    proto, path = model_of(*FORMS[name]), tmp_path / "m.onnx"
    onnx.save(proto, path)
    feeds = seeded({"x": SHAPE})
    model, _ = load_onnx(path)
    assert "b" in [
        value.name for entry in model.graph for value in entry.outputs
    ]
    assert_same(run(proto, feeds), run(model, feeds))


def test_scale_is_a_product_with_one_number(tmp_path):
    onnx.save(
        model_of("Scale", {"scale": 0.5}, SHAPE), path := tmp_path / "m.onnx"
    )
    model, _ = load_onnx(path)
    (found,) = run(model, {"x": np.full(SHAPE, 3, np.float32)}).values()
    assert (found == -1.5).all()  # -(3 * 0.5)


def test_a_newer_model_has_none(tmp_path):
    onnx.save(
        model_of("Affine", {"alpha": 1.5}, SHAPE, opset=12),
        path := tmp_path / "m.onnx",
    )
    with pytest.raises(
        Unsupported,
        match=r"one \(Affine\): an experimental operator, which ONNX dropped with opset 10",
    ):
        load_onnx(path)


@pytest.mark.parametrize(
    "attributes", [{"alpha": "much"}, {"beta": [1.0]}, {"gamma": 1.0}]
)
def test_attributes_that_it_never_had(attributes, tmp_path):
    onnx.save(
        model_of("Affine", attributes, SHAPE), path := tmp_path / "m.onnx"
    )
    with pytest.raises(
        Unsupported, match=r"one \(Affine\): an experimental operator"
    ):
        load_onnx(path)


@pytest.mark.parametrize("border", [[1, 1], [-1, 0, 0, 0]])
def test_a_border_that_is_none(border, tmp_path):
    onnx.save(
        model_of("Crop", {"border": border}, SHAPE), path := tmp_path / "m.onnx"
    )
    with pytest.raises(
        Unsupported, match=r"one \(Crop\): border=.*; expected 4 numbers"
    ):
        load_onnx(path)
