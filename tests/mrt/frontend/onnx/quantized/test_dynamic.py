"""Models that onnxruntime has quantized dynamically: their weights are as stored, their values are floats again."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.quantized import dynamic_biases
from mrt.frontend.onnx.quantized.dynamic import NOTE
from mrt.rewrite import canonical, rewrite
from tests.support.graphs import build, node, run, seeded

RNG = np.random.default_rng(12)
OF_8_BITS = (
    30  # dB: what the quantized model's values, rounded for each sample, lose
)


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def snr(expected, found):
    return 10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_a_dynamically_quantized_model(kind, per_channel, tmp_path):
    nodes = [
        node("Conv", "x w b", "c", kernel_shape=[3, 3]),
        node("Relu", "c", "r"),
        node("Flatten", "r", "f"),
        node("MatMul", "f m", "p"),
        node("Add", "p n", "y"),
    ]
    arrays = {
        "w": weights(4, 3, 3, 3),
        "b": weights(4),
        "m": weights(36, 5) + np.float32(0.5),
        "n": weights(5),
    }
    proto = build(nodes, {"x": (1, 3, 5, 5)}, arrays, opset=13)
    proto.opset_import[0].version = 13
    onnx.save(proto, tmp_path / "float.onnx")
    quantize_dynamic(
        tmp_path / "float.onnx",
        tmp_path / "m.onnx",
        weight_type=kind,
        per_channel=per_channel,
    )
    operators = {
        entry.op_type for entry in onnx.load(tmp_path / "m.onnx").graph.node
    }
    assert "DynamicQuantizeLinear" in operators and "MatMulInteger" in operators
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert model.metadata_props["mrt_notes"] == NOTE
    rewrite(model)
    assert all(
        entry.op_type in canonical.CANONICAL_OPERATORS for entry in model.graph
    )
    feeds = seeded({"x": (1, 3, 5, 5)})
    found = run(model, feeds)["y"]
    assert (
        snr(run(onnx.load(tmp_path / "m.onnx"), feeds)["y"], found) > OF_8_BITS
    )
    assert snr(run(proto, feeds)["y"], found) > OF_8_BITS


def test_products_of_integers_that_are_given_are_refused(tmp_path):
    kind = onnx.TensorProto.INT8
    proto = build(
        [node("MatMulInteger", "x w", "y")],
        {"x": (2, 3)},
        {"w": np.ones((3, 4), np.int8)},
        kind=kind,
    )
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"\(MatMulInteger\): .*integers in a form that is not read",
    ):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_dynamically_quantized_lstm(per_channel, direction, tmp_path):
    ways, hidden = 1 + (direction == "bidirectional"), 6
    arrays = {
        "w": weights(ways, 4 * hidden, 5),
        "r": weights(ways, 4 * hidden, hidden),
        "b": weights(ways, 8 * hidden),
    }
    nodes = [
        node("LSTM", "x w r b", "y", hidden_size=hidden, direction=direction)
    ]
    proto = build(nodes, {"x": (3, 1, 5)}, arrays, opset=13)
    proto.opset_import[0].version = 13
    onnx.save(proto, tmp_path / "float.onnx")
    quantize_dynamic(
        tmp_path / "float.onnx",
        tmp_path / "m.onnx",
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
    )
    assert [
        entry.op_type for entry in onnx.load(tmp_path / "m.onnx").graph.node
    ] == ["DynamicQuantizeLSTM"]
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert model.metadata_props["mrt_notes"] == NOTE
    feeds = seeded({"x": (3, 1, 5)})
    found = run(model, feeds)["y"]
    assert snr(run(proto, feeds)["y"], found) > OF_8_BITS
    if not per_channel:  # with a scale for each column, onnxruntime's own kernel is 10 to 30 dB from the float model
        assert (
            snr(run(onnx.load(tmp_path / "m.onnx"), feeds)["y"], found)
            > OF_8_BITS
        )


@pytest.mark.parametrize("bias", [False, True])
def test_what_the_optimiser_makes_of_dynamic_products(bias, tmp_path):
    nodes = [node("MatMul", "x m", "p"), *([node("Add", "p n", "q")] if bias else [node("Identity", "p", "q")]),
             node("MatMul", "x k", "o"), node("Add", "q o", "y")]  # fmt: skip
    arrays = {
        "m": weights(6, 4) + np.float32(0.5),
        "n": weights(4),
        "k": weights(6, 4),
    }
    proto = build(nodes, {"x": (2, 6)}, arrays, opset=13)
    proto.opset_import[0].version = 13
    onnx.save(proto, tmp_path / "float.onnx")
    quantize_dynamic(
        tmp_path / "float.onnx",
        tmp_path / "q.onnx",
        weight_type=QuantType.QUInt8,
    )
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    )
    onnxruntime.InferenceSession(tmp_path / "q.onnx", options)
    operators = {
        entry.op_type for entry in onnx.load(tmp_path / "m.onnx").graph.node
    }
    assert operators & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}, (
        operators
    )
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (2, 6)})
    assert snr(run(proto, feeds)["y"], run(model, feeds)["y"]) > OF_8_BITS


def test_a_bias_in_steps_of_the_values_scale(tmp_path):
    """As older quantizers wrote it: floor(bias / scale) in i32 is added to the sum of integers."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    main (float[1, 3, 5, 5] x) => (float[1, 4, 3, 3] y) <float size = {0.01}, int64[4] shape = {1, -1, 1, 1}> {
      q, s, z = DynamicQuantizeLinear (x)
      c = ConvInteger <kernel_shape = [3, 3]> (q, w, z)
      f = Mul (s, size)
      d = Div (b, f)
      e = Floor (d)
      i = Cast <to = 6> (e)
      g = Reshape (i, shape)
      h = Add (c, g)
      r = Cast <to = 1> (h)
      y = Mul (r, f)
    }"""
    proto = onnx.parser.parse_model(text)
    integers = RNG.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8)
    proto.graph.initializer.extend([
        onnx.numpy_helper.from_array(integers, "w"), onnx.numpy_helper.from_array(np.float32([0.004, 1.5, -0.007, -3]), "b")
    ])  # fmt: skip
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (1, 3, 5, 5)})
    expected, found = run(proto, feeds)["y"], run(model, feeds)["y"]
    assert snr(expected, found) > OF_8_BITS
    assert (
        abs((expected - found).mean()) < 0.02
    )  # 0.01 for each bias that is only rounded down would show


# as onnx_quantize writes a Gemm
GEMM = """<ir_version: 8, opset_import: ["" : 13]>
main (float[2, 6] x) => (float[2, 4] y) <int64 two = {2}, int64 bits = {BITS}, int64 one = {1}, float[4] b = {0.4, -2.5, 0.07, 3}> {
  q, s, z = DynamicQuantizeLinear (x)
  c = MatMulInteger (q, w, z)
  f = Mul (s, size)
  d = Div (b, f)
  e = Cast <to = 6> (d)
  p = Pow (two, bits)
  n = Neg (p)
  least = Cast <to = 6> (n)
  r = Sub (p, one)
  most = Cast <to = 6> (r)
  i = Clip (e, least, most)
  h = Add (c, i)
  g = Mul (s, size)
  y = DequantizeLinear (h, g)
}"""


def gemm(folder, bits, size, text=GEMM):
    proto = onnx.parser.parse_model(text.replace("BITS", str(bits)))
    integers = RNG.integers(-100, 100, (6, 4)).astype(np.int8)
    proto.graph.initializer.extend([
        onnx.numpy_helper.from_array(integers, "w"), onnx.numpy_helper.from_array(np.float32(size), "size")
    ])  # fmt: skip
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize("size", [0.01, [0.01, 0.02, 0.005, 0.01]])
def test_a_sum_that_a_computed_scale_dequantizes(size, tmp_path):
    proto = gemm(tmp_path, 31, size)
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert model.metadata_props["mrt_notes"] == NOTE
    feeds = seeded({"x": (2, 6)})
    assert snr(run(proto, feeds)["y"], run(model, feeds)["y"]) > OF_8_BITS


@pytest.mark.parametrize("axis", ["", " <axis = 2>"])
def test_scales_of_a_product_of_rank_3_are_along_its_last_axis(axis, tmp_path):
    text = GEMM.replace("[2, 6]", "[2, 4, 6]").replace(
        "[2, 4] y", "[2, 4, 4] y"
    )
    text = text.replace("DequantizeLinear (h", f"DequantizeLinear{axis} (h")
    proto = gemm(tmp_path, 31, [0.01, 0.02, 0.005, 0.01], text)
    if not axis:  # of rows, which are as many
        with pytest.raises(
            Unsupported, match="scale or zero point is computed"
        ):
            load_onnx(tmp_path / "m.onnx")
        return
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (2, 4, 6)})
    assert snr(run(proto, feeds)["y"], run(model, feeds)["y"]) > OF_8_BITS


@pytest.mark.parametrize("array", ["w", "b"])
def test_scales_of_rows_that_weights_or_a_bias_bring_are_refused(
    array, tmp_path
):
    """Of x [4, 6] each gives [2, 4, 4], whose axis 1 is that of rows."""
    text = GEMM.replace("[2, 6]", "[4, 6]").replace("[2, 4] y", "[2, 4, 4] y")
    if array == "b":
        text = text.replace(
            "float[4] b = {0.4, -2.5, 0.07, 3}",
            "float[2, 1, 4] b = {1, 2, 3, 4, 5, 6, 7, 8}",
        )
    proto = gemm(tmp_path, 31, [0.01, 0.02, 0.005, 0.01], text)
    if array == "w":
        (weights,) = (it for it in proto.graph.initializer if it.name == "w")
        twice = np.stack([onnx.numpy_helper.to_array(weights)] * 2)
        weights.CopyFrom(onnx.numpy_helper.from_array(twice, "w"))
        onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="scale or zero point is computed"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("many", [1, 200])
def test_limits_are_computed_once(many, tmp_path, monkeypatch):
    proto = onnx.parser.parse_model(GEMM.replace("BITS", "31"))
    (add,) = (node for node in proto.graph.node if node.op_type == "Add")
    for index in range(many):
        other = proto.graph.node.add()
        other.CopyFrom(add)
        other.output[0] = f"h{index}"
    computed = []
    monkeypatch.setattr(dynamic_biases, "ReferenceEvaluator", computed.append)
    dynamic_biases.rounded_biases(proto)
    assert len(computed) == 2


def test_a_bias_that_is_cut_off_is_not_read_as_rounded(tmp_path):
    """In steps of each sample's scale, less would be left of it in one sample than in another."""
    gemm(tmp_path, 7, 0.01)
    with pytest.raises(Unsupported, match="scale or zero point is computed"):
        load_onnx(tmp_path / "m.onnx")


