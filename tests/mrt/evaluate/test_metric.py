"""A user's own measure: imported by name, given all outputs, and refused where it fails."""

import numpy as np
import pytest

from mrt.errors import BadData, BadOption
from mrt.evaluate.metric import CollectedOutputs, load_metric

SOURCE = """
def third(outputs, labels):
    assert outputs["y"].shape == (2, 1, 3)
    return outputs["y"][1, 0, 2] + (0 if labels is None else labels[1])

def nothing(outputs, labels):
    return float("nan")

def broken(outputs, labels):
    raise KeyError("boxes")

number = 3
"""


@pytest.fixture(name="module")
def _module(tmp_path, monkeypatch):
    (tmp_path / "measures_for_test.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return "measures_for_test"


def collected():
    outputs = CollectedOutputs()
    for first in (0, 10):
        outputs.add({"y": np.array([[first, first + 1, first + 2]])})
    return outputs


def test_the_function_is_given_all_outputs_and_labels(module):
    metric = load_metric(f"{module}:third")
    assert collected().measure(metric, None) == 12
    assert collected().measure(metric, np.array([5, 7])) == 19


@pytest.mark.parametrize(
    ("function", "message"),
    [("nothing", "returned nan"), ("broken", "KeyError: 'boxes'")],
)
def test_a_function_that_fails_is_named(module, function, message):
    with pytest.raises(BadData, match=message):
        collected().measure(load_metric(f"{module}:{function}"), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("measures_for_test", "expected MODULE:FUNCTION"),
        ("no_such_module_anywhere:f", "cannot be imported"),
        ("measures_for_test:absent", "has no function absent"),
        ("measures_for_test:number", "has no function number"),
    ],
)
def test_what_is_no_function_is_refused(module, text, message):
    with pytest.raises(BadOption, match=message):
        load_metric(text)
