"""Exact arithmetic in Cortex's operators, element by element, over values with proven intervals.

The runtime's `cvm_left_shift` and `where`, and shifts by 31 bits and more, are known to fail or to differ between its back
ends; none of them is written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.export.cortex.graph import (
    CortexGraph,
    CortexValue,
    Interval,
    Refused,
    bits,
)
from cvm.program import IntArray

Binary = Callable[[CortexGraph, CortexValue, CortexValue], CortexValue]

MOST_SHIFT = 30
LARGEST = 2**31 - 1


def add(graph: CortexGraph, x: CortexValue, y: CortexValue) -> CortexValue:
    """x + y."""
    interval = tuple(a + b for a, b in zip(x.interval, y.interval, strict=True))
    return _sum(graph, "broadcast_add", x, y, (interval[0], interval[1]))


def sub(graph: CortexGraph, x: CortexValue, y: CortexValue) -> CortexValue:
    """x - y."""
    interval = x.interval[0] - y.interval[1], x.interval[1] - y.interval[0]
    return _sum(graph, "broadcast_sub", x, y, interval)


def _sum(
    graph: CortexGraph,
    operator: str,
    x: CortexValue,
    y: CortexValue,
    interval: Interval,
) -> CortexValue:
    x, y = graph.tight(x, 31), graph.tight(y, 31)
    precision = max(x.precision, y.precision) + 1
    return graph.node(operator, (x, y), precision, interval, broadcast(x, y))


def add_number(graph: CortexGraph, x: CortexValue, number: int) -> CortexValue:
    """x + number."""
    if not number:
        return x
    return add(graph, x, graph.number(number, len(x.shape)))


def mul(graph: CortexGraph, x: CortexValue, y: CortexValue) -> CortexValue:
    """x * y; the precisions add up."""
    if x.precision + y.precision > 32:
        x, y = (graph.tight(v, bits(v.interval)) for v in (x, y))
    corners = [a * b for a in x.interval for b in y.interval]
    return graph.node(
        "broadcast_mul",
        (x, y),
        x.precision + y.precision,
        (min(corners), max(corners)),
        broadcast(x, y),
    )


def maximum(graph: CortexGraph, x: CortexValue, y: CortexValue) -> CortexValue:
    """The greater."""
    (a, b), (c, d) = x.interval, y.interval
    return graph.node(
        "broadcast_max",
        (x, y),
        max(x.precision, y.precision),
        (max(a, c), max(b, d)),
        broadcast(x, y),
    )


def greater(graph: CortexGraph, x: CortexValue, y: CortexValue) -> CortexValue:
    """1 where x > y, else 0."""
    shape = broadcast(x, y)
    is_greater = graph.node(
        "broadcast_greater", (x, y), x.precision, (0, 1), shape
    )
    return is_greater


def divide(
    graph: CortexGraph, x: CortexValue, y: CortexValue, interval: Interval
) -> CortexValue:
    """x / y, truncated toward zero, y never 0."""
    shape = broadcast(x, y)
    return graph.node("broadcast_div", (x, y), x.precision, interval, shape)


def negative(graph: CortexGraph, x: CortexValue) -> CortexValue:
    """-x."""
    low, high = x.interval
    return graph.node("negative", (x,), x.precision, (-high, -low))


def absolute(graph: CortexGraph, x: CortexValue) -> CortexValue:
    """|x|."""
    most = max(map(abs, x.interval))
    return graph.node("abs", (x,), x.precision, (0, most))


def always(graph: CortexGraph, x: CortexValue, number: int) -> CortexValue:
    """The same number at every place of x, which is first clamped to one bit, so to 0."""
    zero = graph.node("cvm_clip", (x,), 1, (0, 0), precision=1)
    return add_number(graph, zero, number)


def clip(
    graph: CortexGraph, x: CortexValue, low: int, high: int
) -> CortexValue:
    """min(max(x, low), high), with as few operators as the interval of x leaves."""
    least, most = x.interval
    if low <= least and most <= high:
        return x
    if low == high or high <= least:
        return always(graph, x, high)
    if most <= low:
        return always(graph, x, low)
    inner, (bottom, top) = graph.clipped.get(x.node, (x, (low, high)))
    if bottom <= low and high <= top:
        x = inner
    interval = max(low, least), min(high, most)
    clipped = _clip(graph, x, (low, high), interval)
    graph.clipped[clipped.node] = x, (low, high)
    return clipped


def _clip(
    graph: CortexGraph, x: CortexValue, bounds: Interval, interval: Interval
) -> CortexValue:
    low, high = bounds
    if low == -high and not high & (high + 1):
        precision = bits(bounds)
        source, shift = graph.shifted.get(x.node, (x, 0))
        if shift:  # the shift clamps by itself
            return _right_shift(graph, source, shift, precision, interval)
        return graph.node(
            "cvm_clip", (x,), precision, interval, precision=precision
        )
    if low == 0 and high >= x.interval[1]:
        return graph.node("relu", (x,), x.precision, interval)
    low, high = max(low, x.interval[0]), min(high, x.interval[1])
    # The runtime's rule; a bit too many for 2^k - 1.
    precision = (max(-low, high) + 1).bit_length() + 1
    return graph.node("clip", (x,), precision, interval, a_min=low, a_max=high)


def shift_half_up(
    graph: CortexGraph, x: CortexValue, shift: int
) -> CortexValue:
    """floor(x / 2^shift + 1/2)."""
    if not shift:
        return x
    half = 1 << (shift - 1)
    low, high = ((end + half) >> shift for end in x.interval)
    if low == high:
        return always(graph, x, low)
    if shift > MOST_SHIFT:
        raise Refused(
            f"a shift by {shift} bits; Cortex's back ends agree up to {MOST_SHIFT}"
        )
    if x.interval[1] == LARGEST and shift == 1:
        raise Refused("half of 2147483647 overflows in Cortex")
    interval = low, high
    shifted = _right_shift(graph, x, shift, bits(interval), interval)
    graph.shifted[shifted.node] = x, shift
    return shifted


def _right_shift(
    graph: CortexGraph,
    x: CortexValue,
    shift: int,
    precision: int,
    interval: Interval,
) -> CortexValue:
    return graph.node(
        "cvm_right_shift",
        (x,),
        precision,
        interval,
        precision=precision,
        shift_bit=shift,
    )


def scaled(
    graph: CortexGraph,
    x: CortexValue,
    factors: list[int],
    shift: int,
    shape: tuple[int, ...],
    rounded: bool = True,
) -> CortexValue:
    """floor(x * factor / 2^shift + 1/2), or without the half; the factors, not negative, have a shape that broadcasts."""
    spare = min(trailing_zeros(factor) for factor in (*factors, 0))
    spare = min(spare, max(shift, 0))
    factors = [factor >> spare << max(-shift, 0) for factor in factors]
    shift = max(shift - spare, 0)
    if max(factors) > LARGEST:
        size = max(factors).bit_length()
        raise Refused(f"its multiplier takes {size} bits of a product of 32")
    if set(factors) != {1}:
        array = np.array(factors, np.int64).reshape(shape)
        x = mul(graph, x, graph.parameter(array))
    return (shift_half_up if rounded else shift_floor)(graph, x, shift)


def trailing_zeros(number: int) -> int:
    """How often 2 divides each number; for 0 a count beyond any shift."""
    return (number & -number).bit_length() - 1 if number else 64


def shift_floor(graph: CortexGraph, x: CortexValue, shift: int) -> CortexValue:
    """floor(x / 2^shift)."""
    if not shift:
        return x
    if shift > MOST_SHIFT:
        return clip(graph, x, -1, 0)
    lowered = add_number(graph, x, -(1 << (shift - 1)))
    return shift_half_up(graph, lowered, shift)


def broadcast(x: CortexValue, y: CortexValue) -> tuple[int, ...]:
    """The shape of both together."""
    return tuple(map(max, x.shape, y.shape))


def last_axis(array: IntArray, rank: int) -> tuple[int, ...]:
    """The shape in which factors of channels, or a single one, broadcast over a rank."""
    return (*(1,) * (rank - 1), array.size)
