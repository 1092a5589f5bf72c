"""Values that are too large are refused when the model is read, before anything is computed."""

import numpy as np
import onnx
import pytest

from mrt.errors import BadModel, Unsupported
from mrt.frontend import load
from mrt.graph import values
from mrt.rewrite import canonical
from tests.support.graphs import build, graph_of, node


def refused(tmp_path, nodes, shape, weights, problem):
    onnx.save(build(nodes, {"x": shape}, weights), tmp_path / "m.onnx")
    with pytest.raises(BadModel, match=problem):
        load(tmp_path / "m.onnx")


def test_an_input_of_more_numbers_than_any_array_has(tmp_path):
    nodes = [node("Relu", "x", "y")]
    problem = r"input 'x' has the shape \[1, 3, 2147483648, 2147483648\], \d+ numbers; .*: give a smaller --shape x=..."
    refused(tmp_path, nodes, (1, 3, 2**31, 2**31), {}, problem)


def test_a_value_of_too_many_numbers(tmp_path):
    scales = np.array([1, 1, 1e6, 1e6], np.float32)
    nodes = [node("Resize", "x - s", "y")]
    problem = r"'y' \(Resize\) has the shape \[1, 3, 8000000, 8000000\]"
    refused(tmp_path, nodes, (1, 3, 8, 8), {"s": scales}, problem)


def test_the_limit_itself_is_read(tmp_path):
    model = build([node("Relu", "x", "y")], {"x": (2, 2**27)})
    onnx.save(model, tmp_path / "m.onnx")
    load(tmp_path / "m.onnx")
    refused(tmp_path, [node("Relu", "x", "y")], (2, 2**27 + 1), {}, "'x'")


def test_a_value_that_rewriting_made_too_large():
    model = graph_of([node("Relu", "x", "y")], {"x": (2, values.MOST_ELEMENTS)})
    with pytest.raises(Unsupported, match="more than 268435456 elements"):
        canonical.check(model)
