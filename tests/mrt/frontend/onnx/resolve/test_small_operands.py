"""Inputs on which a window does not fit are refused by name, before the library infers a size below 0."""

import numpy as np
import onnx
import pytest

from mrt.errors import BadModel
from mrt.frontend.onnx import read_onnx
from tests.support.graphs import build, node

CUT = {"s": [0], "e": [-1], "a": [2]}
WEIGHTS = {"w": np.ones((1, 1, 3, 3), np.float32)}
WEIGHTS |= {name: np.array(numbers) for name, numbers in CUT.items()}


def read(folder, nodes, sizes):
    path = folder / "m.onnx"
    used = {name for one in nodes for name in one.input}
    weights = {name: WEIGHTS[name] for name in WEIGHTS if name in used}
    onnx.save(build(nodes, {"x": (1, 1, "steps", 8)}, weights), path)
    return read_onnx(path, {"x": sizes}).model


def refusal(folder, nodes, sizes):
    with pytest.raises(BadModel) as found:
        read(folder, nodes, sizes)
    return str(found.value).partition("m.onnx: ")[2]


@pytest.mark.parametrize(("steps", "found"), [(1, "[1, 8]"), (2, "[2, 8]")])
def test_a_convolution_in_front_of_a_slice(steps, found, tmp_path):
    """The library ends the process at such a Slice."""
    nodes = [node("Conv", "x w", "c"), node("Slice", "c s e a", "y")]
    assert refusal(tmp_path, nodes, (1, 1, steps, 8)) == (
        f"Conv:c (Conv): its window of [3, 3] does not fit into {found}, the sizes of its operand: "
        f"--shape x=1,1,?,8 with larger numbers than 1,1,{steps},8"
    )


def test_a_convolution_between_slices(tmp_path):
    nodes = [
        node("Slice", "x s e a", "front"),
        node("Conv", "front w", "c"),
        node("Slice", "c s e a", "y"),
    ]
    text = refusal(tmp_path, nodes, (1, 1, 3, 8))
    assert "does not fit into [2, 8]" in text
    assert read(tmp_path, nodes, (1, 1, 6, 8)).graph.outputs[0].shape[2] == 2


def test_a_pool_of_which_the_library_infers_one_place(tmp_path):
    pool = node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2])
    text = refusal(tmp_path, [pool], (1, 1, 1, 8))
    assert text.startswith("MaxPool:y (MaxPool): its window of [2, 2]")


@pytest.mark.parametrize(
    "attributes",
    [{"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER"}],
    ids=["pads", "auto_pad"],
)
def test_pads_make_room(attributes, tmp_path):
    nodes = [node("Conv", "x w", "y", **attributes)]
    model = read(tmp_path, nodes, (1, 1, 1, 8))
    assert model.graph.outputs[0].shape == (1, 1, 1, 8)


def test_the_sizes_with_pads_are_said(tmp_path):
    pads = {"pads": [0, 1, 1, 1]}
    text = refusal(tmp_path, [node("Conv", "x w", "y", **pads)], (1, 1, 1, 8))
    assert "into [2, 10], the sizes of its operand with pads" in text
