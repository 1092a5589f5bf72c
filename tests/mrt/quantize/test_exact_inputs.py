"""Integers that are computed exactly have the widest interval that is proven; all others that of the samples."""

import numpy as np
import pytest

from tests.support.graphs import node
from tests.support.whole_models import model_of, through

MOST = 2**31 - 1
SAMPLES = [{"t": np.array([[it]])} for it in (0, 40, 197)]
NUMBERS = {"day": np.array(86400), "zero": np.array(0), "seven": np.array(7), "k": np.float32(0.3), "hour": np.float32(3600),
           "rows": np.arange(300, dtype=np.float32)}  # fmt: skip
REMAINDER = node("Mod", "t seven", "r")
AS_FLOAT = [node("Cast", "t", "tf", to=1), node("Div", "tf hour", "q")]
FLOORED = [*AS_FLOAT, node("Floor", "q", "w"), node("Cast", "w", "hours", to=7)]


def floor_divided(by):
    """Return nodes as torch.export writes d = t // by."""
    return [
        node("Less", "t zero", "negative"),
        node("Mod", f"t {by}", "rest"),
        node("Cast", "rest", "is_part", to=9),
        node("And", "negative is_part", "lowered"),
        node("Cast", "lowered", "one", to=7),
        node("Div", f"t {by}", "whole"),
        node("Sub", "whole one", "d"),
    ]


def left_by(by):
    """Return nodes of s = t - (t // by) * by."""
    product = node("Mul", f"d {by}", "m")
    return [*floor_divided(by), product, node("Sub", "t m", "s")]


def program_of(nodes, feeds=SAMPLES, bits=16, tmp_path=None):
    model = model_of(nodes, feeds[0], NUMBERS)
    return through(model, feeds, tmp_path, bits=bits)


def ends(answer):
    return [(item.lo, item.hi) for item in answer.program.inputs]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Mod", "t seven", "y")], MOST),
        ([node("Div", "t day", "d"), node("Add", "d seven", "e"), node("Mod", "e seven", "y")], MOST),
        ([node("Mul", "t seven", "y")], MOST >> 3),
        ([REMAINDER, node("Cast", "r", "f", to=1), node("Mul", "f k", "y")], MOST),
        ([REMAINDER, node("Equal", "r day", "e"), node("Cast", "e", "y", to=1)], MOST),
        ([node("Add", "t seven", "i"), node("Gather", "rows i", "y")], MOST >> 1),
        ([*floor_divided("day"), node("Mod", "d seven", "y")], MOST),
        ([*left_by("seven"), node("Cast", "s", "f", to=1), node("Mul", "f k", "y")], MOST),
        ([*FLOORED, node("Mod", "hours seven", "y")], MOST),
    ],
)  # fmt: skip
def test_what_is_computed_exactly_takes_all_that_is_proven(
    nodes, expected, tmp_path
):
    assert ends(program_of(nodes, tmp_path=tmp_path)) == [(0, expected)]


@pytest.mark.parametrize(
    "nodes",
    [
        [REMAINDER, node("Cast", "t", "f", to=1), node("Cast", "r", "g", to=1), node("Add", "f g", "y")],
        [node("Add", "t seven", "u"), node("Cast", "u", "f", to=1), node("Mul", "f k", "y")],
    ],
)  # fmt: skip
def test_what_floats_are_made_of_ends_where_samples_do(nodes, tmp_path):
    assert ends(program_of(nodes, tmp_path=tmp_path)) == [(0, 197)]


def test_what_is_only_compared_ends_where_samples_do(tmp_path):
    nodes = [node("Equal", "t seven", "e"), node("Cast", "e", "y", to=1)]
    assert ends(program_of(nodes, tmp_path=tmp_path)) == [(0, 197)]


def test_two_inputs_that_are_added_end_where_samples_do(tmp_path):
    feeds = [sample | {"u": sample["t"]} for sample in SAMPLES]
    answer = program_of([node("Add", "t u", "y")], feeds, tmp_path=tmp_path)
    assert ends(answer) == [(0, 197), (0, 197)]


def test_negative_integers_reach_as_far_below_as_is_proven(tmp_path):
    feeds = [{"t": np.array([[it]])} for it in (-30, 4, 197)]
    answer = program_of([node("Mod", "t seven", "y")], feeds, tmp_path=tmp_path)
    ((least, most),) = ends(answer)
    assert least <= -(2**29) and most >= 2**29 - 1


def test_few_bits_end_where_samples_do(tmp_path):
    answer = program_of(
        [node("Mod", "t seven", "y")], bits=6, tmp_path=tmp_path
    )
    assert ends(answer) == [(0, 197)]


@pytest.mark.parametrize(
    "nodes",
    [
        [*AS_FLOAT, node("Cast", "q", "y", to=7)],
        [*FLOORED, node("Neg", "hours", "y")],
        [*left_by("day"), node("Neg", "s", "y")],
    ],
)
@pytest.mark.parametrize("least", [0, -90_000])
def test_quotients_and_remainders_are_exact(nodes, least, tmp_path):
    feeds = [{"t": np.array([[it]])} for it in range(least, 100_000, 1799)]
    answer = program_of(nodes, feeds, tmp_path=tmp_path)
    assert answer.agreement() == 1


def test_a_quotient_of_what_is_never_negative_is_one_instruction(tmp_path):
    nodes = [*AS_FLOAT, node("Floor", "q", "w"), node("Cast", "w", "y", to=7)]
    answer = program_of(nodes, tmp_path=tmp_path)
    assert [it.name for it in answer.program.instructions] == ["intdiv"]
