"""Boxes: what proposes, decodes, compares and suppresses them, and what cuts regions out of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.reductions import distinct
from tests.mxnet_judge.makers.registry import Drawn, maker

FORMATS = ("corner", "center")


def boxes(
    draw: Draw, shape: tuple[int, ...], *, scale: float = 1.0
) -> np.ndarray:
    """Corners, of which the second lies beyond the first; few of them alike in size or place."""
    first = draw.random.uniform(0, 0.7, (*shape, 2))
    size = draw.random.uniform(0.1, 0.6, (*shape, 2))
    return (
        (np.concatenate([first, first + size], -1) * scale)
        .round(3)
        .astype(np.float32)
    )


@maker("_contrib_MultiBoxPrior", cases=20)
def prior(draw: Draw, name: str) -> Drawn:
    several = tuple(draw.real(0.1, 1.2) for _ in range(draw.integer(1, 3)))
    attributes = {
        "sizes": draw.maybe(several, several),
        "ratios": draw.maybe((1.0, 2.0, 0.5), (2.0,), (1.0, 3.0)),
        "clip": draw.maybe(True, False),
        "steps": draw.maybe((0.25, 0.2), (-1.0, -1.0)),
        "offsets": draw.maybe((0.5, 0.5), (0.25, 0.75)),
    }
    return Drawn([draw.data(draw.image(least=1, most=4))], attributes)


@maker("_contrib_MultiBoxDetection", cases=40)
def detection(draw: Draw, name: str) -> Drawn:
    batch = draw.integer(1, 2)
    classes = draw.integer(1, 4)
    anchors = draw.integer(1, 12)
    scores = (
        draw.random.dirichlet([0.6] * (classes + 1), (batch, anchors))
        .swapaxes(1, 2)
        .astype(np.float32)
    )
    offsets = (
        (draw.random.standard_normal((batch, anchors * 4)) * 0.5)
        .round(3)
        .astype(np.float32)
    )
    attributes = {
        "clip": draw.maybe(True, False),
        "threshold": draw.maybe(0.1, 0.3),
        "background_id": draw.maybe(0) if draw.chance(0.5) else OMIT,
        "nms_threshold": draw.maybe(0.3, 0.7, 0.45),
        "force_suppress": draw.maybe(True, False),
        "variances": draw.maybe((0.1, 0.1, 0.2, 0.2), (0.2, 0.1, 0.3, 0.1)),
        "nms_topk": draw.maybe(-1, draw.integer(1, 8)),
    }
    return Drawn([scores, offsets, boxes(draw, (1, anchors))], attributes)


@maker("_contrib_box_nms", "_contrib_box_non_maximum_suppression", cases=40)
def box_nms(draw: Draw, name: str) -> Drawn:
    """Rows of class, score, box, in this order or another."""
    lead, count = draw.one((), (1,), (2,), (2, 2)), draw.integer(1, 10)
    corners = boxes(draw, (*lead, count))
    scores = distinct(draw, (*lead, count, 1)) / np.float32(4)
    classes = draw.whole((*lead, count, 1), 0 if draw.chance(0.7) else -1, 2)
    plain = draw.chance(0.7)
    columns = (
        [classes, scores, corners]
        if plain
        else [corners, scores, classes, scores]
    )
    place: dict[str, Any] = {"coord_start": 0, "score_index": 4}
    if plain:
        place = {"coord_start": draw.maybe(2), "score_index": draw.maybe(1)}
    attributes = {
        **place,
        "id_index": draw.maybe(-1, 0 if plain else 5),
        "overlap_thresh": draw.maybe(0.3, 0.7, 0.1),
        "valid_thresh": draw.maybe(0.0, 0.25),
        "topk": draw.maybe(
            -1, draw.integer(1, 8), 0 if draw.chance(0.2) else 3
        ),
        "background_id": draw.maybe(-1, 0),
        "force_suppress": draw.maybe(True, False),
        "in_format": draw.maybe(*FORMATS),
        "out_format": draw.maybe(*FORMATS),
    }
    return Drawn([np.concatenate(columns, -1)], attributes)


@maker("_contrib_box_iou", cases=14)
def box_iou(draw: Draw, name: str) -> Drawn:
    left, right = draw.shape(1, 2, 4), draw.shape(1, 2, 4)
    pair = [boxes(draw, left), boxes(draw, right)]
    if draw.chance(0.3):
        pair[0] = np.zeros_like(pair[0])
    return Drawn(pair, {"format": draw.maybe(*FORMATS)})


@maker("_contrib_box_decode", cases=20)
def box_decode(draw: Draw, name: str) -> Drawn:
    batch, count = draw.integer(1, 3), draw.integer(1, 5)
    attributes = {
        **{f"std{index}": draw.maybe(0.1, 0.2) for index in range(4)},
        "clip": draw.maybe(-1.0, draw.real(0.1, 2)),
        "format": draw.maybe(*FORMATS),
    }
    return Drawn(
        [draw.data((batch, count, 4)), boxes(draw, (1, count))], attributes
    )


@maker("_contrib_ROIAlign", cases=30)
def roi_align(draw: Draw, name: str) -> Drawn:
    """Regions inside of the map, and some beyond its border."""
    shape, count = draw.image(least=4), draw.integer(1, 4)
    regions = boxes(
        draw, (count,), scale=max(shape[2:]) * draw.one(0.7, 1.0, 2.0)
    )
    rois = np.concatenate(
        [draw.whole((count, 1), 0, shape[0] - 1), regions], -1
    )
    attributes = {
        "pooled_size": (draw.integer(1, 4), draw.integer(1, 4)),
        "spatial_scale": draw.one(1.0, 0.5),
        "sample_ratio": draw.maybe(-1, 2, 1),
        "position_sensitive": draw.maybe(False),
        "aligned": draw.maybe(True, False),
    }
    return Drawn([draw.data(shape), rois], attributes)
