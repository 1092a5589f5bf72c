"""Programs of bytes: what the first instructions are, and that they lose nothing against the float model."""

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.graph.notes import set_picture_layout
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.picture_inputs import made_of_bytes
from mrt.rewrite import rewrite
from mrt.rewrite.image.picture_inputs import Pixels, take_pictures
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel
from tests.support.graphs import run as run_float

RNG = np.random.default_rng(5)
PIXELS = Pixels(
    (1 / 58.4, 1 / 57.1, 1 / 57.4), (-2.118, -2.036, -1.804), False, False
)
SHAPE = (1, 3, 8, 8)


def _pictures(count: int) -> list[dict[str, np.ndarray]]:
    return [
        {"x": RNG.integers(0, 256, (1, 8, 8, 3)).astype(np.float32)}
        for _ in range(count)
    ]


def _program(model: ir.Model, seen=None, **options):
    """The program of a model, which is rewritten in place; calibrated on random pictures unless others are given."""
    take_pictures(model, "x", PIXELS)
    rewrite(model)
    seen = seen or _pictures(8)
    samples = Samples(
        ("x",), len(seen), None, "random pictures", lambda: iter(seen)
    )
    table = calibrate(
        model, samples, CalibrationOptions("minmax"), model_sha256=""
    )
    return validate(quantize(model, table, QuantizeOptions(**options)))


def _snr_db(model: ir.Model, proven) -> float:
    """Of the program's only output on new pictures, by the reference, against onnxruntime."""
    (output,), meaning = (
        proven.program.outputs,
        next(iter(proven.program.metadata.outputs.values())),
    )
    signal = noise = 0.0
    for picture in _pictures(4):
        expected = run_float(model, picture)[output.name].astype(np.float64)
        integers = run(proven, {"x": picture["x"].astype(np.uint8)})[
            output.name
        ]
        real = (
            integers.astype(np.float64) - meaning.zero_point
        ) * meaning.scale
        signal = signal + float((expected**2).sum())
        noise = noise + float(((expected - real) ** 2).sum())
    return 10 * float(np.log10(signal / noise))


def _convolution(pads=(1, 1, 1, 1)) -> ir.Model:
    model = FloatModel(x=SHAPE)
    weights = (
        RNG.integers(-127, 128, (4, 3, 3, 3))
        / 127
        / np.array(PIXELS.scale).reshape(1, 3, 1, 1)
        / 58
    )
    weights[:, :, 0, 0] = (
        127 / 127 / np.array(PIXELS.scale).reshape(1, 3) / 58
    )  # so that 8 bits hold every weight exactly
    model.conv("x", weights, RNG.normal(size=4), pads=pads)
    return ir.from_proto(model.proto("v0"))


def _instructions(proven) -> list[str]:
    return [item.name for item in proven.program.instructions]


def test_the_input_is_u8_in_nhwc_and_the_convolution_reads_i8():
    proven = _program(_convolution())
    (item,) = proven.program.inputs
    assert (item.name, item.type.dtype, item.type.shape, item.lo, item.hi) == (
        "x",
        "u8",
        (1, 8, 8, 3),
        0,
        255,
    )
    assert _instructions(proven) == [
        "rescale",
        "concat",
        "concat",
        "conv2d",
        "rescale",
        "transpose",
    ]
    convolution = proven.program.instructions[3]
    assert proven.types[convolution.operands[0]].dtype == "i8"
    assert convolution.attributes["pad"] == (0, 0, 0, 0)


def test_a_border_of_rounded_bytes_costs_little_and_without_one_nothing_is_lost():
    inside, padded = _convolution(pads=(0, 0, 0, 0)), _convolution()
    assert (
        _snr_db(inside, _program(inside)) > 75
    )  # 16 bits of output, exact weights: what is left is the output's rounding
    assert _snr_db(padded, _program(padded)) > 50


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_no_precision_of_activations_makes_a_byte_coarser(bits):
    model = _convolution()
    proven = _program(model, activation_bits=bits)
    assert _snr_db(model, proven) > 50
    assert {
        proven.types[item.operands[0]].dtype
        for item in proven.program.instructions
        if item.name == "conv2d"
    } == {"i8"}


def test_a_step_is_a_byte_though_only_dark_pictures_were_seen():
    dark = [{"x": picture["x"] // 4} for picture in _pictures(4)]
    proven = _program(_convolution(), dark)
    joined = proven.program.first_instruction + _instructions(proven).index(
        "concat"
    )
    meaning = proven.program.metadata.values[joined]
    assert (meaning.scale, meaning.zero_point) == (1.0, -128)


@pytest.mark.parametrize("scales", ["real", "shift"])
def test_what_is_no_convolution_reads_the_prepared_picture_in_16_bits(scales):
    model = FloatModel(x=SHAPE)
    flat = model.add("Reshape", "x", np.array([1, 192]))
    model.gemm(flat, np.eye(6, 192) * 127, np.zeros(6))
    graph = ir.from_proto(model.proto("v1"))
    proven = _program(graph, scales=scales)
    dense = next(
        item for item in proven.program.instructions if item.name == "dense"
    )
    assert proven.types[dense.operands[0]].dtype == "i16"
    assert _snr_db(graph, proven) > 75


def test_a_batch_normalization_in_front_takes_the_bytes_too():
    model = FloatModel(x=SHAPE)
    ones = np.ones(3, np.float32)
    model.add(
        "BatchNormalization", "x", ones, ones, ones, 4 * ones, epsilon=0.0
    )
    graph = ir.from_proto(model.proto("v0"))
    proven = _program(graph)
    assert "i16" not in {
        proven.types[item.operands[0]].dtype
        for item in proven.program.instructions[:-1]
    }
    assert _snr_db(graph, proven) > 60


def test_pictures_cut_up_and_joined_stay_bytes():
    """The first operators of a YOLO: four pictures of every other pixel, joined along the channels."""
    model = FloatModel(x=SHAPE)
    corners = [
        model.add(
            "Slice",
            "x",
            np.array([y, x]),
            np.array([8, 8]),
            np.array([2, 3]),
            np.array([2, 2]),
        )
        for y, x in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    joined = model.add("Concat", *corners, axis=1)
    model.conv(joined, RNG.normal(size=(4, 12, 1, 1)), np.zeros(4))
    graph = ir.from_proto(model.proto("v5"))
    take_pictures(graph, "x", Pixels((1.0,) * 3, (0.0,) * 3, True, False))
    rewrite(graph)
    seen = _pictures(4)
    samples = Samples(("x",), 4, None, "random pictures", lambda: iter(seen))
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256=""
    )
    proven = validate(quantize(graph, table, QuantizeOptions()))
    convolution = next(
        item for item in proven.program.instructions if item.name == "conv2d"
    )
    assert proven.types[convolution.operands[0]].dtype == "i8"
    assert _snr_db(graph, proven) > 35


def test_only_what_is_computed_from_bytes_alone_is_prepared():
    model = FloatModel(x=SHAPE, other=SHAPE)
    alone = model.add("Mul", "x", np.float32(2), name="alone")
    model.add("Add", alone, "other", name="mixed")
    graph = ir.from_proto(model.proto("mixed")).graph
    set_picture_layout(graph.inputs[0], "NHWC")
    assert made_of_bytes(graph, graph) == ({"x"}, {"alone"})
