"""Models that onnxruntime has quantised dynamically: their weights are as stored, their values are floats again."""

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.dynamic import NOTE
from mrt.rewrite import canonical, rewrite
from tests.graphs import build, node, run, seeded

RNG = np.random.default_rng(12)
OF_8_BITS = 30  # dB: what the quantised model's values, rounded for each sample, lose


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def snr(expected, found):
    return 10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_a_dynamically_quantised_model(kind, per_channel, tmp_path):
    nodes = [
        node("Conv", "x w b", "c", kernel_shape=[3, 3]),
        node("Relu", "c", "r"),
        node("Flatten", "r", "f"),
        node("MatMul", "f m", "p"),
        node("Add", "p n", "y"),
    ]
    arrays = {"w": weights(4, 3, 3, 3), "b": weights(4), "m": weights(36, 5) + np.float32(0.5), "n": weights(5)}
    proto = build(nodes, {"x": (1, 3, 5, 5)}, arrays, opset=13)
    proto.opset_import[0].version = 13
    onnx.save(proto, tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "m.onnx", weight_type=kind, per_channel=per_channel)
    operators = {entry.op_type for entry in onnx.load(tmp_path / "m.onnx").graph.node}
    assert "DynamicQuantizeLinear" in operators and "MatMulInteger" in operators
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert model.metadata_props["mrt_notes"] == NOTE
    rewrite(model)
    assert all(entry.op_type in canonical.CANONICAL_OPERATORS for entry in model.graph)
    feeds = seeded({"x": (1, 3, 5, 5)})
    found = run(model, feeds)["y"]
    assert snr(run(onnx.load(tmp_path / "m.onnx"), feeds)["y"], found) > OF_8_BITS
    assert snr(run(proto, feeds)["y"], found) > OF_8_BITS


def test_products_of_integers_that_are_given_are_refused(tmp_path):
    kind = onnx.TensorProto.INT8
    proto = build([node("MatMulInteger", "x w", "y")], {"x": (2, 3)}, {"w": np.ones((3, 4), np.int8)}, kind=kind)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match=r"\(MatMulInteger\): .*integers in a form that is not read"):
        load_onnx(tmp_path / "m.onnx")
