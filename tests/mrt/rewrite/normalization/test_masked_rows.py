"""rewrite_masked_rows and add_masks_last: what an attention gives for rows that a mask leaves nothing, by onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.frontend.onnx import load_onnx
from mrt.graph.infer_shapes import infer_shapes
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import canonical, rewrite
from mrt.rewrite.normalization.add_masks_last import add_masks_last
from mrt.rewrite.normalization.masked_rows import rewrite_masked_rows
from mrt.table.table import CalibrationOptions
from tests.support.float_models import f32, run_real
from tests.support.graphs import (
    apply_pass,
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
)

SHAPE = (1, 2, 4, 8)
OPEN = np.ones((4, 4), bool)
OPEN[1], OPEN[2, :2] = False, False  # the second query has no key
RNG = np.random.default_rng(4)
FEEDS = {name: RNG.normal(size=SHAPE).astype(np.float32) for name in "qkv"}


def attention(mask_type, *, given=None, opset=23, **attributes):
    """ONNX's Attention with a mask that is an input, or a constant."""
    declared = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)
        for name in "qkv"
    ]
    if given is None:
        declared.append(
            helper.make_tensor_value_info("m", mask_type, OPEN.shape)
        )
    nodes = [
        helper.make_node(
            "Attention", ["q", "k", "v", "m"], ["y"], "a", **attributes
        )
    ]
    weights = [] if given is None else [numpy_helper.from_array(given, "m")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)]
    graph = helper.make_graph(nodes, "test", declared, outputs, weights)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )


def rewritten(proto, folder):
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    assert set(operators_of(model)) <= set(canonical.CANONICAL_OPERATORS)
    return model


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("opset", [23, 25])
def test_a_query_without_keys_has_the_answer_0(opset, causal, tmp_path):
    proto = attention(TensorProto.BOOL, opset=opset, is_causal=causal)
    feeds = FEEDS | {"m": OPEN}
    expected = run(proto, feeds)
    assert not expected["y"][0, :, 1].any()
    assert_same(expected, run(rewritten(proto, tmp_path), feeds))


@pytest.mark.parametrize("opset", [23, 25])
@pytest.mark.parametrize(
    "given",
    [OPEN, np.where(OPEN, 0, -np.inf).astype(np.float32)],
    ids=["truths", "infinities"],
)
def test_a_mask_that_is_constant_is_read(given, opset, tmp_path):
    proto = attention(TensorProto.BOOL, given=given, opset=opset)
    expected = run(proto, FEEDS)
    assert not expected["y"][0, :, 1].any()
    assert_same(expected, run(rewritten(proto, tmp_path), FEEDS))


@pytest.mark.parametrize(
    ("kind", "mask"),
    [(TensorProto.BOOL, OPEN), (TensorProto.FLOAT, f32(OPEN) / 3)],
)
def test_an_integer_program_gives_0_too_and_keeps_a_mask_of_floats_fine(
    kind, mask, tmp_path
):
    proto = attention(kind, is_causal=1)
    model = rewritten(proto, tmp_path)
    shapes = dict.fromkeys("qkv", SHAPE) | {"m": OPEN.shape}
    samples = synthetic_samples(shapes, 6, intervals={"m": (0, 1)})
    program = quantize(model, calibrate(model, samples, CalibrationOptions(observer="minmax"), model_sha256="0" * 64),
                       QuantizeOptions(8, 16))  # fmt: skip
    feeds = FEEDS | {"m": mask}
    expected, found = run(proto, feeds)["y"], run_real(program, feeds)["y"]
    assert (
        10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())
        > 55
    )


def test_without_a_mask_of_infinities_nothing_changes():
    nodes = [
        node("ReduceMax", "x a", "g", keepdims=1),
        node("Equal", "g i", "e"),
        node("Where", "e z x", "y"),
    ]
    constants = {
        "a": np.array([-1]),
        "i": np.float32(-np.inf),
        "z": np.float32(0),
    }
    assert rewrite_masked_rows(graph_of(nodes, {"x": (2, 4)}, constants)) == 0


def test_a_mask_that_is_a_result_keeps_its_infinities():
    nodes = [
        node("Greater", "x z", "c"),
        node("Where", "c z i", "mask"),
        node("ReduceMax", "mask a", "g", keepdims=1),
        node("Equal", "g i", "e"),
        node("Add", "x mask", "logits"),
        node("Softmax", "logits", "p"),
        node("Where", "e z p", "y"),
    ]
    constants = {
        "a": np.array([-1]),
        "i": np.float32(-np.inf),
        "z": np.float32(0),
    }
    assert (
        rewrite_masked_rows(
            graph_of(nodes, {"x": (2, 4)}, constants, outputs="y mask")
        )
        == 0
    )
    assert rewrite_masked_rows(graph_of(nodes, {"x": (2, 4)}, constants)) == 1


