"""A mask of infinity that a reader hands on: the refusal names the mask, the reader and a way on."""

import numpy as np
import pytest

from mrt.calibrate.infinite_masks import advice_on_mask
from tests.support.graphs import graph_of, node

FILL = np.array([0.0, 0.0, -np.inf], np.float32)
SCORES = [node("Neg", "x", "scores"), node("Add", "scores mask", "s")]


@pytest.mark.parametrize(
    ("readers", "reader"),
    [
        ([node("LogSoftmax", "s", "y")], "LogSoftmax:y (LogSoftmax) reads it"),
        (
            [node("Transpose", "s", "t"), node("Relu", "t", "y")],
            "Relu:y (Relu) reads it",
        ),
        (
            [node("Softmax", "s", "p"), node("Mul", "s p", "y")],
            "Mul:y (Mul) reads it",
        ),
        ([node("Transpose", "s", "y")], "the output 'y' has it"),
    ],
)
def test_it_names_the_reader_and_what_lies_in_front_of_the_mask(
    readers, reader
):
    model = graph_of([*SCORES, *readers], {"x": (3, 3)}, {"mask": FILL})
    advice = advice_on_mask(model, "s")
    assert advice is not None
    assert advice.startswith(f"it is masked by 'mask', and {reader}: ")
    assert "--outputs scores, or mask by a number" in advice


def test_scores_that_are_an_input_are_not_named():
    nodes = [node("Add", "x mask", "s"), node("LogSoftmax", "s", "y")]
    model = graph_of(nodes, {"x": (3, 3)}, {"mask": FILL})
    advice = advice_on_mask(model, "s")
    assert advice is not None and "--outputs" not in advice


@pytest.mark.parametrize("name", ["x", "s", "y", "missing"])
def test_other_infinities_have_another_cause(name):
    nodes = [node("Add", "x bias", "s"), node("Log", "s", "y")]
    model = graph_of(nodes, {"x": (3, 3)}, {"bias": np.float32([1, 2, 3])})
    assert advice_on_mask(model, name) is None
