"""Models that are quantized already keep their scales: onnxruntime runs the same file as the judge."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from click.testing import CliRunner
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

from cvm.runtime.executable import Executable
from mrt import pipeline
from mrt.cli import cli
from mrt.config import Config, ModelSettings
from mrt.errors import Unsupported
from mrt.quantize import QuantizeOptions
from mrt.rewrite.onnx_file import save
from tests.support.graphs import build, node

pytestmark = pytest.mark.filterwarnings("ignore::cvm.errors.ClippedInput")
RNG = np.random.default_rng(23)
SHAPE = (1, 3, 10, 10)
SAMPLES = [RNG.normal(size=SHAPE).astype(np.float32) for _ in range(24)]


class Reader(CalibrationDataReader):
    def __init__(self):
        self.left = iter([{"x": sample} for sample in SAMPLES[:8]])

    def get_next(self):
        return next(self.left, None)


def weights(*shape):
    scale = np.sqrt(np.prod(shape[1:]))
    return (RNG.normal(size=shape) / scale).astype(np.float32)


def network():
    nodes = [
        node("Conv", "x w1 b1", "c1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 w2 b2", "c2", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "c2 p1", "a"),
        node("Conv", "a w3 b3", "c3", kernel_shape=[1, 1], group=6),
        node("Flatten", "c3", "f"),
        node("Gemm", "f w4 b4", "y", transB=1),
    ]
    arrays = {"w1": weights(6, 3, 3, 3), "b1": weights(6), "w2": weights(6, 6, 3, 3), "b2": weights(6),
              "w3": weights(6, 1, 1, 1), "b3": weights(6), "w4": weights(7, 150), "b4": weights(7)}  # fmt: skip
    return build(nodes, {"x": SHAPE}, arrays, opset=21)


def quantized(folder, **options):
    onnx.save(network(), folder / "float.onnx")
    path = folder / "m.onnx"
    quantize_static(folder / "float.onnx", path, Reader(), **options)
    return path


def converted(path, **options):
    config = Config(
        model=ModelSettings(path=path), quantization=QuantizeOptions(**options)
    )
    return pipeline.convert(config, table=None, progress=lambda *_: None)


def judged(path, *, fused=True, precise=True):
    """What onnxruntime computes from the file itself, for all samples but those it was calibrated on.

    Unless `precise`, products of unsigned by signed bytes saturate on an x86 processor without VNNI.
    """
    settings = ort.SessionOptions()
    if precise:
        settings.add_session_config_entry("session.x64quantprecision", "1")
    if not fused:
        level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.graph_optimization_level = level
    session = ort.InferenceSession(str(path), settings)
    name = session.get_inputs()[0].name
    return np.stack([session.run(None, {name: x})[0] for x in SAMPLES[8:]])


def answers(conversion):
    program = Executable.of(conversion.proven)
    name = program.inputs[0].name
    found = []
    for sample in SAMPLES[8:]:
        integers = program.run(program.quantize({name: sample}))
        found.append(next(iter(program.dequantize(integers).values())))
    return np.stack(found)


def step_of(path):
    """The scale of the file's last QuantizeLinear, from its bytes."""
    graph = onnx.load(path).graph
    numbers = {item.name: item for item in graph.initializer}
    last = [item for item in graph.node if item.op_type == "QuantizeLinear"][-1]
    return float(onnx.numpy_helper.to_array(numbers[last.input[1]]))


KINDS = [
    pytest.param(QuantType.QInt8, QuantType.QInt8, id="int8"),
    pytest.param(QuantType.QUInt8, QuantType.QInt8, id="uint8 values"),
    pytest.param(QuantType.QUInt8, QuantType.QUInt8, id="uint8 weights"),
    pytest.param(QuantType.QUInt8, QuantType.QInt4, id="int4 weights"),
]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("values", "stored"), KINDS)
def test_a_file_of_qdq_keeps_its_integers(
    values, stored, symmetric, per_channel, tmp_path
):
    path = quantized(
        tmp_path,
        quant_format=QuantFormat.QDQ,
        activation_type=values,
        weight_type=stored,
        per_channel=per_channel,
        extra_options={"ActivationSymmetric": symmetric},
    )
    result = converted(path)
    assert not result.synthetic
    expected, found = judged(path), answers(result)
    steps = np.abs(expected - found) / step_of(path)
    assert (steps < 1.01).all()
    assert (steps < 0.01).mean() > 0.97


