"""nms in the engine: the reference's bytes on every instruction set, whatever overlaps, ties or is left out."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest

from cvm.program import IntArray, TensorType
from cvm.runtime import native
from tests.support.engine_steps import (
    ARENA,
    CONSTANT,
    INPUT,
    OUTPUT,
    At,
    extreme,
    reference,
    run_step,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

PLACES = cycle(
    [(INPUT, OUTPUT), (ARENA, ARENA), (CONSTANT, ARENA), (INPUT, ARENA)]
)
THREADS = cycle([1, 2, 3, 4])


def attributes(keep: int, candidates: int, **changed: Any) -> dict[str, Any]:
    usual = {
        "least_score": -(2**31),
        "overlap": (1, 2),
        "inclusive": False,
        "gaps": False,
    }
    return {"keep": keep, "candidates": candidates, **usual, **changed}


def operands(
    batch: int,
    boxes: int,
    *,
    classes: int = 0,
    extent: int = 32767,
    score: int = 2**31 - 1,
) -> list[IntArray]:
    """`classes` of 0: one for all. Small extents overlap, small scores tie."""
    labels = TensorType("i32", (batch, boxes if classes else 1))
    return [
        extreme(
            TensorType("i32", (batch, boxes, 4)),
            1,
            low=-extent - 1,
            high=extent,
        ),
        extreme(
            TensorType("i32", (batch, boxes)), 2, low=-score - 1, high=score
        ),
        extreme(labels, 3, low=-1, high=max(classes - 2, -1)),
    ]


def assert_equal_everywhere(
    arrays: list[IntArray],
    how: dict[str, Any],
    expected: IntArray | None = None,
) -> None:
    expected = reference("nms", arrays, how) if expected is None else expected
    for isa in native.isas():
        at, result_at = next(PLACES)
        found = run_step(
            "nms", arrays, how, TensorType("i32", expected.shape), at=[at] * 3, result_at=result_at, isa=isa,
            threads=next(THREADS),
        )  # fmt: skip
        np.testing.assert_array_equal(
            found, expected, f"{at} to {result_at} on {isa}"
        )


@pytest.mark.parametrize("boxes", [1, 2, 17, 300])
@pytest.mark.parametrize("classes", [0, 3])
def test_the_best_boxes_are_the_reference_s(boxes: int, classes: int) -> None:
    for extent, score in ((3, 2), (40, 1000), (32767, 2**31 - 1)):
        arrays = operands(2, boxes, classes=classes, extent=extent, score=score)
        for candidates in {1, (boxes + 1) // 2, boxes}:
            for keep in {1, (candidates + 1) // 2, candidates}:
                assert_equal_everywhere(arrays, attributes(keep, candidates))
            assert_equal_everywhere(
                arrays,
                attributes(candidates, candidates, gaps=True, least_score=0),
            )


@pytest.mark.parametrize(
    "overlap", [(0, 1), (1, 9), (9, 10), (1, 1), (2**30 - 1, 2**30)]
)
@pytest.mark.parametrize("inclusive", [False, True])
def test_every_limit_is_met_exactly(
    overlap: tuple[int, int], inclusive: bool
) -> None:
    for extent in (2, 10, 32767):
        arrays = operands(3, 60, classes=2, extent=extent, score=5)
        assert_equal_everywhere(
            arrays, attributes(60, 60, overlap=overlap, inclusive=inclusive)
        )


def test_no_score_reaches_the_least() -> None:
    arrays = operands(1, 9, score=100)
    assert_equal_everywhere(
        arrays, attributes(4, 9, least_score=101), np.full((1, 4), 9, np.int32)
    )


def test_more_candidates_than_are_looked_at_are_chosen_by_index_among_equals() -> (
    None
):
    boxes = np.array(
        [[[i, 0, i, 0] for i in range(100)]], np.int32
    )  # without area: nothing is suppressed
    scores = np.array([[7] * 50 + [8] + [7] * 49], np.int32)
    arrays = [boxes, scores, np.zeros((1, 1), np.int32)]
    assert_equal_everywhere(
        arrays, attributes(5, 5), np.array([[50, 0, 1, 2, 3]], np.int32)
    )


def test_coordinates_that_no_proof_allows_stop_at_an_end() -> None:
    """2^31-1 stands for 32767: both boxes are the same."""
    boxes = np.array(
        [[[0, 0, 2**31 - 1, 2**31 - 1], [0, 0, 32767, 32767]]], np.int32
    )
    arrays = [boxes, np.array([[1, 2]], np.int32), np.zeros((1, 1), np.int32)]
    assert_equal_everywhere(
        arrays, attributes(2, 2), np.array([[1, 2]], np.int32)
    )


REFUSED = [
    ({"keep": 0}, "keep or candidates is out of range"),
    ({"keep": 3, "candidates": 2}, "keep or candidates is out of range"),
    ({"candidates": 5}, "keep or candidates is out of range"),
    (
        {"keep": 2, "candidates": 3, "gaps": True},
        "keep differs from candidates in spite of gaps",
    ),
    ({"least_score": 2**31}, "least_score does not fit i32"),
    ({"overlap": (-1, 1)}, "overlap is not a fraction of at most 1"),
    ({"overlap": (2, 1)}, "overlap is not a fraction of at most 1"),
    ({"overlap": (0, 0)}, "overlap is not a fraction of at most 1"),
    ({"overlap": (1, 2**30 + 1)}, "overlap is not a fraction of at most 1"),
    ({"overlap": (1, 2, 3)}, "an attribute is missing"),
]


@pytest.mark.parametrize(("changed", "sentence"), REFUSED)
def test_numbers_that_no_program_has_are_refused(
    changed: dict[str, Any], sentence: str
) -> None:
    how = attributes(3, 3) | changed
    with pytest.raises(ValueError, match=sentence):
        run_step(
            "nms",
            operands(1, 4),
            how,
            TensorType("i32", (1, 3)),
            at=[ARENA] * 3,
            result_at=ARENA,
        )


@pytest.mark.parametrize(
    ("shapes", "result", "sentence"),
    [
        (
            [(1, 4, 5), (1, 4), (1, 1)],
            (1, 3),
            "the shapes of boxes, scores and classes do not agree",
        ),
        (
            [(1, 4, 4), (1, 3), (1, 1)],
            (1, 3),
            "the shapes of boxes, scores and classes do not agree",
        ),
        (
            [(1, 4, 4), (2, 4), (1, 1)],
            (1, 3),
            "the shapes of boxes, scores and classes do not agree",
        ),
        (
            [(1, 4, 4), (1, 4), (1, 3)],
            (1, 3),
            "the shapes of boxes, scores and classes do not agree",
        ),
        (
            [(4, 4), (1, 4), (1, 4)],
            (1, 3),
            "boxes, scores and classes are not of rank 3, 2 and 2",
        ),
        (
            [(1, 4, 4), (4,), (1, 4)],
            (1, 3),
            "boxes, scores and classes are not of rank 3, 2 and 2",
        ),
        ([(1, 4, 4), (1, 4), (1, 4)], (1, 4), r"the result is not \[B,keep\]"),
        ([(1, 4, 4), (1, 4), (1, 4)], (3,), r"the result is not \[B,keep\]"),
    ],
)
def test_shapes_that_do_not_agree_are_refused(
    shapes: list[tuple[int, ...]], result: tuple[int, ...], sentence: str
) -> None:
    arrays = [np.zeros(shape, np.int32) for shape in shapes]
    with pytest.raises(ValueError, match=sentence):
        run_step(
            "nms",
            arrays,
            attributes(3, 3),
            TensorType("i32", result),
            at=[ARENA] * 3,
            result_at=ARENA,
        )


def test_other_dtypes_and_gaps_between_rows_are_refused() -> None:
    arrays = operands(1, 4)
    gap = At(ARENA.room, 4)
    result = TensorType("i32", (1, 3))
    for place in range(3):
        for other, at in (
            (arrays[place].astype(np.int16), ARENA),
            (arrays[place], gap),
        ):
            given = [*arrays[:place], other, *arrays[place + 1 :]]
            places = [at if index == place else ARENA for index in range(3)]
            with pytest.raises(
                ValueError, match="an operand or the result is not dense i32"
            ):
                run_step(
                    "nms",
                    given,
                    attributes(3, 3),
                    result,
                    at=places,
                    result_at=ARENA,
                )
