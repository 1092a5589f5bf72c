"""Lowers GridSample to a product with constant shares of pixels, or to lookups.

Lookups are used where the grid is computed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT

Floats = npt.NDArray[np.float64]
MOST_PRODUCTS = (
    1 << 20
)  # of one channel; above it, neighbours are gathered and weighted one by one


def lower_grid_sample(model: ir.Model) -> int:
    """GridSample(x, grid) -> MatMul(rows of pixels, a matrix of shares), or Gathers.

    With Gathers, the neighbours are looked up, multiplied by their shares and added.
    AffineGrid(theta, size) -> MatMul(coordinates, theta).

    Images that have constant grids of their own are looked up as one row of pixels.
    Applies to known shapes: nearest, linear and cubic for a constant grid; nearest and
    linear for a computed one, without reflection. Equal up to rounding.
    """
    lower = {"GridSample": _sample, "AffineGrid": _affine_grid}
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _sample(node: ir.Node) -> bool:
    x = shape_of(first(node))
    grid = shape_of(operand(node, 1))
    y = shape_of(node.outputs[0])
    if (
        x is None
        or grid is None
        or y is None
        or grid[-1] != len(x) - 2
        or math.prod(y) > LARGEST_RESULT
    ):
        return False
    kind = string_attribute(node, "mode", "linear")
    constant_grid = constant(operand(node, 1))
    if constant_grid is None:
        return (
            kind != "cubic"
            and string_attribute(node, "padding_mode", "zeros") != "reflection"
            and _look_up(node, x, y, kind)
        )
    is_shared = bool((constant_grid == constant_grid[:1]).all())
    places = constant_grid[:1] if is_shared else constant_grid
    taps = _taps(
        node,
        places.reshape(-1, grid[-1]).astype(np.float64),
        x[2:],
        kind,
    )
    if not is_shared:
        _sum_pixels_of_images(node, x, y, taps)
    elif math.prod(x[2:]) * math.prod(y[2:]) <= MOST_PRODUCTS:
        _multiply(node, x, y, taps)
    else:
        _sum_weighted_pixels(node, x, y, taps)
    return True


@dataclass(frozen=True)
class _Tap:
    """One neighbour for each element of the result: the pixel's number and its share."""

    pixels: npt.NDArray[np.int64]
    shares: Floats


def _taps(
    node: ir.Node, grid: Floats, sizes: tuple[int, ...], kind: str
) -> list[_Tap]:
    """List the neighbours of each element of the result and their shares.

    A grid has the coordinate of the last axis of x first.
    """
    mode = string_attribute(node, "padding_mode", "zeros")
    corners = bool(int_attribute(node, "align_corners", 0))
    by_axis = []
    for axis, size in enumerate(sizes):
        places = _unnormalized(
            grid[:, len(sizes) - 1 - axis], size, corners=corners
        )
        if kind != "cubic":
            places = _kept_inside(places, size, mode, corners=corners)
        by_axis.append(
            [
                (_kept(tap, size, mode, corners=corners), share)
                for tap, share in _neighbours(places, kind)
            ]
        )
    taps = []
    for chosen in itertools.product(*by_axis):
        inside = np.ones(len(grid), np.bool_)
        number, shares = np.zeros(len(grid), np.int64), np.ones(len(grid))
        for (tap, share), size in zip(chosen, sizes, strict=True):
            inside &= (tap >= 0) & (tap < size)
            number = number * size + tap.clip(0, size - 1).astype(np.int64)
            shares = shares * share
        taps.append(_Tap(number, np.where(inside, shares, 0.0)))
    return taps


def _unnormalized(share: Floats, size: int, *, corners: bool) -> Floats:
    """Convert coordinates in -1..1 to pixels, in float32 as onnxruntime does."""
    x, one, two = share.astype(np.float32), np.float32(1), np.float32(2)
    places = (
        (x + one) / two * np.float32(size - 1)
        if corners
        else ((x + one) * np.float32(size) - one) / two
    )
    return np.asarray(places, np.float64)


def _kept_inside(
    places: Floats, size: int, mode: str, *, corners: bool
) -> Floats:
    """Move coordinates outside of the image inside, as the padding mode has it.

    border: to the nearest pixel. reflection: mirrored at the centres of the first and
    last pixels (`corners`), or at their outer edges. zeros: unchanged.
    """
    if mode == "border":
        return places.clip(0, size - 1)
    return _kept(places, size, mode, corners=corners)


def _kept(places: Floats, size: int, mode: str, *, corners: bool) -> Floats:
    if mode == "zeros":
        return places
    if mode == "border":
        return places.clip(0, size - 1)
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    reach = high - low
    if reach == 0:
        return np.zeros_like(places)
    moved = np.abs(places - low) % (2 * reach)
    mirrored = np.where(moved > reach, 2 * reach - moved, moved) + low
    return mirrored.clip(0, size - 1)


