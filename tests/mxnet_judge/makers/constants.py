"""Tensors that depend on no input, and those that only depend on its shape."""

from __future__ import annotations

from typing import Any

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker


def _where(draw: Draw) -> dict[str, Any]:
    """Attributes that say where and as what it is held."""
    return {
        "ctx": draw.maybe("cpu(0)"),
        "dtype": draw.maybe("float32"),
    }


@maker("_zeros", "_ones", "_full", cases=8)
def filled(draw: Draw, name: str) -> Drawn:
    value = {"value": draw.real(-3, 3)} if name == "_full" else {}
    return Drawn(
        [],
        {
            "shape": OMIT if draw.chance(0.2) else draw.shape(1, 4),
            **value,
            **_where(draw),
        },
    )


@maker("_zeros_without_dtype", cases=4)
def zeros_without_dtype(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [],
        {
            "shape": OMIT if draw.chance(0.1) else draw.shape(1, 4),
            "dtype": draw.maybe(-1),
            "ctx": draw.maybe("cpu(0)"),
        },
    )


@maker("_arange", cases=16)
def arange(draw: Draw, name: str) -> Drawn:
    start = draw.one(0.0, draw.integer(-12, 12) / 4)
    step = draw.one(1.0, 2.0, 0.25)
    attributes = {
        "start": start,
        "stop": start + step * draw.integer(1, 6)
        if draw.chance(0.5) or start <= 0
        else draw.maybe(None),
        "step": step if step != 1.0 else draw.maybe(1.0),
        "repeat": draw.maybe(1, 2),
        "infer_range": draw.maybe(False),
        **_where(draw),
    }
    return Drawn([], attributes)


@maker("_linspace", cases=10)
def linspace(draw: Draw, name: str) -> Drawn:
    start = draw.real(-3, 3)
    attributes = {
        "start": start,
        "stop": start + draw.real(1, 5),
        "num": draw.integer(1, 6),
        "endpoint": draw.maybe(True, False),
    }
    return Drawn([], {**attributes, **_where(draw)})


@maker("_eye", cases=8)
def eye(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [],
        {
            "N": draw.integer(1, 5),
            "M": draw.maybe(0, draw.integer(1, 5)),
            "k": draw.one(OMIT, OMIT, 0, 1, -1),
            **_where(draw),
        },
    )


@maker("_contrib_index_array", cases=10)
def index_array(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 3)
    return Drawn(
        [draw.data(shape)], {"axes": draw.maybe(None, draw.axes(len(shape)))}
    )
