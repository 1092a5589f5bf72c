"""lower_gather: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.lookup.gather import lower_gather, runs_of
from tests.support.graphs import apply_pass, graph_of, node, operators_of


@pytest.mark.parametrize(
    ("indices", "results"),
    [
        (np.array(1), ["Slice", "Reshape"]),
        (np.array([-3, -2, -1]), ["Slice", "Reshape"]),
        (np.array([4, 2, 0]), ["Slice", "Slice", "Slice", "Concat", "Reshape"]),
        (np.array([[0, 2], [4, 1]]), ["Slice", "Slice", "Concat", "Reshape"]),
    ],
)
def test_runs_become_slices(indices, results):
    model = graph_of(
        [node("Gather", "x i", "y", axis=1)], {"x": (2, 5, 3)}, {"i": indices}
    )
    assert apply_pass(lower_gather, model, 0) == 1
    assert operators_of(model) == results


def test_runs_rise_evenly():
    assert runs_of([0, 1, 2, 5, 7, 9, 9, 3], 9) == [
        range(3),
        range(5, 10, 2),
        range(9, 10),
        range(3, 4),
    ]


def test_runs_fall_by_one():
    assert runs_of([3, 2, 1, 5, 3, 2, 0], 9) == [
        range(3, 0, -1),
        range(5, 6),
        range(3, 1, -1),
        range(1),
    ]


def test_no_more_runs_are_sought_than_are_of_use():
    assert runs_of([0] * 10**6, 2) == [range(1)] * 3


def test_what_falls_is_a_slice_backwards():
    model = graph_of(
        [node("Gather", "x i", "y", axis=1)],
        {"x": (2, 5, 3)},
        {"i": np.array([4, 3, 2, 1, 0])},
    )
    assert apply_pass(lower_gather, model, 0) == 1
    assert operators_of(model) == ["Slice", "Reshape"]


def test_many_pieces_stay_a_lookup():
    model = graph_of(
        [node("Gather", "x i", "y", axis=1)],
        {"x": (2, 5, 3)},
        {"i": np.array([0, 3, 3] * 9)},
    )
    assert lower_gather(model) == 0


def test_an_index_outside_stays():
    assert (
        lower_gather(
            graph_of(
                [node("Gather", "x i", "y")],
                {"x": (2, 5)},
                {"i": np.array([2])},
            )
        )
        == 0
    )


def test_computed_indices_stay():
    nodes = [node("Cast", "z", "i", to=7), node("Gather", "x i", "y")]
    model = graph_of(nodes, {"x": (2, 5), "z": (1,)})
    assert lower_gather(model) == 0
