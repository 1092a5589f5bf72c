"""Every operator form the front end reads means after loading what it meant in the file."""

import numpy as np
import onnx
import pytest

from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.read.read import NEWEST_OPSET, OLDEST_OPSET
from tests.support.graphs import (
    assert_same,
    build,
    node,
    run,
    seeded,
    shapes_of,
)
from tests.support.operator_cases import CASES

NEWEST_OF_ONNXRUNTIME = 26  # 1.31 refuses files of newer opsets


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loading_keeps_the_meaning(case, tmp_path):
    path = tmp_path / "case.onnx"
    proto = case.model()
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    assert model.graph.opset_imports == {"": 20}
    assert all(
        value.shape is not None
        for entry in model.graph
        for value in entry.outputs
    )
    assert_same(run(proto, case.feeds()), run(model, case.feeds()))


@pytest.mark.parametrize("opset", range(OLDEST_OPSET, NEWEST_OPSET + 1))
def test_every_opset_in_the_range_loads(opset, tmp_path):
    path = tmp_path / "relu.onnx"
    nodes = [
        node("Conv", "x w", "a"),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "y", kernel_shape=[2, 2]),
    ]
    proto = build(
        nodes,
        {"x": (1, 2, 6, 6)},
        {"w": np.ones((3, 2, 3, 3), np.float32)},
        opset=opset,
    )
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    proto.opset_import[0].version = min(
        max(opset, 7), NEWEST_OF_ONNXRUNTIME
    )  # which these operators mean the same in
    assert_same(
        run(proto, seeded(shapes_of(model))),
        run(model, seeded(shapes_of(model))),
    )


@pytest.mark.parametrize("operator", ["Dropout", "MaxPool"])
def test_a_second_result_that_nothing_reads_is_left_out(operator, tmp_path):
    path = tmp_path / "m.onnx"
    window = {"kernel_shape": [2, 2]} if operator == "MaxPool" else {}
    proto = build(
        [node(operator, "x", "y second", **window)],
        {"x": (1, 2, 4, 4)},
        opset=8,
    )
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    assert [
        [value.name for value in entry.outputs] for entry in model.graph
    ] == [["y"]]
    feeds = seeded({"x": (1, 2, 4, 4)})
    assert_same(run(proto, feeds), run(model, feeds))


def test_the_newest_opset_is_one_that_the_library_describes():
    assert (
        NEWEST_OF_ONNXRUNTIME < NEWEST_OPSET <= onnx.defs.onnx_opset_version()
    )