def test_fills_are_added_last():
    nodes = [
        node("Add", "m f", "both"),
        node("Add", "x both", "logits"),
        node("Softmax", "logits", "y"),
    ]
    model = graph_of(
        nodes,
        {"x": (2, 4, 4), "m": (4, 4)},
        {"f": f32(np.triu(np.full((4, 4), -1e9), 1))},
    )
    assert apply_pass(add_masks_last, model) == 1
    assert operators_of(model) == ["Add", "Add", "Softmax"]
    assert [value.name for value in model.graph[0].inputs] == ["x", "m"]
    assert add_masks_last(model) == 0


def test_two_computed_masks_and_a_bias_are_added_in_one_order():
    """As a causal Attention over padded keys: once the masks took each other's place without end."""
    nodes = [
        node("Mul", "m low", "padding"),
        node("Mul", "n low", "causal"),
        node("Add", "bias padding", "both"),
        node("Add", "causal both", "masks"),
        node("Add", "x masks", "logits"),
        node("Softmax", "logits", "y"),
    ]
    shape = (2, 4, 4)
    constants = {"low": np.float32(-1e9), "bias": f32(RNG.normal(size=shape))}
    model = graph_of(nodes, dict.fromkeys("xmn", shape), constants)
    changes = []
    for _ in range(4):
        changes.append(add_masks_last(model))
        infer_shapes(model)
    assert changes[-1] == 0


@pytest.mark.parametrize("read", [1, 3])
def test_a_computed_mask_is_added_after_a_constant_bias(read):
    """As the encoder of T5, whose layers all read the sum of positions and padding."""
    nodes = [
        node("Mul", "m low", "fills"),
        node("Reshape", "fills shape", "moved"),
        node("Add", "bias moved", "both"),
    ]
    for layer in range(read):
        nodes += [
            node("Add", "x both", f"logits{layer}"),
            node("Softmax", f"logits{layer}", f"y{layer}"),
        ]
    outputs = " ".join(f"y{layer}" for layer in range(read))
    model = graph_of(
        nodes,
        {"x": (2, 4, 4), "m": (4,)},
        {
            "low": np.float32(-3e38),
            "shape": np.int64([1, 1, 4]),
            "bias": f32(RNG.normal(size=(2, 4, 4))),
        },
        outputs=outputs,
    )
    feeds = {"x": RNG.normal(size=(2, 4, 4)).astype(np.float32)}
    feeds["m"] = f32([0, 0, 1, 0])
    expected = run(model, feeds)
    assert add_masks_last(model) == read
    adds = [item for item in model.graph if item.op_type == "Add"]
    sums = [[value.name for value in item.inputs] for item in adds]
    assert sum("bias" in names and "x" in names for names in sums) == read
    assert (
        sum("moved" in names for names in sums if "bias" not in names) == read
    )
    assert_same(expected, run(model, feeds))


def test_a_sum_without_fills_stays():
    nodes = [node("Add", "m f", "both"), node("Add", "x both", "y")]
    assert (
        add_masks_last(
            graph_of(
                nodes,
                {"x": (4, 4), "m": (4, 4)},
                {"f": np.ones((4, 4), np.float32)},
            )
        )
        == 0
    )


def test_an_input_compared_with_infinity_stays():
    model = graph_of(
        [node("Equal", "x i", "e"), node("Where", "e z x", "y")],
        {"x": (2, 4)},
        {"i": np.float32(-np.inf), "z": np.float32(0)},
    )
    assert rewrite_masked_rows(model) == 0


def test_the_condition_of_a_mask_may_be_read_elsewhere():
    nodes = [
        node("Greater", "x z", "c"),
        node("Identity", "c", "open"),
        node("Not", "open", "shut"),
        node("Where", "open z i", "mask"),
        node("ReduceMax", "mask a", "g", keepdims=1),
        node("Equal", "g i", "e"),
        node("Add", "x mask", "logits"),
        node("Softmax", "logits", "p"),
        node("Where", "e z p", "q"),
        node("Where", "shut x q", "y"),
    ]
    constants = {
        "a": np.array([-1]),
        "i": np.float32(-np.inf),
        "z": np.float32(0),
    }
    model = graph_of(nodes, {"x": (2, 4)}, constants)
    assert apply_pass(rewrite_masked_rows, model) == 1
