"""Choosing elements by numbers, which MXNet keeps as floats."""

from __future__ import annotations

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker
from tests.mxnet_judge.sketch import Integers, Parameter


def indices(draw: Draw, shape: tuple[int, ...], size: int) -> np.ndarray:
    """Mostly inside; some from the back or beyond, some with a fraction."""
    wild = draw.chance(0.4)
    numbers = (
        draw.whole(shape, -size - 1, size + 1)
        if wild
        else draw.whole(shape, 0, size - 1)
    )
    return numbers + np.float32(0.5) if wild and draw.chance(0.4) else numbers


@maker("Embedding", cases=20)
def embedding(draw: Draw, name: str) -> Drawn:
    rows, width = draw.integer(1, 6), draw.integer(1, 4)
    attributes = {
        "input_dim": rows,
        "output_dim": width,
        "dtype": draw.maybe("float32") if draw.chance(0.3) else OMIT,
        "sparse_grad": draw.maybe(True, False) if draw.chance(0.3) else OMIT,
    }
    return Drawn(
        [
            as_indices(draw, indices(draw, draw.shape(1, 3), rows)),
            Parameter(draw.data((rows, width))),
        ],
        attributes,
    )


@maker("_contrib_SparseEmbedding", cases=10)
def sparse_embedding(draw: Draw, name: str) -> Drawn:
    rows, width = draw.integer(1, 6), draw.integer(1, 4)
    attributes = {
        "input_dim": rows,
        "output_dim": width,
        "dtype": draw.maybe("float32"),
        "sparse_grad": draw.maybe(True, False),
        "deterministic": draw.maybe(True, False),
    }
    return Drawn(
        [
            draw.whole(draw.shape(1, 3), 0, rows - 1),
            Parameter(draw.data((rows, width))),
        ],
        attributes,
    )


@maker("take", cases=30)
def take(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    axis = draw.maybe(0, draw.axis(len(shape)), draw.axis(len(shape)))
    mode = draw.maybe("clip", "wrap", "raise")
    size = shape[0 if axis is OMIT else axis]
    chosen = draw.shape(1, 3, 4)
    numbers = (
        draw.whole(chosen, 0, size - 1)
        if mode == "raise"
        else indices(draw, chosen, size)
    )
    return Drawn(
        [draw.data(shape), as_indices(draw, numbers)],
        {"axis": axis, "mode": mode},
    )


@maker("pick", cases=30)
def pick(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    axis = draw.maybe(
        -1,
        draw.axis(len(shape)),
        None if len(shape) == 1 else draw.axis(len(shape)),
    )
    place = (-1 if axis in (OMIT, None) else axis) % len(shape)
    chosen = tuple(
        size for index, size in enumerate(shape) if index != place
    ) or (1,)
    if draw.chance(0.3):
        chosen = tuple(
            1 if index == place else size for index, size in enumerate(shape)
        )
    attributes = {
        "axis": axis,
        "keepdims": draw.maybe(True, False),
        "mode": draw.maybe("clip", "wrap"),
    }
    return Drawn(
        [
            draw.data(shape),
            as_indices(draw, indices(draw, chosen, shape[place])),
        ],
        attributes,
    )


@maker("batch_take", cases=8)
def batch_take(draw: Draw, name: str) -> Drawn:
    """The only one that takes nothing but int32."""
    rows, columns = draw.integer(1, 4), draw.integer(1, 5)
    return Drawn(
        [draw.data((rows, columns)), Integers(indices(draw, (rows,), columns))]
    )


@maker("choose_element_0index", cases=8)
def choose_element(draw: Draw, name: str) -> Drawn:
    rows, columns = draw.integer(1, 4), draw.integer(1, 5)
    return Drawn(
        [
            draw.data((rows, columns)),
            as_indices(draw, indices(draw, (rows,), columns)),
        ]
    )


def as_indices(draw: Draw, numbers: np.ndarray) -> np.ndarray | Integers:
    """Floats, or now and then the integers that a Cast makes of them."""
    return (
        Integers(numbers, draw.one("int32", "int64"))
        if draw.chance(0.15)
        else numbers
    )


@maker("gather_nd", cases=20)
def gather_nd(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    depth, rest = draw.integer(1, len(shape)), draw.shape(1, 2, 4)
    numbers = [
        draw.whole(rest, -size if draw.chance(0.2) else 0, size - 1)
        for size in shape[:depth]
    ]
    return Drawn([draw.data(shape), as_indices(draw, np.stack(numbers))])


@maker("one_hot", cases=20)
def one_hot(draw: Draw, name: str) -> Drawn:
    depth = draw.integer(1, 6)
    attributes = {
        "depth": depth,
        "on_value": draw.maybe(1.0, draw.real(-2, 2)),
        "off_value": draw.maybe(0.0, draw.real(-2, 2)),
        "dtype": draw.maybe("float32") if draw.chance(0.3) else OMIT,
    }
    return Drawn(
        [as_indices(draw, indices(draw, draw.shape(1, 3), depth))], attributes
    )


@maker("where", cases=20)
def where(draw: Draw, name: str) -> Drawn:
    """The condition has the shape of both, or is one number per row."""
    shape = draw.shape(1, 4)
    condition = shape[:1] if draw.chance(0.3) else shape
    return Drawn([draw.data(condition), draw.data(shape), draw.data(shape)])


@maker("SequenceMask", "SequenceLast", "SequenceReverse", cases=10)
def sequence(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(2, 4, 4)
    axis = draw.maybe(0) if name == "SequenceReverse" else draw.maybe(0, 1)
    length, batch = (shape[1], shape[0]) if axis == 1 else shape[:2]
    used = draw.maybe(True, False)
    attributes = {"use_sequence_length": used, "axis": axis}
    if name == "SequenceMask":
        attributes["value"] = draw.maybe(0.0, draw.real(-2, 2))
    lengths = [draw.whole((batch,), 1, length)] if used is True else []
    return Drawn([draw.data(shape), *lengths], attributes)
