"""States: which pairs are found, how both of a pair get one shape, and what is refused."""

import re

import numpy as np
import onnx_ir as ir
import pytest

from mrt.errors import BadOption
from mrt.graph.notes import shared_range_of
from mrt.graph.states import (
    notes_of_shortened_states,
    share_ranges_of_states,
    states_of,
    tie_states,
)
from tests.support.graphs import graph_of, node, run

LENGTH = 4
USUAL = {"past": "present"}


def growing(*, places=1, axis=1):
    """present = the past with the new numbers behind it; y = their sum."""
    past, new = [1, LENGTH], [1, LENGTH]
    new[axis] = places
    return graph_of(
        [
            node("Concat", "past x", "present", axis=axis),
            node("ReduceSum", "present axes", "y"),
        ],
        {"x": new, "past": past},
        {"axes": np.array([1])},
        outputs="y present",
    )


def test_an_output_one_place_longer_gives_up_its_first():
    model = growing()
    tie_states(model, {}, USUAL)
    assert states_of(model) == USUAL
    past = np.array([[1, 2, 3, 4]], np.float32)
    answers = run(model, {"past": past, "x": np.array([[5]], np.float32)})
    assert answers["present"].tolist() == [[2, 3, 4, 5]]
    assert answers["y"].tolist() == [[15]]  # of all five
    tie_states(model, {}, USUAL)  # changes nothing
    assert len(list(model.graph)) == 3


def test_what_gives_up_a_place_is_said_once():
    model = growing()
    assert notes_of_shortened_states(model) == []
    tie_states(model, {}, USUAL)
    tie_states(model, {}, USUAL)
    [note] = notes_of_shortened_states(model)
    assert note == (
        "output 'present' has the shape in which the next step takes it in, [1, 4], "
        "without the oldest place of the file's [1, 5]"
    )


def test_both_of_a_pair_are_measured_as_one():
    model = growing()
    tie_states(model, {}, USUAL)
    share_ranges_of_states(model)
    past, present = model.graph.inputs[1], model.graph.outputs[1]
    assert (past.name, present.name) == ("past", "present")
    assert shared_range_of(past) == shared_range_of(present) == "state:past"
    assert shared_range_of(model.graph.outputs[0]) is None


@pytest.mark.parametrize("given", [USUAL, {"present": "past"}])
def test_a_pair_may_be_given_in_either_order(given):
    model = growing()
    tie_states(model, given, {})
    assert states_of(model) == USUAL


def of_unknown_length():
    model = growing()
    past, present = model.graph.inputs[1], model.graph.outputs[1]
    present.shape = ir.Shape([1, None])
    return model, past, present


def test_a_given_output_may_have_a_shape_that_rewriting_finds():
    model, past, present = of_unknown_length()
    tie_states(model, USUAL, {})
    present.shape = past.shape
    share_ranges_of_states(model)
    assert shared_range_of(present) == "state:past"


def test_a_shape_that_rewriting_finds_may_not_fit():
    model, _, present = of_unknown_length()
    tie_states(model, USUAL, {})
    present.shape = ir.Shape([1, LENGTH + 1])
    with pytest.raises(BadOption, match=r"shape \[1,4\], the output \[1,5\]"):
        share_ranges_of_states(model)


def test_a_usual_pair_of_unknown_shape_is_left_alone():
    model, _, _ = of_unknown_length()
    tie_states(model, {}, USUAL)
    assert states_of(model) == {}


def test_a_usual_pair_that_does_not_fit_is_left_alone():
    model = growing(places=2)
    tie_states(model, {}, USUAL)
    assert states_of(model) == {}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"past": "z"}, "--state past=z: the model has no output 'z'; it has y, present"),
        ({"z": "present"}, "--state z=present: the model has no input 'z'; it has x, past"),
        ({"past": "y"}, r"--state past=y: the input has shape \[1, 4\], the output \[1, 1\]: expected the same.*"),
    ],
)  # fmt: skip
def test_a_given_pair_that_does_not_fit_is_refused(given, sentence):
    with pytest.raises(BadOption, match=f"^{sentence}$"):
        tie_states(growing(), given, {})


def two_pasts():
    """Two inputs and two outputs of one shape, which usual names pair in order."""
    nodes = [
        node("Add", "past.a past.b", "present.a"),
        node("Relu", "present.a", "present.b"),
    ]
    shapes = {"past.a": [1, LENGTH], "past.b": [1, LENGTH]}
    return graph_of(nodes, shapes, outputs="present.a present.b")


IN_ORDER = {"past.a": "present.a", "past.b": "present.b"}


@pytest.mark.parametrize(
    "given", [{"past.b": "present.a"}, {"present.a": "past.b"}]
)
def test_a_given_pair_displaces_the_usual_ones_of_its_input_and_output(given):
    model = two_pasts()
    tie_states(model, given, IN_ORDER)
    assert states_of(model) == {"past.b": "present.a"}


def test_an_output_is_the_state_of_one_input():
    given = {"past.a": "present.b", "past.b": "present.b"}
    sentence = "--state past.b=present.b: 'present.b' is the state of input 'past.a' already; expected an output for each"
    with pytest.raises(BadOption, match=f"^{re.escape(sentence)}$"):
        tie_states(two_pasts(), given, {})


def test_an_input_has_one_state():
    given = {"past.a": "present.a", "present.b": "past.a"}
    with pytest.raises(BadOption, match=r"two outputs: 'present\.a' and"):
        tie_states(two_pasts(), given, {})


def test_a_given_pair_is_refused_though_its_input_has_a_usual_one_too():
    """Here the output is given first; the input's usual pair does not excuse the given one."""
    with pytest.raises(BadOption, match="the input has shape"):
        tie_states(growing(places=2), {"present": "past"}, USUAL)


def test_integers_are_no_state():
    model = graph_of(
        [node("Add", "past x", "present"), node("Cast", "x", "y", to=1)],
        {"x": [1], "past": [1]},
        outputs="y present",
        kind=7,
    )
    with pytest.raises(BadOption, match="a state is of float numbers"):
        tie_states(model, USUAL, {})
