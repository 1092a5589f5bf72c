"""Lowers Resize by any factors.

Nearest becomes a lookup, linear and cubic the machine's own resize or matrix products.
Coordinates are rounded where onnxruntime rounds them, so that halfway between two
neighbours both choose the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    float_attribute,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT

Single = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float64]

# The bounds of the machine's resize: rows or columns, and steps per pixel.
LARGEST_SIDE = 16383
MOST_STEPS = 2**11
ROUNDING = 1e-6  # relative error of a factor stored in float32

_CROP = "tf_crop_and_resize"
_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    _CROP,
)
_ROUNDINGS: dict[str, Callable[[Single], Single]] = {
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


def lower_resize(model: ir.Model) -> int:
    """Resize -> a Gather per axis, a canonical linear Resize, or a MatMul per axis.

    Nearest becomes Gathers. Linear becomes the canonical Resize of an image where the
    machine has it, else, like cubic, MatMuls; those of a constant are then computed. Applies to known shapes, constant scales
    and, in mode tf_crop_and_resize, a constant region. Equal; linear and cubic up to
    rounding.
    """
    count = 0
    for node in nodes(model, "Resize"):
        x = shape_of(first(node))
        y = shape_of(node.outputs[0])
        scales = _scales(node)
        mode = string_attribute(
            node, "coordinate_transformation_mode", "half_pixel"
        )
        if (
            x is None
            or y is None
            or scales is None
            or mode not in _MODES
            or (mode == _CROP and _region(node) is None)
        ):
            continue
        axes = [
            axis
            for axis in range(len(x))
            if x[axis] != y[axis] or scales[axis] != 1.0
        ]
        if mode == _CROP:
            axes = list(range(len(x)))
        kind = string_attribute(node, "mode", "nearest")
        smooth = int_attribute(node, "antialias", 0)
        if (
            kind == "linear"
            and not smooth
            and constant(first(node)) is None
            and (plain := _plain_mode(mode, x, y, scales))
            and _suits_the_machine(plain, x, y)
        ):
            count += _write(node, plain, y)
        elif kind == "nearest" and max(y, default=1) <= LARGEST_RESULT:
            _look_up(node, axes, scales)
            count += 1
        elif kind in ("linear", "cubic") and all(
            x[axis] * y[axis] <= LARGEST_RESULT for axis in axes
        ):
            _multiply(node, axes, scales)
            count += 1
    return count


def _scales(node: ir.Node) -> list[float] | None:
    """Return the factor of each axis; None where it is not constant."""
    x, y = shape_of(first(node)) or (), shape_of(node.outputs[0]) or ()
    every = [large / small for small, large in zip(x, y, strict=False)]
    scales = constant(operand(node, 2))
    if scales is None or scales.size == 0:
        return _scales_to_sizes(node, every)
    for axis, scale in zip(
        ints_attribute(node, "axes") or range(len(x)),
        scales.tolist(),
        strict=True,
    ):
        every[axis] = float(scale)
    return every


def _scales_to_sizes(node: ir.Node, every: list[float]) -> list[float] | None:
    """Return the factors that reach the given sizes.

    All axes have one factor where the aspect ratio is kept.
    """
    sizes = constant(operand(node, 3))
    policy = string_attribute(node, "keep_aspect_ratio_policy", "stretch")
    if sizes is None or policy == "stretch":
        return None if sizes is None else every
    x = shape_of(first(node)) or ()
    axes = [
        axis % len(x) for axis in ints_attribute(node, "axes") or range(len(x))
    ]
    factors = [
        size / x[axis] for size, axis in zip(sizes.tolist(), axes, strict=True)
    ]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [factor if axis in axes else 1.0 for axis in range(len(x))]


def _region(node: ir.Node) -> dict[int, tuple[float, float]] | None:
    """Return the start and end of the region of each axis, as fractions of the axis.

    None where the region is not constant.
    """
    numbers = constant(operand(node, 1))
    rank = len(shape_of(first(node)) or ())
    axes = [axis % rank for axis in ints_attribute(node, "axes") or range(rank)]
    if numbers is None or numbers.size != 2 * len(axes):
        return None
    starts, ends = numbers[: len(axes)].tolist(), numbers[len(axes) :].tolist()
    return dict(zip(axes, zip(starts, ends, strict=True), strict=True))


def _plain_mode(
    mode: str, x: Sequence[int], y: Sequence[int], scales: Sequence[float]
) -> str | None:
    """Return align_corners, half_pixel or asymmetric; None if the mode equals none.

    The factors must be the quotients of the sizes.
    """
    if mode == _CROP:
        return None
    if mode != "align_corners" and any(
        abs(scale * small - large) > ROUNDING * large
        for scale, small, large in zip(scales, x, y, strict=True)
    ):
        return None
    if mode == "pytorch_half_pixel" and any(
        large == 1 < small for small, large in zip(x, y, strict=True)
    ):
        return None
    return mode if mode in ("align_corners", "asymmetric") else "half_pixel"


def _suits_the_machine(mode: str, x: Sequence[int], y: Sequence[int]) -> bool:
    """Whether the machine's resize can count the rows and columns in its steps."""
    if (
        len(x) != 4
        or tuple(x[:2]) != tuple(y[:2])
        or max(*x[2:], *y[2:]) > LARGEST_SIDE
    ):
        return False
    for small, large in zip(x[2:], y[2:], strict=True):
        steps, stride, start = _steps(mode, small, large)
        common = math.gcd(steps, stride, start)
        if (
            steps // common > MOST_STEPS
            or stride >= 16 * steps
            or (large == 1 < small and mode == "align_corners")
        ):
            return False
    return True


