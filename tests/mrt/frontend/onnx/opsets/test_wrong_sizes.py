"""Shapes are inferred a few times, however many nodes have sizes that the library infers wrong."""

import onnx
import pytest

import mrt.frontend.onnx as frontend
from mrt.errors import BadModel
from tests.support.graphs import assert_same, build, node, run, seeded

IN_PADDING = {
    "kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1,
}  # fmt: skip
"""Of one element, whose second window would begin in the padding."""
SAME = {
    "kernel_shape": [1, 1], "strides": [1, 1], "auto_pad": "SAME_UPPER", "ceil_mode": 1,
}  # fmt: skip


@pytest.fixture
def inferences(monkeypatch):
    """The number of inferences of the whole model so far."""
    calls = []
    find_shapes = frontend.find_shapes

    def counted(*arguments):
        calls.append(1)
        find_shapes(*arguments)

    monkeypatch.setattr(frontend, "find_shapes", counted)
    return calls


def read(nodes, shape, folder):
    proto = build(nodes, {"x": shape})
    del proto.graph.value_info[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, folder / "m.onnx")
    model, _ = frontend.load_onnx(folder / "m.onnx")
    feeds = seeded({"x": shape})
    assert_same(run(proto, feeds), run(model, feeds))


def chain(count, **attributes):
    names = ["x", *(f"p{index}" for index in range(1, count)), "y"]
    return [
        node("MaxPool", names[place], names[place + 1], **attributes)
        for place in range(count)
    ]


def test_auto_pad_needs_no_inference_of_its_own(inferences, tmp_path):
    read(chain(50, **SAME), (1, 1, 4, 4), tmp_path)
    assert len(inferences) == 1


def test_pools_beside_each_other_are_resolved_at_once(inferences, tmp_path):
    names = [f"p{index}" for index in range(20)]
    nodes = [node("MaxPool", "x", name, **IN_PADDING) for name in names]
    nodes.append(node("Sum", " ".join(names), "y"))
    read(nodes, (1, 1, 1, 1), tmp_path)
    assert len(inferences) == 2


def test_pools_behind_each_other_are_resolved_one_by_one(inferences, tmp_path):
    read(chain(5, **IN_PADDING), (1, 1, 1, 1), tmp_path)
    assert len(inferences) == 6


def test_a_pool_that_states_explicit_pads_by_name(inferences, tmp_path):
    form = IN_PADDING | {"auto_pad": "NOTSET"}
    read(chain(1, **form), (1, 1, 1, 1), tmp_path)
    assert len(inferences) == 2


def test_many_behind_each_other_are_refused(inferences, tmp_path):
    proto = build(chain(40, **IN_PADDING), {"x": (1, 1, 1, 1)})
    del proto.graph.value_info[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(BadModel) as caught:
        frontend.load_onnx(tmp_path / "m.onnx")
    assert str(caught.value) == (
        "MaxPool:p33 (MaxPool): follows 32 others whose sizes are rounded or stated; "
        "write the pads of each, without ceil_mode, auto_pad and output_shape"
    )
    assert len(inferences) == 33
