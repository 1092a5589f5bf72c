"""Small graphs as exporters write them, from the file to the integers of 16 bits, held against onnxruntime on the file."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.graphs import build, node, run

RNG = np.random.default_rng(21)
SAMPLES = 6


def weights(*shape, scale=1.0):
    return (RNG.normal(size=shape) * scale).astype(np.float32)


def decibels(proto, folder, shape):
    """Signal to noise of the only float output over some samples of its own calibration."""
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    samples = synthetic_samples({"x": shape}, SAMPLES, 0)
    table = calibrate(
        model,
        samples,
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, 16))
    name = proto.graph.output[0].name
    signal = noise = 0.0
    for sample in samples:
        expected = run(proto, sample)[name]
        found = run_real(program, sample)[name]
        assert found.shape == expected.shape
        signal += float((expected.astype(np.float64) ** 2).sum())
        noise += float(((expected - found) ** 2).sum())
    return 10 * np.log10(signal / noise)


@pytest.mark.slow
def test_a_spatial_transformer_samples_next_to_the_places_it_computes(tmp_path):
    nodes = [
        node("GlobalAveragePool", "x", "m"),
        node("Flatten", "m", "f"),
        node("Gemm", "f w b", "t6", transB=1),
        node("Reshape", "t6 s", "t"),
        node("AffineGrid", "t size", "g"),
        node("GridSample", "x g", "y", padding_mode="zeros"),
    ]
    arrays = {"w": weights(6, 2, scale=0.3), "b": np.float32([0.9, 0.2, 0.1, -0.2, 0.8, 0.05]),
              "s": np.array([-1, 2, 3]), "size": np.array([1, 2, 9, 9])}  # fmt: skip
    assert (
        decibels(
            build(nodes, {"x": (1, 2, 9, 9)}, arrays), tmp_path, (1, 2, 9, 9)
        )
        > 30
    )


def test_a_constant_grid_is_a_product(tmp_path):
    grid = RNG.uniform(-1.1, 1.1, (1, 6, 5, 2)).astype(np.float32)
    proto = build(
        [node("GridSample", "x g", "y")], {"x": (1, 3, 8, 8)}, {"g": grid}
    )
    assert decibels(proto, tmp_path, (1, 3, 8, 8)) > 45


def test_queries_and_places_that_were_learned(tmp_path):
    """A detector's decoder: CumSum of a mask of ones gives sines, queries are products of weights."""
    ones = numpy_helper.from_array(np.array([1.0], np.float32))
    nodes = [
        node("ConstantOfShape", "sizes", "o", value=ones),
        node("CumSum", "o one", "c"),
        node("Sin", "c", "places"),
        node("Add", "x places", "keys"),
        node("MatMul", "q wq", "queries"),
        node("LayerNormalization", "queries ln lb", "normal"),
        node("Transpose", "keys", "k", perm=[0, 2, 1]),
        node("MatMul", "normal k", "scores"),
        node("Softmax", "scores", "shares"),
        node("MatMul", "shares keys", "y"),
    ]
    arrays = {"sizes": np.array([1, 7, 6]), "one": np.array(1), "q": weights(1, 4, 6), "wq": weights(6, 6, scale=0.5),
              "ln": np.ones(6, np.float32), "lb": weights(6, scale=0.1)}  # fmt: skip
    assert (
        decibels(build(nodes, {"x": (1, 7, 6)}, arrays), tmp_path, (1, 7, 6))
        > 42
    )


def test_a_loop_over_the_columns_of_its_input(tmp_path):
    """A recurrent cell that someone wrote out as a Scan."""
    inner = helper.make_graph(
        [
            node("MatMul", "s w", "p"),
            node("Add", "p r", "a"),
            node("Tanh", "a", "t"),
            node("Identity", "t", "k"),
        ],
        "body",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5])
            for name in ("s", "r")
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5])
            for name in ("t", "k")
        ],
    )
    made = helper.make_node(
        "Scan", ["zero", "x"], ["last", "y"], body=inner, num_scan_inputs=1
    )
    arrays = {
        "w": weights(5, 5, scale=0.5),
        "zero": np.zeros((1, 5), np.float32),
    }
    assert (
        decibels(
            build([made], {"x": (6, 1, 5)}, arrays, opset=17),
            tmp_path,
            (6, 1, 5),
        )
        > 40
    )


