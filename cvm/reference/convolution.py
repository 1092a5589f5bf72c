"""The sums of conv2d and conv2d_transpose. Windows are unfolded block by block, and padding is never stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvm.program import IntArray
from cvm.reference.products import accumulator_for, products
from cvm.reference.window import overlap

BLOCK_BYTES = 2**25  # what one block of unfolded windows may take

Tap = tuple[
    int, int, tuple[slice, slice], tuple[slice, slice]
]  # row and column in w, places in the block, places in x


def conv2d(
    x: IntArray,
    w: IntArray,
    b: IntArray,
    *,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    input_zp: int,
) -> IntArray:
    """y[n,i,j,o] = b[o] + the sum over taps (p,q) and channels c of o's group of (x[n,u,v,c] - input_zp) w[o,p,q,c].

    u = i stride[0] - pad[0] + p dilation[0], v = j stride[1] - pad[2] + q dilation[1]; places outside x contribute 0.
    """
    shifted = x.astype(np.int32) - input_zp
    accumulator = accumulator_for(shifted, w, b)
    shifted = shifted.astype(accumulator, copy=False)
    weights = w.astype(accumulator)
    height, width = (
        (
            x.shape[1 + i]
            + sum(pad[2 * i : 2 * i + 2])
            - (w.shape[1 + i] - 1) * dilation[i]
            - 1
        )
        // stride[i]
        + 1
        for i in (0, 1)
    )
    result = np.empty((x.shape[0], height, width, w.shape[0]), accumulator)
    result[...] = b
    convolve = _depthwise if w.shape[3] == 1 and groups > 1 else _unfolded
    for top, left, block in _blocks(
        result, w[0, :, :, 0].size * x.shape[3] * result.itemsize
    ):
        starts = (top * stride[0] - pad[0], left * stride[1] - pad[2])
        taps = list(
            _taps(
                w.shape[1:3],
                starts,
                stride,
                dilation,
                x.shape[1:3],
                block.shape[1:3],
            )
        )
        for image, target in zip(shifted, block, strict=True):
            convolve(image, weights, target, taps, groups)
    return result


def _blocks(
    result: IntArray, place_bytes: int
) -> Iterator[tuple[int, int, IntArray]]:
    """Rectangles of the output whose unfolded windows take about BLOCK_BYTES an image: top, left and the view."""
    height, width = result.shape[1:3]
    columns = min(width, max(1, BLOCK_BYTES // place_bytes))
    rows = min(height, max(1, BLOCK_BYTES // (place_bytes * columns)))
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield top, left, result[:, top : top + rows, left : left + columns]


def _taps(
    kernel: tuple[int, ...],
    starts: tuple[int, int],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    size: tuple[int, ...],
    count: tuple[int, ...],
) -> Iterator[Tap]:
    rows, columns = (
        [
            overlap(starts[i] + tap * dilation[i], stride[i], size[i], count[i])
            for tap in range(kernel[i])
        ]
        for i in (0, 1)
    )
    for p, (to_row, from_row) in enumerate(rows):
        for q, (to_column, from_column) in enumerate(columns):
            yield p, q, (to_row, to_column), (from_row, from_column)


def _unfolded(
    image: IntArray,
    weights: IntArray,
    block: IntArray,
    taps: list[Tap],
    groups: int,
) -> None:
    """Copy every window into a row, then one matrix product per group."""
    rows, columns, outputs = block.shape
    windows = np.zeros((rows * columns, len(taps), image.shape[2]), image.dtype)
    grid = windows.reshape(rows, columns, len(taps), image.shape[2])
    for index, (_, _, to_places, from_places) in enumerate(taps):
        grid[(*to_places, index)] = image[from_places]
    size, channels = outputs // groups, weights.shape[3]
    for group in range(groups):
        group_outputs = slice(group * size, (group + 1) * size)
        group_windows = windows[
            :, :, group * channels : (group + 1) * channels
        ].reshape(rows * columns, -1)
        block[..., group_outputs] += products(
            group_windows, weights[group_outputs].reshape(size, -1)
        ).reshape(rows, columns, size)


def _depthwise(
    image: IntArray,
    weights: IntArray,
    block: IntArray,
    taps: list[Tap],
    groups: int,
) -> None:
    """One input channel per group: multiply and add tap by tap, all channels at once."""
    image = np.repeat(image, weights.shape[0] // groups, axis=2)
    for p, q, to_places, from_places in taps:
        block[to_places] += image[from_places] * weights[:, p, q, 0]


def conv2d_transpose(
    x: IntArray,
    w: IntArray,
    b: IntArray,
    *,
    out_pad: tuple[int, ...],
    stride: tuple[int, ...],
    groups: int,
    input_zp: int,
) -> IntArray:
    """y is b[o] everywhere, then each (x[n,i,j,c] - input_zp) w[o,p,q,c] is added at y[n,u,v,o], dropped where outside.

    u = i stride[0] + out_pad[0] + p, v = j stride[1] + out_pad[2] + q.
    """
    shifted = x.astype(np.int32) - input_zp
    accumulator = accumulator_for(shifted, w, b)
    shifted = shifted.astype(accumulator, copy=False)
    weights = w.astype(accumulator)
    size = [
        (x.shape[1 + i] - 1) * stride[i]
        + w.shape[1 + i]
        + sum(out_pad[2 * i : 2 * i + 2])
        for i in (0, 1)
    ]
    result = np.empty((x.shape[0], *size, w.shape[0]), accumulator)
    result[...] = b
    taps = list(
        _taps(
            w.shape[1:3],
            (out_pad[0], out_pad[2]),
            stride,
            (1, 1),
            tuple(size),
            x.shape[1:3],
        )
    )
    for image, target in zip(shifted, result, strict=True):
        for p, q, from_places, to_places in taps:
            pixels = image[from_places]
            if pixels.size:
                target[to_places] += _mixed(pixels, weights[:, p, q], groups)
    return result


def _mixed(image: IntArray, weights: IntArray, groups: int) -> IntArray:
    """image[H,W,C] through one tap weights[O,C/groups]: [H,W,O]."""
    height, width, channels = image.shape
    rows = np.ascontiguousarray(image).reshape(
        height * width, groups, channels // groups
    )
    columns = np.ascontiguousarray(weights).reshape(
        groups, -1, channels // groups
    )
    mixed: IntArray = np.einsum("mgc,goc->mgo", rows, columns)
    return mixed.reshape(height, width, -1)
