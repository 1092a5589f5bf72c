"""The inputs of a layer as rows: a row holds the numbers that one output's weights multiply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cvm.program import IntArray
from mrt.calibrate.observed_tensor import Array
from mrt.refine.moments import BLOCK, Floats, Numbers, Rows

POSITIONS = 100  # outputs of one sample that count, at equal distances
EXACT = 2**24  # float32 represents every integer up to here
# The numbers of a layer's inputs in one block, unless one sample has more.
BLOCK_ELEMENTS = 2**19
ENOUGH_ROWS = 2000  # rows for the moments of a layer
# Rows for the moments of a layer, for each weight of an output.
ENOUGH_ROWS_PER_WEIGHT = 20
# The rows of one layer are kept if they hold at most so many numbers.
CACHED_ELEMENTS = 2**24
# The fewest products added at a time for which float32 is faster than float64.
FEWEST_PRODUCTS = 64


@dataclass(frozen=True)
class Window:
    """The window of a convolution over an image [1,H,W,C].

    `pads` are those at the top, left, bottom and right.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, ...]

    def padded(self, images: Array, zero_point: int) -> Array:
        """Return the images with pads of `zero_point`."""
        if not any(self.pads):
            return images
        top, left, bottom, right = self.pads
        count, height, width, channels = images.shape
        shape = (count, top + height + bottom, left + width + right, channels)
        padded = np.full(shape, zero_point, images.dtype)
        padded[:, top : top + height, left : left + width] = images
        return padded

    def patches(self, padded: Array) -> Array:
        """Return the patches of padded images as a view, [N, OH, OW, KH, KW, C]."""
        extent = tuple(
            (size - 1) * step + 1
            for size, step in zip(self.kernel, self.dilation, strict=True)
        )
        views = sliding_window_view(padded, extent, axis=(1, 2))
        down, across = self.stride
        views = views[:, ::down, ::across]
        down, across = self.dilation
        taps = views[..., ::down, ::across]
        return taps.transpose(0, 1, 2, 4, 5, 3)


def rows_of(
    inputs: Array, window: Window | None, length: int, zero_point: int = 0
) -> Rows:
    """Return the rows [groups, outputs, length] from which some of the outputs are computed.

    `inputs` are those of some samples: [samples,H,W,C], or [samples,N,K] without a
    window. `length` is the number of weights of an output.
    """
    patches = _patches(inputs, window, zero_point)
    rows, columns = chosen_places(*patches.shape[1:3])
    chosen = patches[:, rows, columns]
    *taps, channels = patches.shape[3:]
    groups = math.prod(taps) * channels // length
    split = chosen.reshape(-1, *taps, groups, channels // groups)
    by_group = split.transpose(3, 0, 1, 2, 4)
    integers = np.ascontiguousarray(by_group.reshape(groups, len(split), -1))
    numbers = integers.astype(np.float32)
    if zero_point:
        numbers -= np.float32(zero_point)
    most = int(integers.max()) - zero_point, zero_point - int(integers.min())
    return Rows(numbers, float(max(most)))


def _patches(inputs: Array, window: Window | None, zero_point: int) -> Array:
    """Return the patches [N, OH, OW, KH, KW, C]; without a window [N, rows, 1, 1, 1, C]."""
    if window is None:
        return inputs[:, :, None, None, None, :]
    return window.patches(window.padded(inputs, zero_point))


class LayerInputs:
    """The integers that a layer takes, as rows, block by block of samples.

    Rows are computed when they are read first, and kept if they are few enough.
    """

    def __init__(
        self,
        inputs: Sequence[Array],
        window: Window | None,
        *,
        length: int,
        zero_point: int,
        places: int,
    ) -> None:
        self._inputs = inputs
        self._window = window
        self._length = length
        self._zero_point = zero_point
        samples = max(1, min(BLOCK // places, BLOCK_ELEMENTS // inputs[0].size))
        starts = range(0, len(inputs), samples)
        self.blocks = [slice(start, start + samples) for start in starts]
        taps = 1 if window is None else math.prod(window.kernel)
        width = inputs[0].shape[-1] * taps
        self.groups = width // length
        self.count = len(inputs) * places  # the number of rows
        enough = max(ENOUGH_ROWS, ENOUGH_ROWS_PER_WEIGHT * length)
        self._step = max(1, self.count // enough)
        self._keeps = self.count * width <= CACHED_ELEMENTS
        self._kept: dict[int, Rows] = {}

    def blocks_for_moments(self) -> range:
        """Return blocks at equal distances, with enough rows for all weights of an output."""
        return range(0, len(self.blocks), self._step)

    def rows(self, block: int) -> Rows:
        """Return the rows of a block, as `rows_of` does."""
        if block in self._kept:
            return self._kept[block]
        samples = self._inputs[self.blocks[block]]
        joined = (
            np.stack(samples)
            if self._window is None
            else np.concatenate(samples)
        )
        rows = rows_of(joined, self._window, self._length, self._zero_point)
        if self._keeps:
            self._kept[block] = rows
        return rows


def products(rows: Rows, weights: IntArray) -> Numbers | Floats:
    """Return the sums of products of rows with weights [O, ...], exactly, as [outputs, O].

    Each sum is split into pieces short enough for float32 to add them exactly, or is
    added in float64.
    """
    groups, count, length = rows.numbers.shape
    by_group = weights.reshape(groups, -1, length)
    columns = by_group.transpose(0, 2, 1).astype(np.float32)
    most = max(float(columns.max()), -float(columns.min()), 1.0)
    step = max(1, int(EXACT / (max(rows.greatest, 1.0) * most)))
    if step >= length:
        total: Numbers | Floats = np.matmul(rows.numbers, columns)
    elif step < FEWEST_PRODUCTS:
        total = np.matmul(rows.numbers.astype(np.float64), columns)
    else:
        total = np.zeros((groups, count, columns.shape[2]))
        for start in range(0, length, step):
            stop = start + step
            some = rows.numbers[:, :, start:stop]
            total += np.matmul(some, columns[:, start:stop])
    return total.transpose(1, 0, 2).reshape(count, -1)


def chosen_places(height: int, width: int) -> tuple[slice, slice]:
    """Return about POSITIONS positions of an image, or fewer, at equal distances.

    In an image narrower than the distance they lie on one line.
    """
    step = max(1, math.ceil(math.sqrt(height * width / POSITIONS)))
    return _every(height, width, step), _every(width, height, step)


def _every(size: int, other: int, step: int) -> slice:
    """Return positions along one axis, the first half a step from the edge."""
    if size < step:
        step = size
    elif other < step:
        step = math.ceil(size / POSITIONS)
    return slice(step // 2, None, step)