def test_the_weights_of_the_program_are_the_integers_of_the_file(tmp_path):
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ, per_channel=True)
    program = converted(path).proven.program
    held = [
        item.tolist() for item in program.constants if item.dtype == np.int8
    ]
    stored = {
        item.name: onnx.numpy_helper.to_array(item)
        for item in onnx.load(path).graph.initializer
    }
    for name in ("w1", "w2", "w3"):
        integers = stored[f"{name}_quantized"].transpose(0, 2, 3, 1)
        assert integers.tolist() in held
    assert stored["w4_quantized"].tolist() in held


def narrow(folder, *, stored):
    """Values and weights of 4 bits in integers of 8, as Brevitas writes them; the weights as floats, or as integers."""

    def grid(name, kind, scale, bounds):
        quantize, clip = (f"{name} {scale} {kind}0", f"{name}.q {bounds[0]} {bounds[1]}")  # fmt: skip
        return [node("QuantizeLinear", quantize, f"{name}.q", axis=0), node("Clip", clip, f"{name}.c"),
                node("DequantizeLinear", f"{name}.c {scale} {kind}0", f"{name}.d", axis=0)]  # fmt: skip

    steps = np.float32([0.05, 0.06, 0.07, 0.04])
    w = weights(4, 3, 3, 3) * 3
    nodes = [*grid("x", "i", "s1", ("low", "high")), *grid("w", "i", "sw", ("low", "high")),
             node("Conv", "x.d w.d", "c", kernel_shape=[3, 3]), node("Relu", "c", "r"),
             *grid("r", "u", "s2", ("u0", "u15"))]  # fmt: skip
    arrays = {"w": w, "s1": np.float32(0.3), "s2": np.float32(0.2), "sw": steps, "iz": np.zeros(4, np.int8),
              "i0": np.int8(0), "low": np.int8(-7), "high": np.int8(7), "u0": np.uint8(0), "u15": np.uint8(15)}  # fmt: skip
    for item in nodes[3:6:2]:
        item.input[2] = "iz"
    if stored:
        del nodes[3]
        arrays["w.q"] = np.rint(arrays.pop("w") / steps[:, None, None, None]).astype(np.int8)  # fmt: skip
    proto = build(nodes, {"x": SHAPE}, arrays, outputs="r.d", opset=17)
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx", 0.2


@pytest.mark.parametrize("stored", [False, True])
def test_a_clip_of_integers_narrows_the_grid(stored, tmp_path):
    path, step = narrow(tmp_path, stored=stored)
    result = converted(path)
    assert not result.synthetic
    expected, found = judged(path, fused=False), answers(result)
    assert expected.max() == np.float32(15 * step)
    steps = np.abs(expected - found) / step
    assert (steps < 1.01).all()
    assert (steps < 0.01).mean() > 0.97
    sizes = [
        np.abs(np.array(item.tolist())).max()
        for item in result.proven.program.constants
        if item.size == 4 * 3 * 3 * 3
    ]
    assert sizes == [7]


def test_requantize_reads_the_file_as_a_float_model(tmp_path):
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ)
    result = converted(path, requantize=True)
    operators = {item.op_type for item in result.model.model.graph}
    assert "FakeQuantize" not in operators
    assert result.synthetic
    assert ["the program has scales of its own" in note for note in result.model.notes] == [True]  # fmt: skip