def _neighbours(places: Floats, kind: str) -> list[tuple[Floats, Floats]]:
    """Return pixels of one axis with their shares."""
    if kind == "nearest":
        return [(np.rint(places), np.ones(len(places)))]
    low = np.floor(places)
    fraction = places - low
    if kind == "linear":
        return [(low, 1 - fraction), (low + 1, fraction)]
    return [
        (low + step, _cubic(np.abs(fraction - step))) for step in (-1, 0, 1, 2)
    ]


def _cubic(x: Floats) -> Floats:
    """Evaluate the cubic convolution kernel with a = -0.75."""
    near = (1.25 * x - 2.25) * x * x + 1
    far = ((-0.75 * x + 3.75) * x - 6) * x + 3
    return np.where(x <= 1, near, far)


def _multiply(
    node: ir.Node, x: tuple[int, ...], y: tuple[int, ...], taps: list[_Tap]
) -> None:
    pixels, places = math.prod(x[2:]), math.prod(y[2:])
    matrix = np.zeros((pixels, places))
    for tap in taps:
        np.add.at(matrix, (tap.pixels, np.arange(places)), tap.shares)
    patch = Patch(node)
    rows = patch.add(
        "Reshape",
        first(node),
        patch.axes((x[0], x[1], pixels), "pixels"),
        allowzero=0,
    )
    product = patch.add(
        "MatMul", rows, patch.constant(matrix.astype(np.float32), "shares")
    )
    patch.finish(
        patch.add("Reshape", product, patch.axes(y, "image"), allowzero=0)
    )


def _sum_weighted_pixels(
    node: ir.Node, x: tuple[int, ...], y: tuple[int, ...], taps: list[_Tap]
) -> None:
    patch, pixels = Patch(node), math.prod(x[2:])
    rows = patch.reshape(first(node), (x[0], x[1], pixels))
    total = _weighted_sum(patch, rows, taps)
    patch.finish(patch.reshape(total, y))


