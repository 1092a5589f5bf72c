"""What the weights of a layer are multiplied with: the inputs of single outputs as rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cvm.program import IntArray
from mrt.calibrate.observed_tensor import Array
from mrt.refine.moments import BLOCK, Floats, Rows

POSITIONS = 100  # of one sample's outputs that count, at equal distances
EXACT = 2**24  # up to here every whole number is a float32
TOGETHER = (
    2**19
)  # numbers of a layer's inputs, at most, that are gone through in one go, if one sample has no more
ENOUGH_ROWS, ENOUGH_FOR_ONE = (
    2000,
    20,
)  # for the moments of a layer, and for each weight of an output
KEPT = 2**24  # numbers of rows of one layer that are worth their memory
FEWEST = 64  # products at a time for which float32 is worth the trouble


@dataclass(frozen=True)
class Window:
    """How a convolution meets an image [1,H,W,C]: `pads` are top, left, bottom, right."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, ...]

    def padded(self, images: Array, zero: int) -> Array:
        """The images with the pads, of this number."""
        if not any(self.pads):
            return images
        (top, left, bottom, right), (count, height, width, channels) = (
            self.pads,
            images.shape,
        )
        padded = np.full(
            (count, top + height + bottom, left + width + right, channels),
            zero,
            images.dtype,
        )
        padded[:, top : top + height, left : left + width] = images
        return padded

    def patches(self, padded: Array) -> Array:
        """[N, OH, OW, KH, KW, C], a view of padded images."""
        extent = tuple(
            (size - 1) * step + 1
            for size, step in zip(self.kernel, self.dilation, strict=True)
        )
        views = sliding_window_view(padded, extent, axis=(1, 2))
        views = views[
            :,
            :: self.stride[0],
            :: self.stride[1],
            :,
            :: self.dilation[0],
            :: self.dilation[1],
        ]
        return views.transpose(0, 1, 2, 4, 5, 3)


def rows_of(inputs: Array, window: Window | None, length: int, zero: int = 0) -> Rows:
    """[groups, outputs, length]: what the weights of an output meet, for some of the outputs of each sample.

    Inputs of some samples, of which `zero` stands for 0: [samples,H,W,C], or [samples,N,K] without a window.
    """
    patches = (
        inputs[:, :, None, None, None, :]
        if window is None
        else window.patches(window.padded(inputs, zero))
    )
    chosen = patches[(slice(None), *chosen_places(*patches.shape[1:3]))]
    taps, channels = math.prod(patches.shape[3:5]), patches.shape[-1]
    groups = taps * channels // length
    rows = chosen.reshape(-1, *patches.shape[3:5], groups, channels // groups)
    numbers = (
        rows.transpose(3, 0, 1, 2, 4)
        .reshape(groups, len(rows), -1)
        .astype(np.float32, order="C")
    )
    return np.subtract(numbers, np.float32(zero), out=numbers)


class LayerInputs:
    """What the weights of a layer meet, some samples at a time: of the first time it is asked for, kept if it is little."""

    def __init__(
        self,
        inputs: Sequence[Array],
        window: Window | None,
        length: int,
        zero: int,
        places: int,
    ) -> None:
        count = max(1, min(BLOCK // places, TOGETHER // inputs[0].size))
        self._inputs, self._window, self._length, self._zero = (
            inputs,
            window,
            length,
            zero,
        )
        self.blocks = [
            slice(start, start + count) for start in range(0, len(inputs), count)
        ]
        width = inputs[0].shape[-1] * (
            1 if window is None else math.prod(window.kernel)
        )
        self.groups = width // length
        self.count = len(inputs) * places  # rows
        self._step = max(1, self.count // max(ENOUGH_ROWS, ENOUGH_FOR_ONE * length))
        self._kept: dict[int, Rows] | None = {} if self.count * width <= KEPT else None

    def enough_for_moments(self) -> range:
        """Blocks at equal distances, with rows for all weights of an output."""
        return range(0, len(self.blocks), self._step)

    def rows(self, index: int) -> Rows:
        """Those of a block, as `rows_of` has them."""
        if self._kept is not None and index in self._kept:
            return self._kept[index]
        join = np.stack if self._window is None else np.concatenate
        found = rows_of(
            join(self._inputs[self.blocks[index]]),
            self._window,
            self._length,
            self._zero,
        )
        if self._kept is not None:
            self._kept[index] = found
        return found


def products(rows: Rows, weights: IntArray) -> Rows | Floats:
    """[outputs, O]: the sums of products of rows [groups, outputs, K] of whole numbers with weights [O, ...], exactly."""
    groups, count, length = rows.shape
    columns = weights.reshape(groups, -1, length).transpose(0, 2, 1).astype(np.float32)
    greatest = _greatest(rows) * _greatest(columns)
    step = max(
        1, int(EXACT / greatest)
    )  # as many products as add up exactly in float32
    if step >= length:
        total: Rows | Floats = np.matmul(rows, columns)
    elif step < FEWEST:
        total = np.matmul(rows.astype(np.float64), columns)
    else:
        total = np.zeros((groups, count, columns.shape[2]))
        for start in range(0, length, step):
            total += np.matmul(
                rows[:, :, start : start + step], columns[:, start : start + step]
            )
    return total.transpose(1, 0, 2).reshape(count, -1)


def _greatest(numbers: Rows) -> float:
    """The largest magnitude, or 1; without a copy."""
    return max(float(numbers.max()), -float(numbers.min()), 1.0)


def chosen_places(height: int, width: int) -> tuple[slice, slice]:
    """At most POSITIONS or so of an image's places, at equal distances; of an image narrower than that, one line."""
    step = max(1, math.ceil(math.sqrt(height * width / POSITIONS)))
    down = (
        height
        if height < step
        else math.ceil(height / POSITIONS)
        if width < step
        else step
    )
    across = (
        width
        if width < step
        else math.ceil(width / POSITIONS)
        if height < step
        else step
    )
    return slice(down // 2, None, down), slice(across // 2, None, across)
