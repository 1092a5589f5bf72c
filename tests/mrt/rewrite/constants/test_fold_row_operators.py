"""fold_row_operators: operators of whole rows of known numbers give what onnxruntime computes."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.constants.fold_row_operators import fold_row_operators
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4, 5)))
ROUNDINGS = 1e-6

CASES = {
    "matmul": (node("MatMul", "a b", "c"), {"a": A, "b": B}),
    "vector by matrix": (node("MatMul", "a b", "c"), {"a": A[0], "b": B}),
    "matrix by vector": (node("MatMul", "a b", "c"), {"a": A, "b": B[:, 0].copy()}),
    "stacks": (node("MatMul", "a b", "c"), {"a": np.stack([A, -A])[:, None], "b": np.stack([B, 2 * B, 3 * B])}),
    "gemm": (node("Gemm", "a b c0", "c", transA=1, transB=1, alpha=0.5, beta=2.0),
             {"a": A.T.copy(), "b": B.T.copy(), "c0": B[0]}),
    "softmax of three axes": (node("Softmax", "a", "c"), {"a": np.stack([A, 3 * A])}),
    "softmax": (node("Softmax", "a", "c", axis=0), {"a": A * 20}),
    "layer norm": (node("LayerNormalization", "a s t", "c", epsilon=0.01), {"a": A, "s": B[:, 0].copy(), "t": A[0]}),
    "layer norm of two axes": (node("LayerNormalization", "a s", "c", axis=0), {"a": A, "s": A + 1}),
    "cumsum": (node("CumSum", "a k", "c"), {"a": A, "k": np.array(1)}),
    "cumsum backwards": (node("CumSum", "a k", "c", exclusive=1, reverse=1), {"a": A, "k": np.array(-2)}),
    "instance norm": (node("InstanceNormalization", "a s t", "c", epsilon=0.1),
                      {"a": A.reshape(1, 2, 6), "s": A[0, :2], "t": A[1, :2]}),
}  # fmt: skip
IMAGE = RNG.normal(size=(2, 4, 5, 6)).astype(np.float32)
ROW = IMAGE[0, :, :, 0].copy()[None]
BIAS = np.arange(6, dtype=np.float32)
ZEROS = np.zeros_like(IMAGE)


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def conv(bias="", **attributes):
    return node("Conv", f"a w {bias}", "c", **attributes)


def conv_transpose(bias="", **attributes):
    return node("ConvTranspose", f"a w {bias}", "c", **attributes)


def pool(kind, **attributes):
    return node(kind, "a", "c", **attributes)


UNEVEN = {"pads": [1, 0, 2, 1], "strides": [2, 1]}
CEIL = {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}
SQUARE = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3], "strides": [2, 2]}
WINDOWS = {
    "conv": (conv(**UNEVEN), {"a": IMAGE, "w": weights(6, 4, 3, 2)}),
    "conv with bias": (conv("b", auto_pad="SAME_UPPER"), {"a": IMAGE, "w": weights(6, 4, 3, 2), "b": BIAS}),
    "conv in groups": (conv("b", group=2, dilations=[2, 1]), {"a": IMAGE, "w": weights(6, 2, 2, 2), "b": BIAS}),
    "conv of a row": (conv(pads=[1, 1]), {"a": ROW, "w": weights(6, 4, 3)}),
    "conv of a volume": (conv(), {"a": IMAGE[None], "w": weights(3, 2, 2, 2, 2)}),
    "conv of zeros": (conv("b", pads=[1, 1, 1, 1]), {"a": ZEROS, "w": weights(6, 4, 3, 3), "b": BIAS}),
    "conv of zeros without bias": (conv(), {"a": ZEROS, "w": weights(6, 4, 3, 3)}),
    "transposed": (conv_transpose("b", **UNEVEN), {"a": IMAGE, "w": weights(4, 6, 3, 2), "b": BIAS}),
    "transposed in groups": (conv_transpose(group=2, strides=[2, 3], output_padding=[1, 2], dilations=[1, 2]),
                             {"a": IMAGE, "w": weights(4, 3, 3, 2)}),
    "transposed of zeros": (conv_transpose("b"), {"a": ZEROS, "w": weights(4, 6, 3, 2), "b": BIAS}),
    "greatest": (pool("MaxPool", kernel_shape=[3, 2], **UNEVEN), {"a": IMAGE - 10}),
    "greatest, to the end": (pool("MaxPool", **CEIL), {"a": IMAGE - 10}),
    "greatest, dilated": (pool("MaxPool", kernel_shape=[2, 2], dilations=[2, 3]), {"a": IMAGE}),
    "means": (pool("AveragePool", kernel_shape=[3, 2], **UNEVEN), {"a": IMAGE}),
    "means with pads": (pool("AveragePool", kernel_shape=[3, 2], count_include_pad=1, **UNEVEN), {"a": IMAGE}),
    "means, to the end": (pool("AveragePool", **CEIL), {"a": IMAGE}),
    "means with pads, to the end": (pool("AveragePool", count_include_pad=1, ceil_mode=1, **SQUARE),
                                    {"a": IMAGE}),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_layers_of_a_learned_image_are_computed(name):
    made, arrays = WINDOWS[name]
    nodes = [made, node("Mul", "x c", "y")]
    model = graph_of(nodes, {"x": (1,)}, arrays)
    expected = run(model, {"x": np.ones(1, np.float32)})["y"]
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(fold_row_operators, model) == 1
    found = constant_named(model, "c")
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


FAR = {"strides": [1 << 20] * 2, "pads": [1 << 20] * 4}


@pytest.mark.parametrize(
    ("made", "weight"),
    [
        (conv(**FAR), weights(1, 4, 3, 2)),
        (conv_transpose(**FAR), weights(4, 1, 3, 2)),
        (pool("AveragePool", kernel_shape=[5, 6], **FAR), None),
        (conv(), weights(1 << 15, 4, 3, 2)),
    ],
)
def test_what_would_take_long_stays(made, weight):
    arrays = {"a": IMAGE} if weight is None else {"a": IMAGE, "w": weight}
    if weight is not None and len(weight) > 4:
        arrays["a"] = np.tile(IMAGE, (1, 1, 8, 8))
    model = graph_of([made, node("Mul", "x c", "y")], {"x": (1,)}, arrays)
    canonicalize_conv_pool_attributes(model)
    assert fold_row_operators(model) == 0


NORMAL = {"s": weights(4), "t": weights(4), "m": weights(4), "v": np.abs(weights(4))}  # fmt: skip
NONE = np.zeros(0, np.float32)
LARGER = np.array([1, 1, 2, 3], np.float32)
WHOLE = {
    "batch norm": (node("BatchNormalization", "a s t m v", "c"), {"a": IMAGE} | NORMAL),
    "batch norm of a row": (node("BatchNormalization", "a s t m v", "c"), {"a": ROW} | NORMAL),
    "linear": (node("Resize", "a r f", "c", mode="linear"), {"a": IMAGE, "f": LARGER, "r": NONE}),
    "nearest": (node("Resize", "a r f", "c", mode="nearest"), {"a": IMAGE, "f": LARGER, "r": NONE}),
    "means": WINDOWS["means"],
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_model_may_begin_at_a_learned_image(name):
    made, arrays = WHOLE[name]
    nodes = [made, node("Mul", "x c", "y")]
    model = graph_of(nodes, {"x": (1,)}, arrays)
    expected = run(model, {"x": np.ones(1, np.float32)})["y"]
    rewrite(model)
    assert set(operators_of(model)) <= {"Mul", "Reshape"}
    found = run(model, {"x": np.ones(1, np.float32)})["y"]
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_rows_of_known_numbers(name):
    made, arrays = CASES[name]
    nodes = [made, node("Mul", "x c", "y")]
    model = graph_of(nodes, {"x": (1,)}, arrays)
    expected = run(model, {"x": np.ones(1, np.float32)})["y"]
    assert fold_row_operators(model) == 1
    found = constant_named(model, "c")
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=ROUNDINGS, atol=ROUNDINGS)


_NONE = {"a": np.zeros((2, 0), np.float32), "s": np.zeros(0, np.float32)}
EMPTY = {
    "softmax": node("Softmax", "a", "c"),
    "layer norm": node("LayerNormalization", "a s", "c"),
    "cumsum": node("CumSum", "a k", "c", exclusive=1),
    "matmul": node("MatMul", "b a", "c"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_rows_without_numbers(name):
    nodes = [EMPTY[name], node("Concat", "x c", "y", axis=1)]
    arrays = _NONE | {"k": np.array(1), "b": np.ones((2, 2), np.float32)}
    model = graph_of(nodes, {"x": (2, 1)}, arrays)
    assert fold_row_operators(model) == 1
    assert constant_named(model, "c").shape == (2, 0)


def test_queries_that_were_learned_leave_nothing_constant_behind():
    """As a detector's decoder begins: a product, a norm and a softmax of weights alone."""
    nodes = [
        node("MatMul", "q w", "m"),
        node("Add", "m b", "p"),
        node("LayerNormalization", "p s t", "n"),
        node("MatMul", "n keys", "scores"),
        node("Softmax", "scores", "shares"),
        node("MatMul", "shares x", "y"),
    ]
    arrays = {
        "q": A,
        "w": B,
        "b": B[0],
        "s": B[1],
        "t": B[2],
        "keys": RNG.normal(size=(5, 6)).astype(np.float32),
    }
    model = graph_of(nodes, {"x": (1, 6, 7)}, arrays)
    x = RNG.normal(size=(1, 6, 7)).astype(np.float32)
    expected = run(model, {"x": x})["y"]
    rewrite(model)
    assert set(operators_of(model)) <= {
        "Conv",
        "Reshape",
        "Transpose",
        "MatMul",
        "Gemm",
    }
    assert np.allclose(run(model, {"x": x})["y"], expected, atol=1e-5)


