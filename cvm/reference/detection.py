"""Choosing among boxes that overlap: nms."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvm.errors import Trap
from cvm.program import DTYPE_RANGES, IntArray, TensorType
from cvm.program.bounds import Bounds, full
from cvm.reference.call import Call
from cvm.reference.elementwise import check_dtype

LEAST, GREATEST = DTYPE_RANGES["i16"]  # of a coordinate: areas then fit 33 bits
MAX_DENOMINATOR = 2**30


def check_nms(call: Call) -> TensorType:
    """Indices of the kept boxes; C7 (small coordinates) is proven."""
    check_dtype(call, "C1", call.types, ("i32",))
    _check_shapes(call)
    boxes = call.types[0].shape[1]
    keep, candidates = call.integer("keep"), call.integer("candidates")
    call.require(
        1 <= keep <= candidates <= boxes,
        "C3",
        f"keep {keep}, candidates {candidates}; expected 1 <= keep <= candidates <= {boxes}, the number of boxes",
    )
    least_score, (low, high) = call.integer("least_score"), DTYPE_RANGES["i32"]
    call.require(
        low <= least_score <= high,
        "C4",
        f"least_score {least_score} lies outside {low}..{high}",
    )
    p, q = call.integers("overlap")
    call.require(
        0 <= p <= q and 1 <= q <= MAX_DENOMINATOR,
        "C5",
        f"overlap {p}/{q}; expected p/q with 0 <= p <= q, 1 <= q <= 2^30",
    )
    call.require(
        not call.attributes["gaps"] or keep == candidates,
        "C6",
        f"with gaps, keep {keep} differs from candidates {candidates}",
    )
    return TensorType("i32", (call.types[0].shape[0], keep))


def _check_shapes(call: Call) -> None:
    boxes, scores, classes = call.types
    agree = (
        boxes.rank == 3
        and boxes.shape[2] == 4
        and scores.shape == boxes.shape[:2]
    )
    call.require(
        agree and classes.shape in (scores.shape, (scores.shape[0], 1)),
        "C2",
        f"boxes {boxes}, scores {scores}, classes {classes}; expected [B,N,4], [B,N], and [B,N] or [B,1]",
    )


def bound_nms(call: Call) -> Bounds:
    """Any index, and the number of boxes where there is none."""
    boxes = call.bounds[0]
    call.prove(
        boxes.min >= LEAST and boxes.max <= GREATEST,
        "C7",
        f"boxes lie in {boxes.min}..{boxes.max}, outside {LEAST}..{GREATEST}",
    )
    assert call.result is not None
    return full(call.result, 0, call.types[0].shape[1])


def nms(
    boxes: IntArray,
    scores: IntArray,
    classes: IntArray,
    *,
    keep: int,
    candidates: int,
    least_score: int,
    **how: Any,
) -> IntArray:
    """For each sample the indices of the kept boxes, best first; N in the places without one. `how` is for `_kept`."""
    least, most = int(boxes.min()), int(boxes.max())
    if least < LEAST or most > GREATEST:
        raise Trap(
            f"coordinate {least if least < LEAST else most} lies outside {LEAST}..{GREATEST}"
        )
    gaps = how.pop("gaps")
    result = np.full((len(boxes), keep), scores.shape[1], np.int64)
    each_class = np.broadcast_to(classes, scores.shape)
    for row, box, score, class_ in zip(
        result,
        boxes.astype(np.int64),
        scores.astype(np.int64),
        each_class,
        strict=True,
    ):
        order = np.argsort(-score, kind="stable")
        order = order[score[order] >= least_score][:candidates]
        places = _kept(box[order], class_[order], keep, **how)
        row[places if gaps else slice(len(places))] = order[places]
    return result


def _kept(
    boxes: IntArray,
    classes: IntArray,
    most: int,
    *,
    overlap: tuple[int, int],
    inclusive: bool,
) -> IntArray:
    """The places of the first `most` boxes of which none overlaps an earlier one of these of its class too much."""
    kept, count = np.empty(most, np.int64), 0
    for place in range(len(boxes)):
        if count == most:
            break
        rivals = kept[:count][classes[kept[:count]] == classes[place]]
        intersection, union = _areas(boxes[place], boxes[rivals])
        excess = (
            intersection * overlap[1] - overlap[0] * union
        )  # both products fit 64 bits, so does their difference
        if not ((union > 0) & (excess >= 0 if inclusive else excess > 0)).any():
            kept[count] = place
            count += 1
    return kept[:count]


def _areas(box: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """The areas of the intersection and of the union of a box with each of the others."""
    corner = np.maximum(box[:2], others[:, :2])
    opposite = np.minimum(box[2:], others[:, 2:])
    intersection = _area(corner, opposite)
    return intersection, _area(box[:2], box[2:]) + _area(
        others[:, :2], others[:, 2:]
    ) - intersection


def _area(corner: IntArray, opposite: IntArray) -> IntArray:
    return np.asarray(np.maximum(opposite - corner, 0).prod(axis=-1))
