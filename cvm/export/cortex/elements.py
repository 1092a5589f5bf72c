"""Element by element: scale, arithmetic, logic, tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.arithmetic import Binary
from cvm.export.cortex.graph import MAX_PRECISION, Refused, Value, bits
from cvm.export.cortex.step import Step
from cvm.program import DTYPE_RANGES

Writer = Callable[[Step], Value]


def rescale(step: Step) -> Value:
    """A product and a shift. Channels whose shifts lie too far apart for one product have several, whose sum it is."""
    graph, multipliers = step.graph, step.known(1)
    x = exact.add_number(graph, step.value(0), -step.integer("input_zp"))
    shape = exact.last_axis(multipliers, len(x.shape))
    parts = []
    for group in _groups(step, MAX_PRECISION - bits(x.interval)):
        most = max(shift for _, shift in group.values())
        factors = [0] * multipliers.size
        for channel, (factor, shift) in group.items():
            factors[channel] = factor << (most - shift)
        parts.append(exact.scaled(graph, x, factors, most, shape))
    y = parts[0] if parts else exact.always(graph, x, 0)
    for part in parts[1:]:
        y = exact.add(graph, y, part)
    y = exact.add_number(graph, y, step.integer("output_zp"))
    return exact.clip(graph, y, *DTYPE_RANGES[step.result.dtype])


Group = dict[int, tuple[int, int]]  # by channel: an odd factor, a shift


def _groups(step: Step, room: int) -> list[Group]:
    """The channels that are not always 0, in groups whose factors take no more bits than there is room for."""
    scales = {}
    for channel, factor in enumerate(map(int, step.known(1))):
        if factor:
            zeros = exact.trailing_zeros(factor)
            shift = int(step.known(2)[channel]) - zeros
            scales[channel] = factor >> zeros, shift
    groups: list[Group] = []
    for channel in sorted(scales, key=lambda k: -scales[k][1]):
        factor, shift = scales[channel]
        if groups:
            most = max(other for _, other in groups[-1].values())
        if not groups or bits((0, factor << (most - shift))) > room:
            groups.append({})
        groups[-1][channel] = factor, shift
    return groups


def clamp(step: Step) -> Value:
    """min(max(x, min), max)."""
    low, high = step.integer("min"), step.integer("max")
    return exact.clip(step.graph, step.value(0), low, high)


def cast(step: Step) -> Value:
    """The same integer; bool is |x| stopped at 1."""
    x = step.value(0)
    if step.result.dtype != "bool":
        return x
    return exact.absolute(step.graph, exact.clip(step.graph, x, -1, 1))


def binary(function: Binary) -> Writer:
    """An operator over two operands."""

    def write(step: Step) -> Value:
        return function(step.graph, step.value(0), step.value(1))

    return write


def mul(step: Step) -> Value:
    """The product, shifted."""
    product = exact.mul(step.graph, step.value(0), step.value(1))
    return exact.shift_half_up(step.graph, product, step.integer("shift"))


def intdiv(step: Step) -> Value:
    """Truncated toward zero, as Cortex divides."""
    x, y = step.value(0), step.value(1)
    return exact.divide(step.graph, x, y, step.interval)


def minimum(step: Step) -> Value:
    """-max(-x, -y)."""
    graph = step.graph
    both = [exact.negative(graph, step.value(index)) for index in (0, 1)]
    return exact.negative(graph, exact.maximum(graph, *both))


def absolute(step: Step) -> Value:
    """|x|."""
    return exact.absolute(step.graph, step.value(0))


def negate(step: Step) -> Value:
    """input_zp + output_zp - x; i8 saturates."""
    both = step.integer("input_zp") + step.integer("output_zp")
    y = exact.negative(step.graph, step.value(0))
    y = exact.add_number(step.graph, y, both)
    return exact.clip(step.graph, y, *DTYPE_RANGES[step.result.dtype])


def _amounts(step: Step) -> tuple[list[int], tuple[int, ...]]:
    """Shifts that are known, and their shape."""
    array = step.constant(1)
    if array is None:
        raise Refused("its shifts are computed")
    amounts = [int(amount) for amount in array.flat]
    if len(set(amounts)) == 1:
        return amounts[:1], (1,) * len(step.shape)
    return amounts, array.shape


def shift_left(step: Step) -> Value:
    """A product with powers of two."""
    amounts, shape = _amounts(step)
    x = _spread(step)
    factors = [1 << amount for amount in amounts]
    return exact.scaled(step.graph, x, factors, 0, shape)


def shift_right(step: Step) -> Value:
    """A shift by the largest amount, after a product for the smaller ones."""
    amounts, shape = _amounts(step)
    most = max(amounts)
    factors = [1 << (most - amount) for amount in amounts]
    rounded = bool(step.integer("round"))
    return exact.scaled(
        step.graph, _spread(step), factors, most, shape, rounded
    )


def _spread(step: Step) -> Value:
    """The first operand, in the result's shape."""
    x = step.value(0)
    if x.shape == step.shape:
        return x
    zeros = step.graph.parameter(np.zeros(step.shape, np.int64))
    return exact.add(step.graph, x, zeros)


def clz(step: Step) -> Value:
    """32 less the bits of x, which is `cvm_precision` but for 0; and 0 below zero."""
    graph, x = step.graph, step.value(0)
    magnitude = exact.clip(graph, x, 0, exact.LARGEST)
    length = graph.node("cvm_precision", (magnitude,), 6, (1, 31))
    positive = exact.clip(graph, magnitude, 0, 1)
    zeros = exact.sub(
        graph,
        graph.number(32, len(x.shape)),
        exact.mul(graph, length, positive),
    )
    sign = exact.add_number(graph, exact.clip(graph, x, -1, 0), 1)
    return exact.mul(graph, zeros, sign)


def greater_equal(step: Step) -> Value:
    """1 - (y > x)."""
    graph = step.graph
    less = exact.greater(graph, step.value(1), step.value(0))
    return _inverted(step, less)


def equal(step: Step) -> Value:
    """1 - (x > y) - (y > x)."""
    graph, x, y = step.graph, step.value(0), step.value(1)
    more, less = exact.greater(graph, x, y), exact.greater(graph, y, x)
    return _inverted(step, exact.maximum(graph, more, less))


def logical_not(step: Step) -> Value:
    """1 - x."""
    return _inverted(step, step.value(0))


def _inverted(step: Step, x: Value) -> Value:
    one = step.graph.number(1, len(x.shape))
    return exact.sub(step.graph, one, x)


def select(step: Step) -> Value:
    """y + condition * (x - y): Cortex's `where` has the precision of its condition."""
    graph = step.graph
    condition, x, y = (step.value(index) for index in range(3))
    gap = exact.sub(graph, x, y)
    chosen = exact.mul(graph, graph.tight(condition, 2), gap)
    return exact.add(graph, chosen, y)


def table(step: Step) -> Value:
    """The entry at x less the least value of its dtype."""
    graph, entries = step.graph, graph_table(step)
    x = exact.add_number(
        graph, step.value(0), -DTYPE_RANGES[step.types[0].dtype][0]
    )
    size = entries.shape[0]
    return graph.node(
        "cvm_lut",
        (x, entries),
        entries.precision,
        entries.interval,
        x.shape,
        in_dim=size,
    )


def graph_table(step: Step) -> Value:
    """The entries as a parameter."""
    values = step.known(1)
    if bits((int(values.min()), int(values.max()))) > 32:
        raise Refused("its table holds -2147483648")
    return step.graph.parameter(values)
