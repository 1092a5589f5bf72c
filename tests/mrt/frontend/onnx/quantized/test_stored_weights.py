"""DequantizeLinear of weights is the float tensor that onnxruntime makes of them."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from mrt.frontend.onnx import load_onnx
from tests.support.graphs import build, node, run

INTEGERS = np.arange(-60, 60, 10, dtype=np.int8).reshape(3, 4)


@pytest.mark.parametrize(
    ("arrays", "attributes", "opset"),
    [
        ({"a": INTEGERS, "s": np.float32(0.1), "z": np.int8(3)}, {}, 13),
        ({"a": INTEGERS, "s": np.float32([0.1, 0.7, 0.3]), "z": np.int8([1, -2, 0])}, {"axis": 0}, 13),
        ({"a": INTEGERS, "s": np.float32([0.1, 0.7, 0.3, 2.5])}, {}, 13),
        ({"a": INTEGERS.astype(np.int32), "s": np.float32(0.1)}, {}, 10),
        ({"a": INTEGERS, "s": np.float32([[0.1, 0.7], [0.2, 0.9], [5, 3]]), "z": np.int8([[0, 1], [2, 3], [4, 5]])},
         {"block_size": 2}, 21),
        ({"a": (INTEGERS // 10).astype(ml_dtypes.int4), "s": np.float32(0.1)}, {}, 21),
        ({"a": INTEGERS.astype(ml_dtypes.float8_e4m3fn), "s": np.float32(0.1)}, {}, 19),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_node", [False, True])
def test_weights_kept_as_integers_are_what_onnxruntime_makes_of_them(
    arrays, attributes, opset, as_node, tmp_path
):
    nodes = [
        node("DequantizeLinear", " ".join(arrays), "c", **attributes),
        node("Mul", "x c", "y"),
    ]
    proto = build(nodes, {"x": (1,)}, arrays, opset=opset)
    proto.ir_version = 10
    expected = run(proto, {"x": np.ones(1, np.float32)})["y"]
    if as_node:  # a Constant in the place of an initializer
        made = onnx.helper.make_node(
            "Constant", [], ["a"], value=proto.graph.initializer.pop(0)
        )
        proto.graph.node.insert(0, made)
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert "a" not in model.graph.initializers
    assert (
        run(model, {"x": np.ones(1, np.float32)})["y"].tolist()
        == expected.tolist()
    )


@pytest.mark.parametrize("stated", [2, 3])
def test_weights_that_are_quantized_have_the_stated_type(stated, tmp_path):
    """Without a zero point, nothing else says that integers of 8 bits may be negative."""
    nodes = [
        node("QuantizeLinear", "k s", "q", output_dtype=stated),
        node("DequantizeLinear", "q s", "c"),
        node("Mul", "x c", "y"),
    ]
    weights = {"k": np.float32([-3.0, -0.2, 0.2, 3.0]), "s": np.float32(0.25)}
    proto = build(nodes, {"x": (1,)}, weights, opset=21)
    proto.ir_version = 10
    feeds = {"x": np.ones(1, np.float32)}
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert run(model, feeds)["y"].tolist() == run(proto, feeds)["y"].tolist()
