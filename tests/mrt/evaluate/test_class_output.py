"""The output that holds the classes: named, or chosen where the choice is plain."""

import numpy as np
import pytest

from mrt.errors import BadOption
from mrt.evaluate.class_output import ClassOutput, choose_class_output

LABEL = np.array([3], np.int64)
SCORES = np.array([[0.1, 0.2, 0.7]], np.float32)
BOXES = np.zeros((1, 4, 6), np.float32)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({"y": SCORES}, ClassOutput("y")),
        ({"label": LABEL, "p": SCORES}, ClassOutput("p")),
        ({"a": SCORES, "b": SCORES}, ClassOutput("a")),
        ({"boxes": BOXES, "p": SCORES}, ClassOutput("p")),
        ({"boxes": BOXES, "p": SCORES, "q": SCORES}, None),
        ({"label": LABEL}, ClassOutput("label", is_label=True)),
        ({"label": LABEL, "other": LABEL}, None),
        ({"boxes": BOXES}, None),
        ({"one": np.ones((1, 1), np.float32)}, None),
    ],
)
def test_the_choice(outputs, expected):
    assert choose_class_output(outputs) == expected


def test_the_output_that_is_named_is_taken():
    outputs = {"label": LABEL, "p": SCORES, "q": SCORES}
    assert choose_class_output(outputs, "q") == ClassOutput("q")
    assert choose_class_output(outputs, "label") == ClassOutput("label", True)


def test_outputs_without_classes_are_left_out_unless_one_is_named():
    outputs = {"frames": SCORES, "p": SCORES}
    free = {"frames"}
    assert choose_class_output(outputs, None, free) == ClassOutput("p")
    assert choose_class_output(outputs, "frames", free) == ClassOutput("frames")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("z", "no such output; it has boxes, p"),
        ("boxes", r"shape \[1, 4, 6\] and type float32 holds neither"),
    ],
)
def test_an_output_without_classes_is_refused(wanted, message):
    with pytest.raises(BadOption, match=message):
        choose_class_output({"boxes": BOXES, "p": SCORES}, wanted)


def test_the_best_classes_come_best_first():
    outputs = {"label": LABEL, "p": SCORES}
    assert ClassOutput("p").best_classes(outputs) == [2, 1, 0]
    assert ClassOutput("label", True).best_classes(outputs) == [3]
