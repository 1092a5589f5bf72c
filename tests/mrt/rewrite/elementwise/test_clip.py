"""canonicalize_clip: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.elementwise.clip import canonicalize_clip
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    "limits",
    [{"l": 0.0}, {"l": 0.0, "h": float("inf")}, {"l": 0.0, "h": _LARGEST}],
)
def test_zero_without_an_upper_limit_is_relu(limits):
    model = graph_of(
        [node("Clip", " ".join(["x", *limits]), "y")], {"x": (2, 3)}, limits
    )
    assert apply_pass(canonicalize_clip, model, 0) == 1
    assert operators_of(model) == ["Relu"]


def test_a_missing_limit_is_the_largest_number():
    model = graph_of([node("Clip", "x - h", "y")], {"x": (2, 3)}, {"h": 0.5})
    assert apply_pass(canonicalize_clip, model, 0) == 1
    assert constant_named(model, "y.min") == -_LARGEST
    assert constant_named(model, "y.max") == 0.5


def test_two_limits_stay():
    assert (
        apply_pass(
            canonicalize_clip,
            graph_of(
                [node("Clip", "x l h", "y")],
                {"x": (2, 3)},
                {"l": 0.0, "h": 6.0},
            ),
        )
        == 0
    )


def test_a_computed_limit_stays():
    assert (
        canonicalize_clip(
            graph_of([node("Clip", "x l", "y")], {"x": (2, 3), "l": ()})
        )
        == 0
    )


@pytest.mark.parametrize("limits", [{"l": 0.5}, {"l": 0.0, "h": 6.0}])
def test_other_limits_are_no_relu(limits):
    model = graph_of(
        [node("Clip", " ".join(["x", *limits]), "y")], {"x": (2, 3)}, limits
    )
    apply_pass(canonicalize_clip, model, 0)
    assert operators_of(model) == ["Clip"]


@pytest.mark.parametrize(
    ("operands", "limits"),
    [("x l", (-2, 2**31 - 1)), ("x - h", (-(2**31), 3)), ("x l h", (-2, 3))],
)
def test_limits_of_integers_are_two_and_scalars(operands, limits):
    given = {"l": np.array([-2]), "h": np.array([3])}
    model = graph_of(
        [node("Clip", operands, "y")],
        {"x": (3,)},
        {name: given[name] for name in operands.split() if name in given},
        kind=onnx.TensorProto.INT64,
    )
    assert canonicalize_clip(model) == 1
    ends = [constant_named(model, name) for name in ("y.min", "y.max")]
    assert tuple(map(int, ends)) == limits
    assert {end.shape for end in ends} == {()}
    assert canonicalize_clip(model) == 0


def test_a_computed_limit_of_integers_stays():
    clip = node("Clip", "x l", "y")
    model = graph_of(
        [clip], {"x": (2, 3), "l": ()}, kind=onnx.TensorProto.INT64
    )
    assert canonicalize_clip(model) == 0
