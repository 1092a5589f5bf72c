"""What takes many elements to one: sums and extremes over axes, positions, orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker


def some_axes(draw: Draw, rank: int) -> Any:
    """Left out, None, (), one number or several, also from the back."""
    return draw.one(
        OMIT,
        None,
        (),
        draw.axis(rank),
        draw.axes(rank),
        draw.axes(rank),
        draw.axes(rank),
    )


@maker(
    "sum",
    "sum_axis",
    "mean",
    "max",
    "max_axis",
    "min",
    "min_axis",
    "prod",
    cases=16,
)
@maker("nansum", "nanprod", cases=10)
def reduction(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 4)
    attributes = {
        "axis": some_axes(draw, len(shape)),
        "keepdims": draw.maybe(True, False),
        "exclude": draw.maybe(True, False),
    }
    return Drawn([draw.data(shape)], attributes)


@maker("norm", cases=24)
def norm(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 4)
    rank = len(shape)
    axis = draw.one(
        OMIT,
        None,
        draw.axis(rank),
        draw.axes(rank)[:1],
        draw.axes(rank, min(2, rank))[:2],
    )
    attributes = {
        "ord": draw.maybe(1, 2),
        "axis": axis,
        "keepdims": draw.maybe(True, False),
        "out_dtype": draw.maybe(None, "float32") if draw.chance(0.3) else OMIT,
    }
    return Drawn([draw.data(shape)], attributes)


@maker("moments", cases=12)
def moments(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    attributes = {
        "axes": draw.maybe(None, draw.axes(len(shape))),
        "keepdims": draw.maybe(True, False),
    }
    return Drawn([draw.data(shape)], attributes, outputs=2)


@maker("cumsum", "_np_cumsum", cases=10)
def cumsum(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    return Drawn(
        [draw.data(shape)],
        {
            "axis": draw.maybe(None, draw.axis(len(shape))),
            "dtype": draw.maybe("float32"),
        },
    )


@maker("argmax", "argmin", cases=14)
def position(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 4)
    axis = draw.one(OMIT, None, draw.axis(len(shape)), draw.axis(len(shape)))
    return Drawn(
        [draw.data(shape)], {"axis": axis, "keepdims": draw.maybe(True, False)}
    )


@maker("argmax_channel", cases=8)
def argmax_channel(draw: Draw, name: str) -> Drawn:
    return Drawn([draw.data(draw.shape(2, 2 if draw.chance(0.7) else 4))])


def distinct(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """No two elements alike: what MXNet does with ties in an order is not the same from one size to another."""
    size = int(np.prod(shape))
    numbers = draw.random.permutation(size).astype(np.float32) - size // 2
    return (numbers * np.float32(0.25)).reshape(shape)


@maker("topk", cases=24)
def topk(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    axis = draw.one(OMIT, -1, draw.axis(len(shape)), None)
    size = (
        int(np.prod(shape))
        if axis is None
        else shape[-1 if axis is OMIT else axis]
    )
    kind = draw.maybe("value", "indices", "mask", "both")
    attributes = {
        "axis": axis,
        "k": draw.one(
            OMIT,
            1,
            draw.integer(1, size),
            draw.integer(1, size),
            draw.one(0, -1),
        ),
        "ret_typ": kind,
        "is_ascend": draw.maybe(True, False),
        "dtype": draw.maybe("float32") if draw.chance(0.3) else OMIT,
    }
    return Drawn(
        [distinct(draw, shape)], attributes, outputs=2 if kind == "both" else 1
    )


@maker("sort", "argsort", cases=14)
def order(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    attributes = {
        "axis": draw.one(OMIT, -1, draw.axis(len(shape)), None),
        "is_ascend": draw.maybe(True, False),
    }
    if name == "argsort" and draw.chance(0.3):
        attributes["dtype"] = "float32"
    return Drawn([distinct(draw, shape)], attributes)
