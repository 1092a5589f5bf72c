"""Folds a space-to-depth, such as YOLO's Focus, into the convolution that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    IMAGE_RANK,
    Array,
    constant,
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    producer,
    shape_of,
    sole_user,
)
from mrt.rewrite.linear.conv_pool_attributes import window_of

Pair = tuple[int, int]


@dataclass(frozen=True)
class Blocks:
    """Blocks of neighbouring pixels of x, of which each pixel becomes some channels of one.

    `places` are these pixels' rows and columns in a block of this size, in the order of the channels.
    """

    x: ir.Value
    size: Pair
    places: Sequence[Pair]

    @property
    def are_whole(self) -> bool:
        """Whether each pixel of x becomes channels of one, once."""
        rows, columns = self.size
        every = [(r, c) for r in range(rows) for c in range(columns)]
        return len(every) > 1 and sorted(self.places) == every

    def spread(self, weights: Array) -> Array:
        """Return weights of a convolution of the blocks, [O,S*C,KH,KW], as those of one of x."""
        outputs, _, height, width = weights.shape
        channels = weights.shape[1] // len(self.places)
        rows, columns = self.size
        spread = np.zeros(
            (outputs, channels, rows * height, columns * width), weights.dtype
        )
        for place, (row, column) in enumerate(self.places):
            own = weights[:, place * channels : (place + 1) * channels]
            spread[:, :, row::rows, column::columns] = own
        return spread


def fold_space_to_depth(model: ir.Model) -> int:
    """Conv(Concat of strided Slices of x, W) or Conv(SpaceToDepth(x), W) -> Conv(x, W of larger kernels and strides).

    Applies where each pixel of x comes into one channel, once, and nothing else reads the channels;
    to convolutions of one group without dilations. Equal.
    """
    count = 0
    for node in nodes(model, "Conv"):
        blocks = _blocks(first(node))
        weights = constant(operand(node, 1))
        window = window_of(node)
        if (
            blocks is None
            or weights is None
            or weights.ndim != IMAGE_RANK
            or window is None
            or "auto_pad" in node.attributes
            or set(window.dilations) != {1}
            or int_attribute(node, "group", 1) != 1
        ):
            continue
        node.replace_input_with(0, blocks.x)
        spread = Patch(node).constant(blocks.spread(weights), "weight")
        node.replace_input_with(1, spread)
        set_attributes(
            node,
            kernel_shape=_times(window.kernel, blocks.size),
            strides=_times(window.strides, blocks.size),
            pads=_times(window.pads, blocks.size * 2),
        )
        count += 1
    return count


def _times(numbers: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        number * factor for number, factor in zip(numbers, factors, strict=True)
    )


def _blocks(value: ir.Value | None) -> Blocks | None:
    """Return the blocks whose pixels have become the channels of an image that has one reader."""
    if value is None or sole_user(value) is None:
        return None
    deep = producer(value, "SpaceToDepth")
    if deep is not None:
        size = int_attribute(deep, "blocksize", 1)
        places = [(r, c) for r in range(size) for c in range(size)]
        x = first(deep)
        return None if x is None else Blocks(x, (size, size), places)
    joined = producer(value, "Concat")
    if joined is None or int_attribute(joined, "axis", 0) != 1:
        return None
    parts = [_sliced(part) for part in joined.inputs]
    one = parts[0] if parts else None
    if one is None or any(
        part is None or part.x is not one.x for part in parts
    ):
        return None
    places = [place for part in parts if part for place in part.places]
    blocks = Blocks(one.x, one.size, places)
    return blocks if blocks.are_whole else None


def _sliced(value: ir.Value | None) -> Blocks | None:
    """Return the one pixel of each block of which Slices make an image; None if they leave out some blocks."""
    steps, starts = [1] * IMAGE_RANK, [0] * IMAGE_RANK
    sizes = shape_of(value)
    while value is not None and (node := producer(value, "Slice")) is not None:
        written = [constant_integers(operand(node, i)) for i in range(1, 5)]
        if any(numbers is None for numbers in written):
            return None
        begin, _, axes, strides = (numbers or () for numbers in written)
        for start, axis, step in zip(begin, axes, strides, strict=True):
            if not 0 <= axis < IMAGE_RANK or step < 1 or start < 0:
                return None
            # Of the slices behind this one, the steps and starts are counted in its own.
            starts[axis] = start + step * starts[axis]
            steps[axis] *= step
        value = first(node)
    whole = shape_of(value)
    if value is None or whole is None or sizes is None:
        return None
    if len(whole) != IMAGE_RANK or _times(sizes, steps) != whole:
        return None
    if steps[:2] != [1, 1] or any(
        s >= t for s, t in zip(starts, steps, strict=True)
    ):
        return None
    return Blocks(value, (steps[2], steps[3]), [(starts[2], starts[3])])