def test_an_average_rounds_ties_to_even(tmp_path):
    """Of the averages of four integers a quarter are ties.

    onnxruntime's own fused average adds the zero point first, here an odd one, and
    differs from its QuantizeLinear.
    """
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("AveragePool", "d", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", "p s z", "e"),
        node("DequantizeLinear", "e s z", "y"),
    ]
    arrays = {"s": np.array(0.5, np.float32), "z": np.array(3, np.int8)}
    onnx.save(build(nodes, {"x": SHAPE}, arrays), tmp_path / "m.onnx")
    result = converted(tmp_path / "m.onnx")
    expected = judged(tmp_path / "m.onnx", fused=False)
    assert (expected == answers(result)).all()
    reasons = [line.split(":")[0] for line in result.explanation()]
    assert "averages" in reasons and "sums of products" not in reasons


def test_the_explanation_names_every_value_and_the_reason(tmp_path):
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ)
    lines = "\n".join(converted(path).explanation())
    reasons = ("inputs: ", "sums of products: ", "sums: ")
    assert all(reason in lines for reason in reasons)
    values = ("r1_QuantizeLinear_Output (Conv)", "a_QuantizeLinear_Output (Add)", "y (Gemm)")  # fmt: skip
    assert all(value in lines for value in values)
    assert "measured" not in lines


@pytest.mark.parametrize("values", [QuantType.QInt16, QuantType.QUInt16])
def test_values_of_16_bits(values, tmp_path):
    path = quantized(
        tmp_path,
        quant_format=QuantFormat.QDQ,
        activation_type=values,
        weight_type=QuantType.QInt8,
        extra_options={"ActivationSymmetric": True},
    )
    expected, found = judged(path), answers(converted(path))
    assert (np.abs(expected - found) < 1.01 * step_of(path)).all()


def test_zero_points_of_16_bits_that_do_not_fit_are_refused_by_name(tmp_path):
    path = quantized(
        tmp_path,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt16,
        weight_type=QuantType.QInt8,
    )
    with pytest.raises(Unsupported, match=r"y_QuantizeLinear .*--requantize"):
        converted(path)


def test_weights_of_16_bits_are_refused_by_name(tmp_path):
    path = quantized(
        tmp_path,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt16,
    )
    with pytest.raises(Unsupported, match="w2_DequantizeLinear: weights of 16"):
        converted(path)
    converted(path, requantize=True)


def test_a_table_and_a_bias_of_16_bits_are_no_weights(tmp_path):
    nodes = [
        node("Gather", "t x", "e"),
        node("MatMul", "e w", "p"),
        node("Add", "p b", "y"),
    ]
    arrays = {"t": weights(30, 8), "w": weights(8, 5), "b": weights(5)}
    kind = onnx.TensorProto.INT64
    proto = build(nodes, {"x": (1, 6)}, arrays, opset=21, kind=kind)
    (output,) = proto.graph.output
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    onnx.save(proto, tmp_path / "float.onnx")
    reader = Reader()
    reader.left = iter([{"x": RNG.integers(0, 30, (1, 6))} for _ in range(8)])
    quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "m.onnx",
        reader,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt16,
        weight_type=QuantType.QInt8,
    )
    with pytest.raises(Unsupported) as caught:
        converted(tmp_path / "m.onnx")
    rounds = "of 16 bits; a program's have up to 15: --requantize rounds them"
    assert sorted(caught.value.problems) == [
        f"b_DequantizeLinear: a constant {rounds}",
        f"t_DequantizeLinear: a table {rounds}",
    ]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_operators_on_integers(kind, per_channel, tmp_path):
    path = quantized(
        tmp_path,
        quant_format=QuantFormat.QOperator,
        activation_type=kind,
        weight_type=kind,
        per_channel=per_channel,
    )
    operators = {item.op_type for item in onnx.load(path).graph.node}
    assert {"QLinearConv", "QLinearAdd"} <= operators
    # Signed by signed bytes do not saturate, and come out otherwise with that setting.
    expected = judged(path, precise=kind == QuantType.QUInt8)
    found = answers(converted(path))
    steps = np.abs(expected - found) / step_of_last_product(path)
    assert (steps < 1.01).all()
    assert (steps < 0.01).mean() > 0.97