def _steps(mode: str, small: int, large: int) -> tuple[int, int, int]:
    """Return n, d and s, where element i of the new axis lies at (i * d + s) / n."""
    if mode == "asymmetric":
        return large, small, 0
    if mode == "align_corners" and min(small, large) > 1:
        return large - 1, small - 1, 0
    return 2 * large, 2 * small, small - large


def _write(node: ir.Node, mode: str, y: tuple[int, ...]) -> bool:
    """Write the canonical form, which has sizes and no scales.

    Return False where the node has that form already.
    """
    attributes = {"mode": "linear", "coordinate_transformation_mode": mode}
    sizes = constant(operand(node, 3))
    has_sizes = (
        len(node.inputs) == 4
        and sizes is not None
        and tuple(sizes.tolist()) == y
        and "axes" not in node.attributes
    )
    if (
        has_sizes
        and string_attribute(
            node, "coordinate_transformation_mode", "half_pixel"
        )
        == mode
    ):
        return False
    patch = Patch(node)
    patch.finish(
        patch.add(
            "Resize",
            first(node),
            None,
            None,
            patch.axes(y, "sizes"),
            **attributes,
        )
    )
    return True


def _coordinates(mode: str, small: int, large: int, scale: float) -> Single:
    """Return the coordinate in the old axis of each element of the new one."""
    place = np.arange(large, dtype=np.float32)
    factor = np.float32(scale)
    half = np.float32(0.5)
    if mode == "asymmetric":
        return (np.arange(large) / scale).astype(np.float32)
    if mode == "align_corners":
        return (
            place * np.float32(small - 1) / np.float32(large - 1)
            if large > 1
            else np.zeros(1, np.float32)
        )
    if mode == "pytorch_half_pixel" and large == 1:
        return np.zeros(1, np.float32)
    offset = np.float32(0)
    if mode == "half_pixel_symmetric":
        offset = np.float32(small / 2) * (
            1 - np.float32(large) / (factor * np.float32(small))
        )
    return offset + (place + half) / factor - half


def _places(
    node: ir.Node, axes: Sequence[int], scales: Sequence[float]
) -> dict[int, Single]:
    """Return, for each axis, the coordinates in the old one."""
    x, y = shape_of(first(node)) or (), shape_of(node.outputs[0]) or ()
    mode = string_attribute(
        node, "coordinate_transformation_mode", "half_pixel"
    )
    if mode != _CROP:
        return {
            axis: _coordinates(mode, x[axis], y[axis], scales[axis])
            for axis in axes
        }
    parts = (_region(node) or {}).items()
    coordinates = {
        axis: _cropped(x[axis], y[axis], *region) for axis, region in parts
    }
    return {
        axis: places
        for axis, places in coordinates.items()
        if not np.array_equal(places, np.arange(x[axis]))
    }


def _cropped(small: int, large: int, start: float, end: float) -> Single:
    """Return the coordinates of a region, in single precision as onnxruntime computes them.

    A column may lie exactly on the last one, and just beyond it would be outside.
    """
    first_place, last_place = np.float32(start), np.float32(end)
    last = np.float32(small - 1)
    if large == 1:
        middle = 0.5 * float(first_place + last_place) * (small - 1)
        return np.array([middle], np.float32)
    steps = np.arange(large, dtype=np.float32) * (last_place - first_place)
    return first_place * last + steps * last / np.float32(large - 1)


