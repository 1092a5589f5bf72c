"""Moving elements without changing them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker


@maker("Flatten", "flatten", cases=6)
def flatten(draw: Draw, name: str) -> Drawn:
    return Drawn([draw.data(draw.shape(1, 5))])


@maker("Reshape", "reshape", cases=50)
def reshape(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 6)
    if draw.chance(0.08):
        return Drawn([draw.data(shape)], _oldest(draw, shape))
    reverse = draw.maybe(False, False, True)
    codes = _codes(
        draw,
        shape[::-1] if reverse is True else shape,
        splits=reverse is not True,
    )
    return Drawn(
        [draw.data(shape)],
        {
            "shape": codes[::-1] if reverse is True else codes,
            "reverse": reverse,
        },
    )


def _oldest(draw: Draw, shape: tuple[int, ...]) -> dict[str, Any]:
    whole = int(np.prod(shape))
    return {
        "target_shape": draw.one((shape[0], 0), (0, whole // shape[0])),
        "keep_highest": draw.maybe(True, False),
    }


def _codes(
    draw: Draw, shape: tuple[int, ...], *, splits: bool
) -> tuple[int, ...]:
    """Walk along the dimensions and take some as they are, merge, split; hide one behind -1; sometimes at random."""
    if draw.chance(0.05):
        return tuple(draw.integer(-4, 3) for _ in range(draw.integer(1, 4)))
    codes: list[int] = []
    position = 0
    while position < len(shape):
        kind = draw.one(
            "keep",
            "keep",
            "number",
            "merge",
            "split",
            "rest" if draw.chance(0.3) else "keep",
            "one",
        )
        if kind == "merge" and position + 1 < len(shape):
            codes.append(-3)
            position += 2
            continue
        if kind == "rest":
            return _hidden(draw, [*codes, -2])
        if kind == "one":
            codes.append(1)
        if kind == "split" and splits:
            codes += [-4, *_factors(draw, shape[position])]
        else:
            codes.append(shape[position] if kind == "number" else 0)
        position += 1
    return _hidden(draw, codes)


def _factors(draw: Draw, size: int) -> list[int]:
    left = draw.one(
        *(number for number in range(1, size + 1) if size % number == 0)
    )
    return draw.one([left, size // left], [-1, size // left], [left, -1])


def _hidden(draw: Draw, codes: list[int]) -> tuple[int, ...]:
    """Often the last code becomes -1, sometimes another."""
    plain = [index for index, code in enumerate(codes) if code >= 0]
    if -4 not in codes and -2 not in codes and plain and draw.chance(0.5):
        codes = list(codes)
        codes[draw.one(*plain)] = -1
    return tuple(codes)


@maker("reshape_like", cases=16)
def reshape_like(draw: Draw, name: str) -> Drawn:
    """Whole, or a part of the dimensions of each."""
    a, b, c = (draw.integer(1, 4) for _ in range(3))
    if draw.chance(0.5):
        return Drawn(
            [
                draw.data((a, b, c)),
                draw.data(
                    draw.one((a * b, c), (c, b, a), (a, 1, b, c), (a * b * c,))
                ),
            ]
        )
    attributes = {
        "lhs_begin": draw.one(0, -3),
        "lhs_end": draw.one(2, -1),
        "rhs_begin": 1,
        "rhs_end": draw.one(2, -1),
    }
    return Drawn([draw.data((a, b, c)), draw.data((5, a * b, 3))], attributes)


@maker("transpose", cases=14)
def transpose(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5)
    return Drawn(
        [draw.data(shape)],
        {
            "axes": draw.maybe(
                (), draw.order(len(shape)), draw.order(len(shape))
            )
        },
    )


@maker("SwapAxis", "swapaxes", cases=8)
def swap_axis(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5)
    rank = len(shape)
    attributes = {
        "dim1": draw.maybe(draw.axis(rank), draw.axis(rank)),
        "dim2": draw.maybe(draw.axis(rank)),
    }
    return Drawn([draw.data(shape)], attributes)


@maker("expand_dims", cases=8)
def expand_dims(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    return Drawn(
        [draw.data(shape)], {"axis": draw.integer(-len(shape) - 1, len(shape))}
    )


@maker("squeeze", cases=16)
def squeeze(draw: Draw, name: str) -> Drawn:
    shape = tuple(1 if draw.chance(0.6) else size for size in draw.shape(1, 5))
    flat = [axis for axis, size in enumerate(shape) if size == 1] or [0]
    some = tuple(
        axis - len(shape) * draw.chance(0.3)
        for axis in flat[: draw.integer(1, len(flat))]
    )
    return Drawn(
        [draw.data(shape)], {"axis": draw.maybe(None, some, some[0], some)}
    )


@maker("_sparse_concat", cases=6)
@maker("Concat", "concat", cases=12)
def concat(draw: Draw, name: str) -> Drawn:
    shape, number = list(draw.shape(1, 5)), draw.integer(1, 4)
    dim = draw.maybe(1, draw.axis(len(shape)), draw.axis(len(shape)))
    axis = 1 if dim is OMIT else dim
    shapes = []
    for _ in range(number):
        if -len(shape) <= axis < len(shape):
            shape[axis] = draw.integer(1, 4)
        shapes.append(tuple(shape))
    return Drawn(
        [draw.data(each) for each in shapes], {"num_args": number, "dim": dim}
    )


@maker("_rnn_param_concat", cases=8)
def rnn_param_concat(draw: Draw, name: str) -> Drawn:
    """Vectors of weights in a row."""
    number = draw.integer(1, 4)
    return Drawn(
        [draw.data(draw.shape(1, 1, 6)) for _ in range(number)],
        {"num_args": number, "dim": draw.one(0, 0, OMIT)},
    )


@maker("stack", cases=12)
def stack(draw: Draw, name: str) -> Drawn:
    shape, number = draw.shape(1, 4), draw.integer(1, 4)
    axis = draw.maybe(draw.integer(-len(shape) - 1, len(shape)))
    return Drawn(
        [draw.data(shape) for _ in range(number)],
        {"num_args": number, "axis": axis},
    )


@maker("Pad", "pad", cases=20)
def pad(draw: Draw, name: str) -> Drawn:
    """MXNet pads the spatial axes of images of 2 and 3 dimensions."""
    rank = draw.one(2, 2, 3)
    shape = draw.image(rank, most=6)
    mode = draw.one("constant", "edge", "reflect")
    width = (0, 0, 0, 0, *(draw.integer(0, 2) for _ in range(2 * rank)))
    value = (
        {"constant_value": draw.maybe(0.0, draw.real(-2, 2))}
        if mode == "constant" or draw.chance(0.2)
        else {}
    )
    return Drawn(
        [draw.data(shape)], {"mode": mode, "pad_width": width, **value}
    )


@maker("_sparse_slice", cases=8)
@maker("slice", "crop", cases=24)
def slice_(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 6)
    taken = [
        _range(draw, size) for size in shape[: draw.integer(1, len(shape))]
    ]
    begin, end, step = zip(*taken, strict=True)
    return Drawn(
        [draw.data(shape)],
        {"begin": begin, "end": end, "step": draw.one(OMIT, (), step, step)},
    )


def _range(draw: Draw, size: int) -> tuple[int | None, int | None, int | None]:
    """Begin, end, step: never empty for a positive step; also backwards, from the end, or beyond it."""
    begin = draw.integer(0, size - 1)
    end: int | None = draw.integer(begin + 1, size + 1)
    step = draw.one(None, 1, 2, 3)
    if draw.chance(0.25):
        begin, end, step = draw.integer(0, size - 1), None, draw.one(-1, -2)
    elif draw.chance(0.3):
        begin, end = begin - size, draw.one(None, size)
    return draw.one(begin, begin, None), draw.one(end, end, None), step


@maker("slice_axis", cases=16)
def slice_axis(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5, 6)
    axis = draw.axis(len(shape))
    size = shape[axis]
    begin = draw.integer(0, size - 1)
    end = draw.one(
        None,
        draw.integer(begin + 1, size),
        draw.integer(begin + 1, size) - size or None,
    )
    begin = begin - size if draw.chance(0.3) else begin
    return Drawn(
        [draw.data(shape)],
        {
            "axis": axis,
            "begin": begin,
            "end": size + 2 if draw.chance(0.1) else end,
        },
    )


@maker("slice_like", cases=16)
def slice_like(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4, 6)
    smaller = tuple(draw.integer(1, size) for size in shape)
    axes = draw.maybe((), draw.axes(len(shape)), draw.axes(len(shape)))
    if axes not in (OMIT, ()) and draw.chance(0.3):
        smaller = tuple(
            size if axis in {each % len(shape) for each in axes} else 9
            for axis, size in enumerate(smaller)
        )
    return Drawn([draw.data(shape), draw.data(smaller)], {"axes": axes})


@maker("SliceChannel", "split", cases=14)
def slice_channel(draw: Draw, name: str) -> Drawn:
    shape, number = list(draw.shape(2, 4, 4)), draw.integer(1, 4)
    axis = draw.maybe(1, draw.axis(len(shape)))
    squeeze = draw.maybe(True, False, False)
    shape[1 if axis is OMIT else axis] = number * (
        1 if squeeze is True and draw.chance(0.9) else draw.integer(1, 2)
    )
    attributes = {"num_outputs": number, "axis": axis, "squeeze_axis": squeeze}
    return Drawn([draw.data(shape)], attributes, outputs=number)


@maker("_split_v2", cases=14)
def split_v2(draw: Draw, name: str) -> Drawn:
    shape = list(draw.shape(2, 4, 4))
    axis = draw.one(OMIT, draw.axis(len(shape)), draw.axis(len(shape)))
    squeeze = draw.maybe(True, False, False)
    place = 1 if axis is OMIT else axis
    if draw.chance(0.5):
        number = draw.integer(1, 4)
        shape[place] = number * (1 if squeeze is True else draw.integer(1, 2))
        attributes = {
            "indices": (0,),
            "sections": number,
            "axis": axis,
            "squeeze_axis": squeeze,
        }
        return Drawn([draw.data(shape)], attributes, outputs=number)
    shape[place] = draw.integer(3, 6)
    cuts = sorted(
        {draw.integer(1, shape[place] - 1) for _ in range(draw.integer(1, 2))}
    )
    attributes = {
        "indices": (0, *cuts),
        "axis": axis,
        "squeeze_axis": draw.maybe(False),
        "sections": draw.maybe(0),
    }
    return Drawn([draw.data(shape)], attributes, outputs=len(cuts) + 1)


@maker("Crop", cases=14)
def crop(draw: Draw, name: str) -> Drawn:
    """To a size that is written, or that of a second input."""
    shape = draw.image(least=4)
    height, width = draw.integer(1, shape[2]), draw.integer(1, shape[3])
    centred = draw.maybe(True, False)
    offset = draw.maybe(
        (draw.integer(0, shape[2] - height), draw.integer(0, shape[3] - width))
    )
    if draw.chance(0.5):
        like = draw.data((shape[0], draw.integer(1, 3), height, width))
        return Drawn(
            [draw.data(shape), like],
            {"num_args": 2, "offset": offset, "center_crop": centred},
        )
    attributes = {
        "num_args": 1,
        "h_w": (height, width),
        "offset": offset,
        "center_crop": centred,
    }
    return Drawn([draw.data(shape)], attributes)


@maker("tile", cases=14)
def tile(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(1, 4, 3))],
        {"reps": tuple(draw.integer(1, 3) for _ in range(draw.integer(1, 4)))},
    )


@maker("repeat", cases=12)
def repeat(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4, 4)
    return Drawn(
        [draw.data(shape)],
        {
            "repeats": draw.integer(1, 3),
            "axis": draw.maybe(None, draw.axis(len(shape))),
        },
    )


@maker("reverse", "flip", cases=10)
def reverse(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    return Drawn(
        [draw.data(shape)],
        {"axis": draw.one(draw.axis(len(shape)), draw.axes(len(shape)))},
    )


@maker("broadcast_to", cases=12)
def broadcast_to(draw: Draw, name: str) -> Drawn:
    """0 leaves a dimension as it is."""
    target = draw.shape(1, 4)
    shape = tuple(1 if draw.chance(0.5) else size for size in target)
    wanted = tuple(
        0 if size == found and draw.chance(0.4) else size
        for size, found in zip(target, shape, strict=True)
    )
    return Drawn(
        [draw.data(shape)], {"shape": OMIT if draw.chance(0.1) else wanted}
    )


@maker("broadcast_axis", "broadcast_axes", cases=10)
def broadcast_axis(draw: Draw, name: str) -> Drawn:
    shape = list(draw.shape(1, 4))
    axes = draw.axes(len(shape))
    for axis in axes:
        shape[axis] = 1
    if draw.chance(0.1):
        return Drawn([draw.data(shape)])
    if len(axes) == 1 and draw.chance(0.5):
        return Drawn(
            [draw.data(shape)], {"axis": axes[0], "size": draw.integer(1, 4)}
        )
    return Drawn(
        [draw.data(shape)],
        {"axis": axes, "size": tuple(draw.integer(1, 4) for _ in axes)},
    )


@maker("broadcast_like", cases=16)
def broadcast_like(draw: Draw, name: str) -> Drawn:
    target = draw.shape(1, 4)
    shape = tuple(1 if draw.chance(0.5) else size for size in target)
    if draw.chance(0.5):
        return Drawn(
            [draw.data(shape), draw.data(target)],
            {"lhs_axes": draw.maybe(None), "rhs_axes": draw.maybe(None)},
        )
    other, rank = draw.shape(1, 4), len(shape)
    left, right = draw.axis(rank), draw.axis(len(other))
    shape = tuple(
        1 if axis == left % rank else size for axis, size in enumerate(shape)
    )
    return Drawn(
        [draw.data(shape), draw.data(other)],
        {"lhs_axes": (left,), "rhs_axes": (right,)},
    )


@maker("depth_to_space", "space_to_depth", cases=8)
def blocks(draw: Draw, name: str) -> Drawn:
    size, (batch, channels, height, width) = (
        draw.integer(1, 3),
        draw.image(least=1, most=3),
    )
    if name == "depth_to_space":
        shape = (batch, channels * size * size, height, width)
    else:
        shape = (batch, channels, height * size, width * size)
    return Drawn([draw.data(shape)], {"block_size": size})


@maker("shape_array", "size_array", cases=5)
def sizes(draw: Draw, name: str) -> Drawn:
    return Drawn([draw.data(draw.shape(1, 4))])


@maker("diag", cases=12)
def diag(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 3, 4)
    axes = (
        {"axis1": 0, "axis2": draw.one(1, -1)}
        if len(shape) > 1 and draw.chance(0.4)
        else {}
    )
    return Drawn(
        [draw.data(shape)],
        {
            "k": draw.maybe(
                0, 1 if min(shape) > 1 else 0, -1 if min(shape) > 1 else 0
            ),
            **axes,
        },
    )