def test_a_limit_of_more_than_one_number_is_not_computed(tmp_path, monkeypatch):
    """A few numbers of a file may ask for any amount of memory."""
    proto = gemm(tmp_path, 31, 0.01)
    nodes = proto.graph.node
    (clip,) = (node for node in nodes if node.op_type == "Clip")
    size = onnx.numpy_helper.from_array(np.full(5, 2**10, np.int64))
    place = list(nodes).index(clip)
    nodes.insert(
        place, onnx.helper.make_node("Expand", ["least", "many"], ["wide"])
    )
    nodes.insert(
        place, onnx.helper.make_node("Constant", [], ["many"], value=size)
    )
    clip.input[1] = "wide"
    onnx.save(proto, tmp_path / "m.onnx")
    computed = []
    monkeypatch.setattr(dynamic_biases, "ReferenceEvaluator", computed.append)
    with pytest.raises(Unsupported):
        load_onnx(tmp_path / "m.onnx")
    operators = {
        node.op_type for model in computed for node in model.graph.node
    }
    assert "Pow" in operators and "Expand" not in operators


PRODUCT = """<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
main (float[2, 3] x) => (float[2, 4] y) <float size = {0.01}> {
  q, s, z = DynamicQuantizeLinear (x)
  y = com.microsoft.MatMulIntegerToFloat (q, w, SCALES, ZERO)
}"""


