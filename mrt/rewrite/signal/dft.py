"""Lowers Fourier transforms of known lengths.

A DFT becomes a matrix product, a short-time transform along a signal a convolution.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.exact.unit_circle import cosines, sines
from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    scalar,
    shape_of,
)

Matrix = npt.NDArray[np.float64]

LONGEST = 1 << 13  # of a transform: every cosine is computed
MOST_WEIGHTS = 1 << 25
"""The most weights of a transform: 4096 real numbers have 2049 bins of two parts."""


def lower_dft(model: ir.Model) -> int:
    """DFT -> a MatMul along one axis; STFT -> a Conv of one channel.

    For the MatMul, the transformed axis and the axis of the real and imaginary parts
    become one last axis, and are separated again afterwards. Applies to known shapes
    and constant lengths, axes, steps and windows; STFT to real signals and a window as
    long as the frame. Equal up to rounding.
    """
    lower = {"DFT": _lower_dft, "STFT": _lower_stft}
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _lower_dft(node: ir.Node) -> bool:
    x = shape_of(first(node))
    axis = scalar(operand(node, 2)) if operand(node, 2) is not None else -2.0
    inverse = bool(int_attribute(node, "inverse", 0))
    half = bool(int_attribute(node, "onesided", 0))
    if (
        x is None
        or axis is None
        or len(x) < 2
        or x[-1] not in (1, 2)
        or node.outputs[0].dtype != ir.DataType.FLOAT
    ):
        return False
    place = int(axis) % len(x)
    length = (
        scalar(operand(node, 1))
        if operand(node, 1) is not None
        else float(x[place])
    )
    if operand(node, 1) is None and inverse and half:
        length = 2.0 * (x[place] - 1)
    if length is None or not 1 <= length <= LONGEST or place == len(x) - 1:
        return False
    extent = _extent(x[place], x[-1], int(length), inverse=inverse, half=half)
    if math.prod(extent) > MOST_WEIGHTS:
        return False
    matrix = _matrix(extent, int(length), inverse=inverse, half=half)
    _write_dft(node, x, place, matrix)
    return True


def _write_dft(
    node: ir.Node, x: tuple[int, ...], place: int, matrix: Matrix
) -> None:
    """Write a transform by `matrix`, [n, parts, n', parts].

    The parts are the real and the imaginary one.
    """
    patch = Patch(node)
    others = [axis for axis in range(len(x) - 1) if axis != place]
    behind = (*others, place, len(x) - 1)
    rest = tuple(x[axis] for axis in others)
    old = matrix.shape[:2]
    new = matrix.shape[2:]
    value = patch.add("Transpose", first(node), perm=behind)
    value = patch.add(
        "Reshape",
        value,
        patch.axes((*rest, math.prod(old)), "row"),
        allowzero=0,
    )
    weights = matrix.reshape(math.prod(old), math.prod(new)).astype(np.float32)
    value = patch.add("MatMul", value, patch.constant(weights, "weights"))
    value = patch.add(
        "Reshape", value, patch.axes((*rest, *new), "apart"), allowzero=0
    )
    patch.output.shape = ir.Shape(
        [*x[:place], new[0], *x[place + 1 : -1], new[1]]
    )
    patch.finish(
        patch.add(
            "Transpose",
            value,
            perm=tuple(behind.index(axis) for axis in range(len(x))),
        )
    )


def _extent(
    size: int, parts: int, length: int, *, inverse: bool, half: bool
) -> tuple[int, int, int, int]:
    """Return the shape of the matrix of a transform from n to n' numbers, [n, parts, n', parts].

    A number has one part if it is real, else two.
    """
    outputs = length // 2 + 1 if half and not inverse else length
    return size, parts, outputs, 1 if inverse and half else 2


def _matrix(
    extent: tuple[int, int, int, int],
    length: int,
    *,
    inverse: bool,
    half: bool,
) -> Matrix:
    """Return the matrix of a transform, of a shape by `_extent`.

    Numbers beyond `length` are cut off.
    """
    size, parts, outputs, parts_of_outputs = extent
    inputs = min(size, length // 2 + 1 if inverse and half else length)
    turns = np.arange(inputs)[:, None] * np.arange(outputs) % length
    cosine = cosines(length)[turns]
    sine = sines(length)[turns] * (1 if inverse else -1)
    if inverse:
        cosine, sine = cosine / length, sine / length
    if (
        inverse and half
    ):  # all but the first and the middle one count for their mirror images too
        twice = np.array(
            [1 if 2 * k in (0, length) else 2 for k in range(inputs)]
        )[:, None]
        cosine, sine = cosine * twice, sine * twice
    full = np.zeros((size, 2, outputs, 2))
    full[:inputs, 0, :, 0], full[:inputs, 0, :, 1] = cosine, sine
    full[:inputs, 1, :, 0], full[:inputs, 1, :, 1] = -sine, cosine
    return full[:, :parts, :, :parts_of_outputs]


def _lower_stft(node: ir.Node) -> bool:
    x, step = shape_of(first(node)), scalar(operand(node, 1))
    window = constant(operand(node, 2))
    if operand(node, 2) is not None and window is None:
        return False
    size = _frame_size(node, window)
    if x is None or len(x) not in (2, 3) or x[2:] not in ((), (1,)):
        return False
    if step is None or step < 1:
        return False
    if size is None or not 1 <= size <= min(LONGEST, x[1]):
        return False
    half = bool(int_attribute(node, "onesided", 1))
    extent = _extent(size, 1, size, inverse=False, half=half)
    if math.prod(extent) > MOST_WEIGHTS:
        return False
    matrix = _matrix(extent, size, inverse=False, half=half)
    if window is not None:
        matrix = matrix * window.astype(np.float64).reshape(-1, 1, 1, 1)
    _write_stft(node, x, int(step), matrix)
    return True


def _frame_size(node: ir.Node, window: Array | None) -> int | None:
    """Return the length of a frame, which is the window's; None if it is not known."""
    if operand(node, 3) is None:
        return None if window is None else window.size
    length = scalar(operand(node, 3))
    size = None if length is None else int(length)
    return size if window is None or window.size == size else None


def _write_stft(
    node: ir.Node, x: tuple[int, ...], step: int, matrix: Matrix
) -> None:
    """Write a transform of each frame by `matrix`, [n, 1, n', parts], as a Conv over the signal."""
    size, _, bins, parts = matrix.shape
    frames = (x[0], (x[1] - size) // step + 1, bins, parts)
    patch = Patch(node)
    row = patch.axes((x[0], 1, x[1]), "row")
    value = patch.add("Reshape", first(node), row, allowzero=0)
    kernels = np.ascontiguousarray(matrix.reshape(size, -1).T[:, None])
    weights = patch.constant(kernels.astype(np.float32), "weights")
    value = patch.add("Conv", value, weights, strides=(step,))
    value = patch.add("Transpose", value, perm=(0, 2, 1))
    patch.output.shape = ir.Shape(frames)
    apart = patch.axes(frames, "apart")
    patch.finish(patch.add("Reshape", value, apart, allowzero=0))