def test_what_is_folded_stands_behind_what_stays():
    """Computed rows, sums of integers and numbers too large for float32 stay."""
    nodes = [
        node("MatMul", "x b", "computed"),
        node("CumSum", "i k", "sums"),
        node("MatMul", "large large", "infinite"),
        node("MatMul", "a b", "c"),
    ]
    arrays = {"i": np.arange(5), "k": np.array(0), "a": A, "b": B}
    arrays["large"] = np.full((1, 1), 1e30, np.float32)
    nodes.append(node("Relu", "c", "y"))
    model = graph_of(nodes, {"x": (3, 4)}, arrays)
    assert fold_row_operators(model) == 1
    assert operators_of(model) == ["MatMul", "CumSum", "MatMul", "Relu"]


def test_sums_of_integers_stay_and_operands_of_what_is_folded_go():
    nodes = [
        node("CumSum", "i k", "sums"),
        node("Cast", "sums", "s", to=1),
        node("MatMul", "a b", "c"),
        node("Mul", "x s", "p"),
        node("Add", "p c", "y"),
    ]
    arrays = {"i": np.arange(5), "k": np.array(0), "a": A, "b": B}
    model = graph_of(nodes, {"x": (3, 5)}, arrays)
    assert apply_pass(fold_row_operators, model) == 1
    assert operators_of(model) == ["CumSum", "Cast", "Mul", "Add"]
    assert set(model.graph.initializers) == {"i", "k", "c"}


def test_a_running_sum_along_a_computed_axis_stays():
    nodes = [
        node("Cast", "x", "i", to=7),
        node("CumSum", "a i", "c"),
        node("Identity", "c", "y"),
    ]
    model = graph_of(nodes, {"x": ()}, {"a": A})
    assert fold_row_operators(model) == 0