def _sum_pixels_of_images(
    node: ir.Node, x: tuple[int, ...], y: tuple[int, ...], taps: list[_Tap]
) -> None:
    """Sum pixels where each image has its own places: those of all images are one row for each channel."""
    patch, pixels = Patch(node), math.prod(x[2:])
    count = len(taps[0].pixels)
    before = np.repeat(np.arange(x[0]) * pixels, count // x[0])
    taps = [_Tap(before + tap.pixels, tap.shares) for tap in taps]
    apart = patch.reshape(first(node), (x[0], x[1], pixels))
    channels = patch.add("Transpose", apart, perm=(1, 0, 2))
    rows = patch.reshape(channels, (1, x[1], x[0] * pixels))
    total = _weighted_sum(patch, rows, taps)
    images = patch.reshape(total, (x[1], x[0], count // x[0]))
    joined = patch.add("Transpose", images, perm=(1, 0, 2))
    patch.finish(patch.reshape(joined, y))


def _weighted_sum(patch: Patch, rows: ir.Value, taps: list[_Tap]) -> ir.Value:
    total: ir.Value | None = None
    for tap in taps:
        term = patch.add(
            "Gather", rows, patch.constant(tap.pixels, "neighbours"), axis=2
        )
        term = patch.add(
            "Mul", term, patch.constant(tap.shares.astype(np.float32), "shares")
        )
        total = term if total is None else patch.add("Add", total, term)
    assert total is not None
    return total


def _look_up(
    node: ir.Node, x: tuple[int, ...], y: tuple[int, ...], kind: str
) -> bool:
    """Lower a GridSample with a computed grid.

    For each neighbour, its number among the pixels is computed; the pixel is looked up
    there and multiplied by its share.
    """
    sizes, count = x[2:], math.prod(y[2:])
    patch = Patch(node)
    rows = patch.add(
        "Reshape",
        first(node),
        patch.axes((x[0], x[1], math.prod(sizes)), "pixels"),
        allowzero=0,
    )
    axes = [
        _Axis(patch, node, axis, size, kind).neighbours(count)
        for axis, size in enumerate(sizes)
    ]
    total: ir.Value | None = None
    for chosen in itertools.product(*axes):
        number, share = chosen[0]
        for (pixel, other), size in zip(chosen[1:], sizes[1:], strict=True):
            number = patch.add(
                "Mul",
                number,
                patch.constant(np.array(size, np.int64), "size"),
            )
            number = patch.add("Add", number, pixel)
            share = patch.add("Mul", share, other)
        every = patch.add(
            "Expand", number, patch.axes((x[0], x[1], count), "channels")
        )
        term = patch.add(
            "Mul", patch.add("GatherElements", rows, every, axis=2), share
        )
        total = term if total is None else patch.add("Add", total, term)
    assert total is not None
    patch.finish(
        patch.add("Reshape", total, patch.axes(y, "image"), allowzero=0)
    )
    return True


def _real(patch: Patch, number: float) -> ir.Value:
    return patch.constant(np.array(number, np.float32), "number")


class _Axis:
    """One axis of the image, sampled at computed coordinates."""

    def __init__(
        self, patch: Patch, node: ir.Node, axis: int, size: int, kind: str
    ) -> None:
        self.patch = patch
        self.node = node
        self.axis = axis
        self.size = size
        self.kind = kind

    def neighbours(self, count: int) -> list[tuple[ir.Value, ir.Value]]:
        """Return pixels inside the axis, int64 [N,1,count], and their shares.

        The share of a pixel outside is 0.
        """
        patch, places = self.patch, self._places(count)
        if self.kind == "nearest":
            nearest = patch.add("Round", places)
            return [(self._inside(nearest), self._share(nearest, None))]
        low = patch.add("Floor", places)
        fraction = patch.add("Sub", places, low)
        rest = patch.add("Sub", _real(patch, 1.0), fraction)
        high = patch.add("Add", low, _real(patch, 1.0))
        return [
            (self._inside(low), self._share(low, rest)),
            (self._inside(high), self._share(high, fraction)),
        ]

    def _places(self, count: int) -> ir.Value:
        patch, grid = self.patch, operand(self.node, 1)
        shape = shape_of(grid) or ()
        column = patch.axes((shape[-1] - 1 - self.axis,), "column")
        share = patch.add("Gather", grid, column, axis=len(shape) - 1)
        share = patch.add(
            "Reshape",
            share,
            patch.axes((shape[0], 1, count), "places"),
            allowzero=0,
        )
        corners = int_attribute(self.node, "align_corners", 0)
        factor, shift = (
            ((self.size - 1) / 2, (self.size - 1) / 2)
            if corners
            else (self.size / 2, (self.size - 1) / 2)
        )
        places = patch.add(
            "Add",
            patch.add("Mul", share, _real(patch, factor)),
            _real(patch, shift),
        )
        return (
            self._clipped(places, 0, self.size - 1)
            if self._border()
            else self._clipped(places, -1, self.size)
        )

    def _clipped(self, value: ir.Value, low: float, high: float) -> ir.Value:
        """Clip coordinates: from one pixel outside of the image on, every result is 0."""
        return self.patch.add(
            "Clip", value, _real(self.patch, low), _real(self.patch, high)
        )

    def _border(self) -> bool:
        return string_attribute(self.node, "padding_mode", "zeros") == "border"

    def _inside(self, pixel: ir.Value) -> ir.Value:
        """Clip to the image and cast to int64.

        Adding a half first makes the cast exact when an integer program represents the
        pixel's number only to the nearest step of its scale.
        """
        nearly = self.patch.add(
            "Add",
            self._clipped(pixel, 0, self.size - 1),
            _real(self.patch, 0.5),
        )
        return self.patch.add("Cast", nearly, to=int(ir.DataType.INT64))

    def _share(self, pixel: ir.Value, share: ir.Value | None) -> ir.Value:
        patch = self.patch
        if self._border():
            return share if share is not None else _real(patch, 1.0)
        low, high = (patch.add(name, pixel, _real(patch, limit)) for name, limit in
                     (("GreaterOrEqual", 0.0), ("LessOrEqual", self.size - 1.0)))  # fmt: skip
        both = patch.add("And", low, high)
        inside = patch.add("Cast", both, to=int(ir.DataType.FLOAT))
        return inside if share is None else patch.add("Mul", inside, share)


def _affine_grid(node: ir.Node) -> bool:
    """Multiply every coordinate in -1..1, with a 1 appended, by theta."""
    theta, grid = shape_of(first(node)), shape_of(node.outputs[0])
    if (
        theta is None
        or grid is None
        or theta[-1] != grid[-1] + 1
        or math.prod(grid) > LARGEST_RESULT
    ):
        return False
    corners, sizes = int_attribute(node, "align_corners", 0), grid[1:-1]
    if corners and 1 in sizes:
        return False  # runtimes disagree on the coordinate of an axis of size 1
    coordinates = [_centres(size, corners=bool(corners)) for size in sizes]
    places = np.stack(
        [*reversed(np.meshgrid(*coordinates, indexing="ij")), np.ones(sizes)],
        axis=-1,
    ).reshape(-1, theta[-1])
    patch = Patch(node)
    transposed = patch.add("Transpose", first(node), perm=(0, 2, 1))
    product = patch.add(
        "MatMul",
        patch.constant(places[None].astype(np.float32), "places"),
        transposed,
    )
    patch.finish(
        patch.add("Reshape", product, patch.axes(grid, "grid"), allowzero=0)
    )
    return True


def _centres(size: int, *, corners: bool) -> Floats:
    if corners:
        return np.array([-1 + 2 * place / (size - 1) for place in range(size)])
    return np.array([(2 * place + 1) / size - 1 for place in range(size)])
