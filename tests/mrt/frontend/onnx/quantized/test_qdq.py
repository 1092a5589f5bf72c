"""Models that are quantized already are read as the float models that they stand for, clipped where their integers end."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.quantized.qdq import NOTE
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import canonical, rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import f32, run_real
from tests.support.graphs import build, node, operators_of, run
from tests.support.shared_data import SHARED, needs_shared

RNG = np.random.default_rng(17)
SHAPE = (1, 3, 8, 8)
BOUNDS = {
    8: 40,
    16: 55,
}  # dB: what the quantized model loses by rounding every value to so many bits


def weights(*shape):
    return (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(
        np.float32
    )


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


def network():
    nodes = [
        node("Conv", "x w1 b1", "c1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 w2 b2", "c2", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "c2 p1", "a"),
        node("Sigmoid", "a", "g"),
        node("Concat", "g a", "j", axis=1),
        node("GlobalAveragePool", "j", "m"),
        node("Flatten", "m", "f"),
        node("MatMul", "f w3", "y"),
    ]
    arrays = {"w1": weights(6, 3, 3, 3), "b1": weights(6), "w2": weights(6, 6, 3, 3), "b2": weights(6),
              "w3": weights(12, 5)}  # fmt: skip
    return build(nodes, {"x": SHAPE}, arrays, opset=21)


def quantized(proto, folder, samples, **options):
    onnx.save(proto, folder / "float.onnx")
    quantize_static(
        folder / "float.onnx", folder / "m.onnx", Samples(samples), **options
    )
    return onnx.load(folder / "m.onnx")


def loaded(proto, folder):
    onnx.save(proto, folder / "m.onnx")
    return load_onnx(folder / "m.onnx")[0]


def snr(expected, found):
    return 10 * np.log10(
        (expected.astype(np.float64) ** 2).sum()
        / ((expected - found) ** 2).sum()
    )


KINDS = [
    (QuantFormat.QDQ, QuantType.QUInt8, QuantType.QInt8, False),
    (QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True),
    (QuantFormat.QDQ, QuantType.QInt16, QuantType.QInt8, True),
    (QuantFormat.QDQ, QuantType.QUInt16, QuantType.QUInt8, False),
    (QuantFormat.QOperator, QuantType.QUInt8, QuantType.QUInt8, False),
    (QuantFormat.QOperator, QuantType.QInt8, QuantType.QInt8, True),
]


@pytest.mark.parametrize(("form", "values", "stored", "per_channel"), KINDS)
def test_a_statically_quantized_model_keeps_its_meaning_to_the_integers(
    form, values, stored, per_channel, tmp_path
):
    samples = synthetic_samples({"x": SHAPE}, 12, 0)
    proto = network()
    made = quantized(
        proto,
        tmp_path,
        samples,
        quant_format=form,
        activation_type=values,
        weight_type=stored,
        per_channel=per_channel,
    )
    assert any("QLinear" in entry.op_type for entry in made.graph.node) == (
        form == QuantFormat.QOperator
    )
    model = loaded(made, tmp_path)
    assert model.metadata_props["mrt_notes"] == NOTE
    rewrite(model)
    assert set(operators_of(model)) <= set(canonical.CANONICAL_OPERATORS)
    table = calibrate(
        model,
        samples,
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, 16))
    expected = np.concatenate([run(made, sample)["y"] for sample in samples])
    read = np.concatenate([run(model, sample)["y"] for sample in samples])
    found = np.concatenate(
        [run_real(program, sample)["y"] for sample in samples]
    )
    bound = BOUNDS[16 if values in (QuantType.QInt16, QuantType.QUInt16) else 8]
    assert min(snr(expected, read), snr(expected, found)) > bound


def in_qlinear_operators(proto, folder, samples):
    return quantized(
        proto,
        folder,
        samples,
        quant_format=QuantFormat.QOperator,
        activation_type=QuantType.QUInt8,
    )


def test_every_operator_of_integers_that_onnxruntime_writes_is_read(tmp_path):
    nodes = [
        node("LeakyRelu", "x", "l", alpha=0.125),
        node("AveragePool", "l", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Sigmoid", "p", "g"),
        node("Mul", "p g", "m"),
        node("Flatten", "m", "f"),
        node("Gemm", "f w b", "t", transB=1),
        node("Softmax", "t", "y", axis=-1),
    ]
    proto = build(
        nodes, {"x": SHAPE}, {"w": weights(5, 48), "b": weights(5)}, opset=13
    )
    samples = synthetic_samples({"x": SHAPE}, 12, 0)
    made = in_qlinear_operators(proto, tmp_path, samples)
    found = {entry.op_type for entry in made.graph.node}
    assert {
        "QLinearLeakyRelu",
        "QLinearAveragePool",
        "QLinearSigmoid",
        "QLinearMul",
        "QGemm",
        "QLinearSoftmax",
    } <= found
    model = loaded(made, tmp_path)
    expected, read = (
        np.concatenate([run(item, sample)["y"] for sample in samples])
        for item in (made, model)
    )
    assert snr(expected, read) > BOUNDS[8]


@pytest.mark.parametrize("shape", [(2, 6), (2, 3, 4)])
def test_a_softmax_before_opset_13_is_that_of_all_axes_from_its_own(
    shape, tmp_path
):
    nodes = [
        node("LeakyRelu", "x", "l", alpha=0.125),
        node("Softmax", "l", "y", axis=1),
    ]
    proto = build(nodes, {"x": shape}, opset=12)
    samples = synthetic_samples({"x": shape}, 12, 0)
    made = in_qlinear_operators(proto, tmp_path, samples)
    assert "QLinearSoftmax" in {entry.op_type for entry in made.graph.node}
    model = loaded(made, tmp_path)
    expected, read = (
        np.concatenate([run(item, sample)["y"] for sample in samples])
        for item in (made, model)
    )
    assert snr(expected, read) > 35  # probabilities in steps of 1 / 256


X = f32([[-9.0, -1.0, -0.3, 0.0, 0.1, 0.6, 3.0, 9.0]])
PAIR = [
    node("QuantizeLinear", "x s z", "q"),
    node("DequantizeLinear", "q s z", "y"),
]


def pair(zero, scale=0.0625, nodes=PAIR, **options):
    return build(
        nodes,
        {"x": X.shape},
        {"s": np.float32(scale), "z": zero},
        **{"opset": 21} | options,
    )


@pytest.mark.parametrize(
    ("zero", "low", "high"),
    [(np.uint8(0), 0, 255), (np.uint8(16), -16, 239), (np.int8(0), -128, 127), (np.int16(5), -32773, 32762),
     (np.uint16(9), -9, 65526), (ml_dtypes.int4(0), -8, 7)],
)  # fmt: skip
def test_a_pair_on_a_value_is_a_clip_to_what_its_integers_hold(
    zero, low, high, tmp_path
):
    proto = pair(np.array(zero))
    proto.ir_version = 10
    found = run(loaded(proto, tmp_path), {"x": X})["y"]
    assert found.tolist() == X.clip(low / 16, high / 16).tolist()
    assert (
        np.abs(run(proto, {"x": X})["y"] - found).max() <= 1 / 32
    )  # half a step


@pytest.mark.parametrize(
    ("operator", "scale", "zero", "clipped"),
    [
        ("Sigmoid", 1 / 255, 0, False),
        ("Sigmoid", 1 / 256, 0, True),
        ("Relu", 1 / 16, 0, True),
        ("Tanh", 1 / 127, 128, False),
    ],
)
def test_what_cannot_leave_the_range_is_not_clipped(
    operator, scale, zero, clipped, tmp_path
):
    nodes = [
        node(operator, "x", "v"),
        node("QuantizeLinear", "v s z", "q"),
        node("DequantizeLinear", "q s z", "y"),
    ]
    model = loaded(pair(np.uint8(zero), scale, nodes), tmp_path)
    assert ("Clip" in operators_of(model)) == clipped


def test_integers_are_moved_as_what_they_stand_for(tmp_path):
    nodes = [
        PAIR[0],
        node("Reshape", "q shape", "r"),
        node("DequantizeLinear", "r s z", "y"),
    ]
    arrays = {
        "s": np.float32(0.0625),
        "z": np.uint8(16),
        "shape": np.array([2, 4]),
    }
    model = loaded(build(nodes, {"x": X.shape}, arrays, opset=21), tmp_path)
    assert operators_of(model) == ["Clip", "Reshape", "Identity"]
    assert (
        run(model, {"x": X})["y"].tolist()
        == X.clip(-1, 239 / 16).reshape(2, 4).tolist()
    )


@pytest.mark.parametrize("zero", [np.uint8(16), np.int8(-3), np.int16(100)])
def test_integers_that_are_read_as_such_are_rounded_and_saturated(
    zero, tmp_path
):
    proto = pair(
        zero,
        0.03,
        [node("QuantizeLinear", "x s z", "y")],
        kind=onnx.TensorProto.FLOAT,
    )
    proto.graph.output[
        0
    ].type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(
        zero.dtype
    )
    expected, found = (
        run(item, {"x": X})["y"] for item in (proto, loaded(proto, tmp_path))
    )
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_integers_that_are_given_are_what_they_stand_for(tmp_path):
    proto = pair(
        np.int8(3),
        0.1,
        [node("DequantizeLinear", "x s z", "y")],
        kind=onnx.TensorProto.INT8,
    )
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    x = np.array([[-128, -1, 0, 1, 3, 50, 126, 127]], np.int8)
    expected, found = (
        run(item, {"x": x})["y"] for item in (proto, loaded(proto, tmp_path))
    )
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("scale", "zero", "axis"),
    [
        (np.float32(0.3), np.int8(3), 1),
        (f32([0.3, 0.7]), np.uint8([3, 200]), 0),
        (np.float32(0.5), ml_dtypes.int4(1), 1),
    ],
)
def test_weights_that_are_rounded_in_the_model_stay_rounded(
    scale, zero, axis, tmp_path
):
    """As quantization-aware training exports them; 0.25 / 0.5 and the like are halves, which go to even."""
    arrays = {
        "w": f32([[-9.0, 0.25, 0.75, 40], [1.05, -2.1, 3.3, 0]]),
        "s": scale,
        "z": np.array(zero),
    }
    nodes = [
        node("QuantizeLinear", "w s z", "q", axis=axis),
        node("DequantizeLinear", "q s z", "v", axis=axis),
        node("Add", "x v", "y"),
    ]
    proto = build(nodes, {"x": (1,)}, arrays, opset=21)
    proto.ir_version = 10
    zeros = {"x": np.zeros(1, np.float32)}
    model = loaded(proto, tmp_path)
    assert operators_of(model) == ["Add"]
    assert run(model, zeros)["y"].tolist() == run(proto, zeros)["y"].tolist()


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            {"s": f32([0.5] * 8), "z": np.zeros(8, np.int8)},
            "scales of channels or blocks, of values that are computed",
        ),
        (
            {"s": np.float32(0.5), "z": np.array(0, ml_dtypes.float8_e4m3fn)},
            "values of type float8e4m3fn",
        ),
        (
            {"s": np.float32(0.0), "z": np.int8(0)},
            "a scale of 0.0; expected a number above 0",
        ),
    ],
)
def test_what_has_no_one_step_is_refused(arrays, sentence, tmp_path):
    proto = build(PAIR, {"x": X.shape}, arrays, opset=21)
    proto.ir_version = 10
    with pytest.raises(
        Unsupported, match=rf"QuantizeLinear:q \(QuantizeLinear\): {sentence}"
    ):
        loaded(proto, tmp_path)


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        (99, "output_dtype=99, which is no type of ONNX"),
        (-1, "output_dtype=-1, which is no type of ONNX"),
        (8, "values of type string; expected integers of up to 16 bits"),
    ],
)
def test_integers_of_an_unknown_type_are_refused(stated, problem, tmp_path):
    nodes = [
        node("QuantizeLinear", "x s", "q", output_dtype=stated),
        node("DequantizeLinear", "q s", "y"),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [1, 4])],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(np.float32(0.5), "s")],
    )
    opsets = [onnx.helper.make_opsetid("", 21)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    with pytest.raises(Unsupported) as caught:
        loaded(proto, tmp_path)
    assert caught.value.problems == [
        f"QuantizeLinear:q (QuantizeLinear): {problem}"
    ]


def test_a_scale_that_is_computed_is_refused(tmp_path):
    nodes = [node("ReduceMax", "x", "s", keepdims=0), *PAIR]
    proto = build(nodes, {"x": X.shape}, {"z": np.int8(0)}, opset=21)
    with pytest.raises(
        Unsupported,
        match=r"\(QuantizeLinear\): its scale or zero point is computed; expected constants",
    ):
        loaded(proto, tmp_path)


@pytest.mark.parametrize(
    ("operands", "sentence"),
    [
        ("s z q s z q", "4 operands behind its scale"),
        ("s z q s z - s z", "an operand is missing"),
    ],
)
def test_integers_without_their_scales_are_refused(
    operands, sentence, tmp_path
):
    proto = pair(np.uint8(0))
    proto.graph.node.insert(
        1, node("QLinearConcat", operands, "c", axis=1, domain="com.microsoft")
    )
    proto.graph.node[2].input[0] = "c"
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(
        Unsupported, match=rf"QLinearConcat:c \(QLinearConcat\): .*{sentence}"
    ):
        loaded(proto, tmp_path)


@needs_shared
@pytest.mark.slow
def test_a_classifier_of_pictures_answers_as_the_float_model_that_was_quantized(
    tmp_path,
):
    with np.load(SHARED / "images" / "cifar10_jpeg.npz") as data:
        pictures = data["x_test"][:200].astype(np.float32).transpose(0, 3, 1, 2)
    files = [
        "qdq/mlperftiny_resnet8_cifar10_int8.qdq.onnx",
        "onnx/mlperftiny_resnet8_cifar10_fp32.onnx",
    ]
    stored, real = (onnx.load(SHARED / name) for name in files)
    read, _ = load_onnx(SHARED / files[0])
    found, expected, rounded = (
        np.concatenate(
            [
                run(model, {"input": picture[None]})["output"]
                for picture in pictures
            ]
        ).argmax(axis=1)
        for model in (read, real, stored)
    )
    assert (
        found == expected
    ).mean() >= 0.96  # what is left are the weights' 8 bits
    assert (
        found == rounded
    ).mean() >= 0.92  # and here the rounding of every value
