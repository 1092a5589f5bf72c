"""Windows over images: pooling in its conventions, and changes of resolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.layers import (
    CHANNELS_LAST,
    LAYOUTS,
    some_rank,
    window,
)
from tests.mxnet_judge.makers.registry import Drawn, maker
from tests.mxnet_judge.sketch import Parameter


@maker("Pooling", cases=150)
@maker("Pooling_v1", cases=30)
def pooling(draw: Draw, name: str) -> Drawn:
    older = name.endswith("v1")
    rank = 2 if older else some_rank(draw)
    kinds = (
        ["max", "avg", "avg", "sum"]
        if older
        else ["max", "avg", "avg", "avg", "sum", "lp"]
    )
    kind = draw.maybe(*kinds)
    everywhere = draw.maybe(True, False, False)
    kernel: Any = window(draw, rank, 1, 3, default=False)
    if everywhere is True and draw.chance(0.5):
        kernel = OMIT
    attributes = {
        "kernel": kernel,
        "pool_type": kind,
        "global_pool": everywhere,
        "pooling_convention": _convention(draw, rank, older),
        "stride": window(draw, rank, 1, 3),
        "pad": window(draw, rank, 0, 1),
    }
    if not older:
        attributes |= {
            "count_include_pad": draw.maybe(True, False, None),
            "layout": draw.maybe(LAYOUTS[rank], None)
            if draw.chance(0.3)
            else OMIT,
            "cudnn_off": draw.maybe(True, False) if draw.chance(0.2) else OMIT,
            "p_value": draw.one(1, 2, 3)
            if kind == "lp"
            else draw.maybe(2)
            if draw.chance(0.1)
            else OMIT,
        }
    data = draw.data(draw.image(rank))
    if not older and draw.chance(0.1):
        attributes["layout"] = CHANNELS_LAST[rank]
        data = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    return Drawn([data], attributes)


def _convention(draw: Draw, rank: int, older: bool) -> Any:
    words = ["valid", "full", "full"]
    if rank == 1 and not older:
        words.append("same")
    return draw.maybe(*words)


@maker("_contrib_AdaptiveAvgPooling2D", cases=20)
def adaptive(draw: Draw, name: str) -> Drawn:
    size = draw.one(
        OMIT,
        (),
        draw.integer(1, 5),
        (draw.integer(1, 5),),
        (draw.integer(1, 5), draw.integer(1, 5)),
    )
    return Drawn([draw.data(draw.image(least=1))], {"output_size": size})


@maker("UpSampling", cases=24)
def up_sampling(draw: Draw, name: str) -> Drawn:
    scale, (batch, channels, height, width) = (
        draw.integer(1, 3),
        draw.image(most=5),
    )
    unused = {"workspace": draw.maybe(512)} if draw.chance(0.3) else {}
    if draw.chance(0.3):
        kernel = 2 * scale - scale % 2
        weight = Parameter(draw.data((channels, 1, kernel, kernel)))
        attributes = {
            "scale": scale,
            "sample_type": "bilinear",
            "num_args": 2,
            "num_filter": channels,
            **unused,
        }
        return Drawn(
            [draw.data((batch, channels, height, width)), weight], attributes
        )
    number = draw.one(1, 1, 2, 3)
    mode = draw.maybe("concat", "sum")
    factors = [draw.one(1, 1, 2) for _ in range(number - 1)]
    sizes = [(batch, channels, height * 2, width * 2)] + [
        (batch, channels, height * 2 // factor, width * 2 // factor)
        for factor in factors
    ]
    attributes = {
        "scale": scale,
        "sample_type": "nearest",
        "num_args": number,
        "multi_input_mode": mode,
        **unused,
    }
    if draw.chance(0.1):
        attributes["num_filter"] = 0
    return Drawn([draw.data(size) for size in sizes], attributes)


@maker("_contrib_BilinearResize2D", cases=40)
def bilinear_resize(draw: Draw, name: str) -> Drawn:
    size = {"height": draw.integer(1, 12), "width": draw.integer(1, 12)}
    scale = {
        "scale_height": draw.one(0.5, 1.5, 2.0, 3.0, 0.7),
        "scale_width": draw.one(0.5, 1.5, 2.0, 3.0, 0.7),
    }
    data, mode = draw.data(draw.image()), draw.maybe("size")
    corners = {"align_corners": draw.maybe(True, False)}
    kind = draw.one("size", "scale", "mode", "like")
    if kind == "like":
        attributes = {"mode": "like", **corners}
        return Drawn([data, draw.data(draw.image())], attributes)
    if kind == "mode":
        words = (
            "odd_scale",
            "to_even_down",
            "to_even_up",
            "to_odd_down",
            "to_odd_up",
        )
        mode = draw.one(*words)
        return Drawn(
            [data],
            {"mode": mode, **corners, **(scale if mode == "odd_scale" else {})},
        )
    return Drawn(
        [data], {"mode": mode, **corners, **(size if kind == "size" else scale)}
    )