@pytest.mark.parametrize("scales", ["s, size", "size, s"])
def test_the_scales_of_a_product_may_be_in_any_order(scales, tmp_path):
    """As onnxruntime's fusion copies them from a multiplication."""
    proto = onnx.parser.parse_model(
        PRODUCT.replace("SCALES", scales).replace("ZERO", "z")
    )
    proto.graph.initializer.append(
        onnx.numpy_helper.from_array(
            RNG.integers(-100, 100, (3, 4)).astype(np.int8), "w"
        )
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (2, 3)})
    assert snr(run(proto, feeds)["y"], run(model, feeds)["y"]) > OF_8_BITS


def test_a_product_with_another_zero_point_is_refused(tmp_path):
    proto = onnx.parser.parse_model(
        PRODUCT.replace("SCALES", "s, size").replace("ZERO", "other")
    )
    proto.graph.initializer.extend([
        onnx.numpy_helper.from_array(np.ones((3, 4), np.int8), "w"), onnx.numpy_helper.from_array(np.uint8(7), "other")
    ])  # fmt: skip
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="MatMulIntegerToFloat"):
        load_onnx(tmp_path / "m.onnx")


def test_rounded_values_that_are_no_bias_are_not_read_as_one(tmp_path):
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]>
    main (float[2, 3] x, float[2, 4] t) => (int32[2, 4] y) {
      q, s, z = DynamicQuantizeLinear (x)
      c = MatMulInteger (q, w, z)
      e = Floor (t)
      i = Cast <to = 6> (e)
      y = Add (c, i)
    }""")
    proto.graph.initializer.append(
        onnx.numpy_helper.from_array(np.ones((3, 4), np.int8), "w")
    )
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(BadModel, match="do not fit together"):
        load_onnx(tmp_path / "m.onnx")