def _finish(
    patch: Patch, node: ir.Node, value: ir.Value, places: dict[int, Single]
) -> None:
    """End the patch, with the extrapolation value outside of the old image.

    Only a cropped region (tf_crop_and_resize) can lie outside.
    """
    x, y = shape_of(first(node)) or (), shape_of(node.outputs[0]) or ()
    outside = np.zeros(y, np.bool_)
    if (
        string_attribute(node, "coordinate_transformation_mode", "half_pixel")
        == _CROP
    ):
        for axis, coordinates in places.items():
            beyond = (coordinates < 0) | (coordinates > x[axis] - 1)
            outside |= beyond.reshape(
                [-1 if other == axis else 1 for other in range(len(y))]
            )
    if outside.any():
        far = patch.constant(
            np.array(
                float_attribute(node, "extrapolation_value", 0.0), np.float32
            ),
            "extrapolation",
        )
        value = patch.add(
            "Where", patch.constant(outside, "outside"), far, value
        )
    patch.finish(value)


def _look_up(
    node: ir.Node, axes: Sequence[int], scales: Sequence[float]
) -> None:
    x, y = shape_of(first(node)) or (), shape_of(node.outputs[0]) or ()
    rounding = _ROUNDINGS[
        string_attribute(node, "nearest_mode", "round_prefer_floor")
    ]
    patch, value, places = Patch(node), first(node), _places(node, axes, scales)
    for axis, coordinates in places.items():
        sources = rounding(coordinates).clip(0, x[axis] - 1).astype(np.int64)
        value = patch.add(
            "Gather", value, patch.constant(sources, "places"), axis=axis
        )
    if value is first(node):
        value = patch.add("Reshape", value, patch.axes(y, "shape"), allowzero=0)
    _finish(patch, node, value, places)


def _multiply(
    node: ir.Node, axes: Sequence[int], scales: Sequence[float]
) -> None:
    x = shape_of(first(node)) or ()
    last = len(x) - 1
    patch, value, places = Patch(node), first(node), _places(node, axes, scales)
    for axis, coordinates in places.items():
        weights = _weights(
            node, coordinates.astype(np.float64), x[axis], scales[axis]
        )
        swap = tuple(
            {axis: last, last: axis}.get(index, index)
            for index in range(len(x))
        )
        transposed = patch.add("Transpose", value, perm=swap)
        product = patch.add(
            "MatMul",
            transposed,
            patch.constant(weights.astype(np.float32), "weights"),
        )
        value = patch.add("Transpose", product, perm=swap)
    _finish(patch, node, value, places)


def _weights(
    node: ir.Node, coordinates: Matrix, size: int, scale: float
) -> Matrix:
    """Return the shares as a matrix [size, places].

    Antialiasing widens the kernel by the factor by which the axis shrinks.
    """
    smooth = int_attribute(node, "antialias", 0)
    cubic = string_attribute(node, "mode", "nearest") == "cubic"
    if not smooth and not cubic:
        return _linear(coordinates, size)
    a = float_attribute(node, "cubic_coeff_a", -0.75)
    kernel = (
        InterpolationKernel(2, lambda x: _keys(x, a))
        if cubic
        else InterpolationKernel(1, lambda x: (1 - x).clip(0, 1))
    )
    excluded = bool(int_attribute(node, "exclude_outside", 0))
    return _spread(
        coordinates,
        size,
        kernel,
        min(scale, 1.0) if smooth else 1.0,
        excluded=excluded,
    )


def _linear(coordinates: Matrix, size: int) -> Matrix:
    """Return the shares of both neighbours as a matrix [size, places]."""
    inside = coordinates.clip(0, size - 1)
    lower = np.floor(inside).astype(np.int64)
    share = inside - lower
    weights = np.zeros((size, coordinates.size))
    places = np.arange(coordinates.size)
    weights[lower, places] += 1 - share
    weights[(lower + 1).clip(max=size - 1), places] += share
    return weights


@dataclass(frozen=True)
class InterpolationKernel:
    """The share of a neighbour as a function of its distance; 0 from `reach` on."""

    reach: int
    share: Callable[[Matrix], Matrix]


def _spread(
    coordinates: Matrix,
    size: int,
    kernel: InterpolationKernel,
    shrink: float,
    *,
    excluded: bool,
) -> Matrix:
    """Return the shares of all neighbours within reach as a matrix [size, places].

    Shares of neighbours outside go to the border, or to none if `excluded`.
    """
    start = np.floor(coordinates)
    weights = np.zeros((size, coordinates.size))
    places = np.arange(coordinates.size)
    first_step = math.floor(-kernel.reach / shrink) + 1
    for step in range(first_step, 2 - first_step):
        taps = (start + step).astype(np.int64)
        share = kernel.share(np.abs(coordinates - start - step) * shrink)
        inside = (taps >= 0) & (taps < size)
        np.add.at(
            weights,
            (taps.clip(0, size - 1), places),
            np.where(inside | (not excluded), share, 0.0),
        )
    if excluded or shrink != 1.0:
        weights /= np.add.reduce(weights, axis=0)
    return weights


def _keys(x: Matrix, a: float) -> Matrix:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