@pytest.mark.parametrize("operator", ["Less", "Greater"])
def test_a_column_that_holds_the_threshold_of_a_tree(operator, tmp_path):
    """Halves of the largest number of the samples, which is where the threshold lies too."""
    shape = (1, 8)
    (sample, *_) = synthetic_samples({"x": shape}, SAMPLES, 0)
    limit = sample["x"].ravel()[3]
    nodes = [
        node(operator, "x c", "t"),
        node("Cast", "t", "f", to=1),
        node("MatMul", "f w", "y"),
    ]
    proto = build(
        nodes, {"x": shape}, {"c": np.float32(limit), "w": weights(8, 3)}
    )
    assert decibels(proto, tmp_path, shape) > 45


INFINITE = np.float32(-np.inf)
CAUSAL = np.triu(np.full((6, 6), INFINITE), 1)
PADDED = np.arange(6) % 5 == 4


@pytest.mark.parametrize(
    "masking",
    [
        [node("Add", "x causal", "c"), node("Where", "padded fill c", "s")],
        [
            node("Where", "padded fill zero", "p"),
            node("Add", "causal p", "m"),
            node("Add", "x m", "s"),
        ],
        [node("Where", "future fill x", "c"), node("Where", "padded fill c", "s")],
        [node("Add", "x causal", "c"), node("Concat", "c sink", "s", axis=2)],
        [node("Pad", "x pads fill", "s")],
        [node("Concat", "x shut", "s", axis=2)],
        [node("TopK", "x three", "top at"), node("ScatterElements", "empty at top", "s", axis=2)],
    ],
    ids=["added and chosen", "one sum", "chosen twice", "a sink", "padded", "joined", "sparse gates"],
)  # fmt: skip
def test_masks_of_infinity_in_front_of_a_softmax(masking, tmp_path):
    arrays = {
        "causal": CAUSAL, "future": np.isinf(CAUSAL), "padded": PADDED, "fill": INFINITE, "zero": np.zeros(6, np.float32),
        "sink": np.full((1, 6, 1), 0.3, np.float32), "pads": np.array([0, 0, 1, 0, 0, 2]), "three": np.array([3]),
        "shut": np.full((1, 6, 2), INFINITE), "empty": np.full((1, 6, 6), INFINITE),
    }  # fmt: skip
    read = {name for it in masking for name in it.input}
    proto = build(
        [*masking, node("Softmax", "s", "y")],
        {"x": (1, 6, 6)},
        {name: array for name, array in arrays.items() if name in read},
    )
    assert decibels(proto, tmp_path, (1, 6, 6)) > 45


@pytest.mark.parametrize(
    ("reading", "limit"),
    [
        ([node("TopK", "s two", "y at")], 60),
        ([node("TopK", "s four", "top at"), node("Softmax", "top", "y")], 50),
        ([node("ReduceLogSumExp", "s axis", "y")], 60),
        ([node("ReduceLogSumExp", "s axis", "t"), node("Sub", "s t", "d"), node("Softmax", "d", "y")], 50),
        ([node("LogSoftmax", "s", "t"), node("Exp", "t", "y")], 50),
        ([node("LogSoftmax", "s", "t"), node("Gather", "t zero", "y", axis=2)], 50),
        ([node("LogSoftmax", "s", "t"), node("ReduceMax", "t axis", "y")], 50),
    ],
    ids=["greatest", "shares of the greatest", "sum", "logits of a Categorical", "shares", "one logarithm", "greatest logarithm"],
)  # fmt: skip
def test_masks_of_infinity_in_front_of_what_chooses_or_adds_up(
    reading, limit, tmp_path
):
    shut = np.array(
        [[False] * 2 + [True] * 4, [False] * 6, [False] * 3 + [True] * 3]
    )
    arrays = {
        "shut": shut, "fill": INFINITE, "two": np.array([2]), "four": np.array([4]),
        "axis": np.array([2]), "zero": np.array([0]),
    }  # fmt: skip
    nodes = [node("Where", "shut fill x", "s"), *reading]
    read = {name for it in nodes for name in it.input}
    held = {name: array for name, array in arrays.items() if name in read}
    proto = build(nodes, {"x": (1, 3, 6)}, held)
    assert decibels(proto, tmp_path, (1, 3, 6)) > limit
