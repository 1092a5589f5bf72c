"""Folds window functions and mel filters, which depend on no input."""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np
import onnx_ir as ir

from mrt.exact.unit_circle import Table, cosines
from mrt.graph.values import Array, nodes, scalar
from mrt.graph.values import int_attribute as integer_of
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT, put_constant

LONGEST_WINDOW = 1 << 13

# a - b cos x + c cos 2x
_TERMS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
PRECISION = Context(prec=40)


def fold_window_functions(model: ir.Model) -> int:
    """HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix -> constant.

    Applies to constant operands of bounded size.
    """
    count = 0
    for node in nodes(model, *_TERMS, "MelWeightMatrix"):
        numbers = [scalar(value) for value in node.inputs]
        operands = [number for number in numbers if number is not None]
        if len(operands) < len(numbers):
            continue
        result = (
            _mel(*operands)
            if node.op_type == "MelWeightMatrix"
            else _window(node, int(operands[0]))
        )
        kind = ir.DataType(
            integer_of(node, "output_datatype", int(ir.DataType.FLOAT))
        )
        if result is None or kind not in (
            ir.DataType.FLOAT,
            ir.DataType.FLOAT16,
            ir.DataType.DOUBLE,
        ):
            continue
        put_constant(node, result.astype(np.float32))
        count += 1
    return count


def _window(node: ir.Node, size: int) -> Table | None:
    turn = size if integer_of(node, "periodic", 1) else size - 1
    if not 1 <= size <= LONGEST_WINDOW or turn < 1:
        return None
    a, b, c = _TERMS[node.op_type]
    places, table = np.arange(size), cosines(turn)
    return a - b * table[places % turn] + c * table[2 * places % turn]


def _mel(
    bins: float, length: float, rate: float, low: float, high: float
) -> Array | None:
    """Return the triangular mel filters, [length / 2 + 1, bins].

    Their corners are evenly spaced in mel and rounded down to integer frequencies.
    """
    count, half = int(bins), int(length) // 2 + 1
    if (
        min(count, half, rate) < 1
        or count * half > LARGEST_RESULT
        or not 0 <= low < high
    ):
        return None
    corners = [
        _corner(step, count + 2, (length, rate, low, high))
        for step in range(count + 2)
    ]
    if corners[-1] > half:
        return None
    filters = np.zeros((half, count))
    for index, (left, centre, right) in enumerate(
        zip(corners, corners[1:], corners[2:], strict=False)
    ):
        rising = np.arange(left, min(centre + 1, half))
        filters[rising, index] = (
            (rising - left) / (centre - left) if centre > left else 1
        )
        falling = np.arange(centre, right)
        filters[falling, index] = (right - falling) / max(right - centre, 1)
    return filters


def _corner(step: int, steps: int, settings: tuple[float, ...]) -> int:
    """Return the corner of a filter, by mel = 2595 log10(1 + f / 700)."""
    p = PRECISION
    length, rate, low, high = (Decimal(number) for number in settings)
    least, most = (
        p.ln(p.add(Decimal(1), p.divide(edge, Decimal(700))))
        for edge in (low, high)
    )
    share = p.divide(Decimal(step), Decimal(steps))
    exponent = p.add(least, p.multiply(p.subtract(most, least), share))
    hertz = p.multiply(
        Decimal(700), p.subtract(PRECISION.exp(exponent), Decimal(1))
    )
    return math.floor(
        p.divide(p.multiply(p.add(length, Decimal(1)), hertz), rate)
    )
