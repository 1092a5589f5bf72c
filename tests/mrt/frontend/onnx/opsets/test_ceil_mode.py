"""Average pools with dilations, sizes rounded up and padding that counts, all at once, mean what onnxruntime computes."""

import numpy as np
import onnx
import pytest

from mrt.frontend.onnx import load_onnx
from mrt.rewrite import canonical, rewrite
from tests.support.graphs import (
    assert_same,
    build,
    node,
    operators_of,
    run,
    seeded,
)

SHAPE = (1, 2, 6, 8)
FORMS = {
    "an overhang that does not count": {"kernel_shape": [2, 1], "strides": [2, 2], "dilations": [2, 1]},
    "an overhang behind counted padding": {
        "kernel_shape": [2, 3], "strides": [3, 2], "dilations": [3, 2], "pads": [1, 1, 1, 2],
    },
    "a last window in the padding of one axis, an overhang in the other": {
        "kernel_shape": [1, 2], "strides": [3, 2], "dilations": [2, 2], "pads": [0, 1, 0, 0],
    },
    "a last window in the padding, without dilations": {
        "kernel_shape": [3, 1], "strides": [4, 3], "dilations": [1, 1], "pads": [0, 0, 1, 0],
    },
}  # fmt: skip


def compare(form, shape, folder):
    proto = build(
        [node("AveragePool", "x", "y", **form)], {"x": shape}, opset=19
    )
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    assert set(operators_of(model)) <= set(canonical.CANONICAL_OPERATORS)
    feeds = seeded({"x": shape})
    assert_same(run(proto, feeds), run(model, feeds))


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_average_divides_by_what_onnxruntime_divides_by(
    form, counted, tmp_path
):
    compare(
        form | {"ceil_mode": 1, "count_include_pad": counted}, SHAPE, tmp_path
    )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_attributes(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rank = 2 + seed % 2
    kernel, strides, dilations = (
        rng.integers(1, 4, rank).tolist() for _ in range(3)
    )
    pads = [int(rng.integers(0, size)) for size in (*kernel, *kernel)]
    form = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads,
            "ceil_mode": int(rng.integers(0, 2)), "count_include_pad": int(rng.integers(0, 2))}  # fmt: skip
    compare(form, (1, 2, *rng.integers(7, 10, rank).tolist()), tmp_path)