def step_of_last_product(path):
    """The scale of the result of the last operator with weights: operand 6 or 7."""
    graph = onnx.load(path).graph
    numbers = {item.name: item for item in graph.initializer}
    last = [item for item in graph.node if item.op_type == "QGemm"][-1]
    return float(onnx.numpy_helper.to_array(numbers[last.input[7]]))


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_a_rewritten_file_keeps_the_grids(kind, tmp_path):
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ, activation_type=kind)  # fmt: skip
    before = converted(path)
    save(before.model.model, tmp_path / "rewritten.onnx")
    after = converted(tmp_path / "rewritten.onnx")
    assert not after.synthetic
    assert (answers(before) == answers(after)).all()


def test_weights_of_minus_128_need_one_product(tmp_path):
    """The steps are those of the file, not finer ones that another layer has."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w1 t1", "v1"),
        node("Conv", "d v1", "c", kernel_shape=[3, 3]),
        node("QuantizeLinear", "c u z", "r"),
        node("DequantizeLinear", "r u z", "e"),
        node("DequantizeLinear", "w2 t2", "v2"),
        node("Conv", "e v2", "f", kernel_shape=[1, 1]),
        node("QuantizeLinear", "f u z", "g"),
        node("DequantizeLinear", "g u z", "y"),
    ]
    scales = {"s": 0.031, "u": 0.53, "t1": 0.0117, "t2": 0.0234}
    first = RNG.integers(-60, 60, (4, 3, 3, 3), np.int8)
    second = RNG.integers(-128, 128, (4, 4, 1, 1), np.int8)
    second[0, 0] = -128
    arrays = {name: np.array(step, np.float32) for name, step in scales.items()}
    arrays |= {"z": np.array(-7, np.int8), "w1": first, "w2": second}
    onnx.save(build(nodes, {"x": SHAPE}, arrays), tmp_path / "m.onnx")
    result = converted(tmp_path / "m.onnx")
    written = [item.name for item in result.proven.program.instructions]
    assert written.count("conv2d") == 2
    steps = (judged(tmp_path / "m.onnx") - answers(result)) / 0.53
    assert (np.abs(steps) < 0.01).mean() > 0.999


def test_a_mask_of_logits_does_not_stretch_their_range(tmp_path):
    """The proven interval of what 16 bits hold would reach down to the mask, and leave nothing of the logits."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Greater", "x nought", "open"),
        node("Where", "open nought low", "mask"),
        node("Add", "d mask", "logits"),
        node("Softmax", "logits", "y", axis=-1),
    ]
    arrays = {
        "s": np.float32(0.031),
        "z": np.array(-7, np.int8),
        "nought": np.float32(0),
        "low": np.float32(-3e38),
    }
    onnx.save(build(nodes, {"x": SHAPE}, arrays), tmp_path / "m.onnx")
    result = converted(tmp_path / "m.onnx")
    expected, found = judged(tmp_path / "m.onnx"), answers(result)
    assert expected.max() > 0.4
    # A sign may differ for numbers that the input rounds to 0.
    assert (np.abs(expected - found) < 0.02).mean() > 0.98


def test_bits_of_weights_are_noted_to_be_those_of_the_file(tmp_path):
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ)
    (note,) = converted(path, weight_bits=4).remarks.notes
    assert note == (
        "the weights keep the bits of the model's file, which is quantized already: 4 are for weights "
        "that it has in float (--requantize chooses all anew)"
    )
    assert converted(path).remarks.notes == []


def test_noise_is_said_of_the_values_alone_that_the_file_leaves_open(tmp_path):
    """What computes in float behind a quantized model has no scale in the file."""
    path = quantized(tmp_path, quant_format=QuantFormat.QDQ)
    whole = CliRunner().invoke(cli, ["convert", str(path)])
    assert whole.exit_code == 0 and "warning" not in whole.stderr
    model = onnx.load(path)
    (end,) = model.graph.output
    model.graph.node.append(node("Mul", f"{end.name} {end.name}", "square"))
    model.graph.node.append(node("Mul", "square square", "fourth"))
    end.name = "fourth"
    onnx.save(model, path)
    said = CliRunner().invoke(cli, ["convert", str(path)]).stderr
    assert "gives the scales but of square: where" in said
    assert "lose accuracy" not in said
