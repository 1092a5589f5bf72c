"""Sizes that the library's shape inference gets wrong are what onnxruntime makes them."""

import numpy as np
import onnx
import pytest

from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import assert_same, build, node, run, seeded

RNG = np.random.default_rng(5)

# kernel, strides, dilations, the size of the input, and what says how large the result is
FORMS = [
    ([3], [1], [1], [7], {"output_shape": [6]}),  # less than the input
    ([3], [2], [2], [7], {"output_shape": [13], "output_padding": [1]}),
    ([3, 2], [2, 3], [1, 2], [5, 4], {"output_shape": [10, 13]}),
    ([1], [2], [1], [5], {"auto_pad": "VALID", "output_shape": [4]}),
    (
        [3, 2, 2],
        [2, 1, 1],
        [1, 2, 2],
        [5, 7, 5],
        {"auto_pad": "SAME_LOWER", "output_shape": [10, 6, 6]},
    ),
    (
        [2, 2],
        [2, 3],
        [1, 2],
        [4, 6],
        {"auto_pad": "SAME_UPPER", "output_shape": [8, 17]},
    ),
    ([3], [3], [2], [6], {"auto_pad": "SAME_LOWER", "output_padding": [1]}),
    (
        [3, 3],
        [1, 2],
        [1, 1],
        [6, 6],
        {"auto_pad": "SAME_UPPER", "output_padding": [0, 1]},
    ),
    (
        [1],
        [3],
        [1],
        [4],
        {"auto_pad": "SAME_UPPER"},
    ),  # less than stride times input
]


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "size", "said"), FORMS
)
@pytest.mark.parametrize("group", [1, 2])
def test_a_transposed_convolution_that_says_its_size(
    kernel, strides, dilations, size, said, group, tmp_path
):
    form = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "group": group,
        **said,
    }
    arrays = {
        "w": RNG.normal(size=(4, 2, *kernel)).astype(np.float32),
        "b": RNG.normal(size=2 * group).astype(np.float32),
    }
    shape = (1, 4, *size)
    proto = build(
        [node("ConvTranspose", "x w b", "t", **form), node("Relu", "t", "y")],
        {"x": shape},
        arrays,
        opset=19,
    )
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    check(proto, shape, tmp_path)


@pytest.mark.parametrize(
    ("operator", "size"),
    [("MaxPool", [5, 7]), ("MaxPool", [6]), ("AveragePool", [5, 6])],
)
def test_a_pool_without_padding_whose_last_window_hangs_over(
    operator, size, tmp_path
):
    form = {
        "kernel_shape": [2] * len(size),
        "strides": [3] * len(size),
        "auto_pad": "VALID",
        "ceil_mode": 1,
    }
    check(
        build(
            [node(operator, "x", "y", **form)], {"x": (1, 4, *size)}, opset=19
        ),
        (1, 4, *size),
        tmp_path,
    )


def check(proto, shape, folder):
    """After reading and rewriting it, the numbers of onnxruntime."""
    feeds = seeded({"x": shape})
    del proto.graph.value_info[:]
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    assert_same(run(proto, feeds), run(model, feeds), 1e-5)
