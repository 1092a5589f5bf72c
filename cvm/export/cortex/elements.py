"""Element by element: scale, arithmetic, logic, tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.arithmetic import Binary
from cvm.export.cortex.graph import MAX_PRECISION, CortexValue, Refused, bits
from cvm.export.cortex.instruction import CortexInstruction
from cvm.program import DTYPE_RANGES
from cvm.reference import lookup as reference

Writer = Callable[[CortexInstruction], CortexValue]


def rescale(instruction: CortexInstruction) -> CortexValue:
    """A product and a shift. Channels whose shifts lie too far apart for one product have several, which are added up."""
    graph, multipliers = instruction.graph, instruction.constant(1)
    x = exact.add_number(
        graph, instruction.value(0), -instruction.integer("input_zp")
    )
    shape = exact.last_axis(multipliers, len(x.shape))
    terms = []
    for group in _groups(instruction, MAX_PRECISION - bits(x.interval)):
        most = max(shift for _, shift in group.values())
        factors = [0] * multipliers.size
        for channel, (factor, shift) in group.items():
            factors[channel] = factor << (most - shift)
        terms.append(exact.scaled(graph, x, factors, most, shape))
    y = terms[0] if terms else exact.always(graph, x, 0)
    for term in terms[1:]:
        y = exact.add(graph, y, term)
    y = exact.add_number(graph, y, instruction.integer("output_zp"))
    return exact.clip(graph, y, *DTYPE_RANGES[instruction.result.dtype])


Group = dict[int, tuple[int, int]]  # by channel: an odd factor, a shift


def _groups(instruction: CortexInstruction, room: int) -> list[Group]:
    """The channels that are not always 0, in groups whose factors take no more bits than there is room for."""
    scales = {}
    for channel, factor in enumerate(map(int, instruction.constant(1))):
        if factor:
            zeros = exact.trailing_zeros(factor)
            shift = int(instruction.constant(2)[channel]) - zeros
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


def clamp(instruction: CortexInstruction) -> CortexValue:
    """min(max(x, min), max)."""
    low, high = instruction.integer("min"), instruction.integer("max")
    return exact.clip(instruction.graph, instruction.value(0), low, high)


def cast(instruction: CortexInstruction) -> CortexValue:
    """The same integer; bool is |x| stopped at 1."""
    x = instruction.value(0)
    if instruction.result.dtype != "bool":
        return x
    return exact.absolute(
        instruction.graph, exact.clip(instruction.graph, x, -1, 1)
    )


def binary(function: Binary) -> Writer:
    """An operator over two operands."""

    def write(instruction: CortexInstruction) -> CortexValue:
        return function(
            instruction.graph, instruction.value(0), instruction.value(1)
        )

    return write


def mul(instruction: CortexInstruction) -> CortexValue:
    """The product, shifted."""
    product = exact.mul(
        instruction.graph, instruction.value(0), instruction.value(1)
    )
    return exact.shift_half_up(
        instruction.graph, product, instruction.integer("shift")
    )


def intdiv(instruction: CortexInstruction) -> CortexValue:
    """Truncated toward zero, as Cortex divides."""
    x, y = instruction.value(0), instruction.value(1)
    return exact.divide(instruction.graph, x, y, instruction.interval)


def minimum(instruction: CortexInstruction) -> CortexValue:
    """-max(-x, -y)."""
    graph = instruction.graph
    negatives = [
        exact.negative(graph, instruction.value(index)) for index in (0, 1)
    ]
    return exact.negative(graph, exact.maximum(graph, *negatives))


def absolute(instruction: CortexInstruction) -> CortexValue:
    """|x|."""
    return exact.absolute(instruction.graph, instruction.value(0))


def negate(instruction: CortexInstruction) -> CortexValue:
    """input_zp + output_zp - x; i8 saturates."""
    zero_points = instruction.integer("input_zp") + instruction.integer(
        "output_zp"
    )
    y = exact.negative(instruction.graph, instruction.value(0))
    y = exact.add_number(instruction.graph, y, zero_points)
    return exact.clip(
        instruction.graph, y, *DTYPE_RANGES[instruction.result.dtype]
    )


def _amounts(
    instruction: CortexInstruction,
) -> tuple[list[int], tuple[int, ...]]:
    """Shifts that are known, and their shape."""
    array = instruction.constant_or_none(1)
    if array is None:
        raise Refused("its shifts are computed")
    amounts = [int(amount) for amount in array.flat]
    if len(set(amounts)) == 1:
        return amounts[:1], (1,) * len(instruction.shape)
    return amounts, array.shape


def shift_left(instruction: CortexInstruction) -> CortexValue:
    """A product with powers of two."""
    amounts, shape = _amounts(instruction)
    x = _spread(instruction)
    factors = [1 << amount for amount in amounts]
    return exact.scaled(instruction.graph, x, factors, 0, shape)


def shift_right(instruction: CortexInstruction) -> CortexValue:
    """A shift by the largest amount, after a product for the smaller ones."""
    amounts, shape = _amounts(instruction)
    most = max(amounts)
    factors = [1 << (most - amount) for amount in amounts]
    rounded = bool(instruction.integer("round"))
    return exact.scaled(
        instruction.graph, _spread(instruction), factors, most, shape, rounded
    )


def _spread(instruction: CortexInstruction) -> CortexValue:
    """The first operand, in the result's shape."""
    x = instruction.value(0)
    if x.shape == instruction.shape:
        return x
    zeros = instruction.graph.parameter(np.zeros(instruction.shape, np.int64))
    return exact.add(instruction.graph, x, zeros)


def clz(instruction: CortexInstruction) -> CortexValue:
    """32 less the bits of x, which is `cvm_precision` but for 0; and 0 below zero."""
    graph, x = instruction.graph, instruction.value(0)
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


def greater_equal(instruction: CortexInstruction) -> CortexValue:
    """1 - (y > x)."""
    graph = instruction.graph
    less = exact.greater(graph, instruction.value(1), instruction.value(0))
    return _inverted(instruction, less)


def equal(instruction: CortexInstruction) -> CortexValue:
    """1 - (x > y) - (y > x)."""
    graph, x, y = instruction.graph, instruction.value(0), instruction.value(1)
    more, less = exact.greater(graph, x, y), exact.greater(graph, y, x)
    return _inverted(instruction, exact.maximum(graph, more, less))


def logical_not(instruction: CortexInstruction) -> CortexValue:
    """1 - x."""
    return _inverted(instruction, instruction.value(0))


def _inverted(instruction: CortexInstruction, x: CortexValue) -> CortexValue:
    one = instruction.graph.number(1, len(x.shape))
    return exact.sub(instruction.graph, one, x)


def select(instruction: CortexInstruction) -> CortexValue:
    """y + condition * (x - y): Cortex's `where` has the precision of its condition."""
    graph = instruction.graph
    condition, x, y = (instruction.value(index) for index in range(3))
    gap = exact.sub(graph, x, y)
    chosen = exact.mul(graph, graph.tight(condition, 2), gap)
    return exact.add(graph, chosen, y)


def table(instruction: CortexInstruction) -> CortexValue:
    """The entry at x less the least value of its dtype."""
    return _entry_of(instruction, graph_table(instruction))


def interpolate(instruction: CortexInstruction) -> CortexValue:
    """A table of all that the lines give: Cortex has no operator for them."""
    integers = np.arange(-(2**15), 2**15)
    values = reference.interpolate(integers, instruction.constant(1))
    return _entry_of(instruction, instruction.graph.parameter(values))


def _entry_of(
    instruction: CortexInstruction, entries: CortexValue
) -> CortexValue:
    graph = instruction.graph
    x = exact.add_number(
        graph,
        instruction.value(0),
        -DTYPE_RANGES[instruction.types[0].dtype][0],
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


def graph_table(instruction: CortexInstruction) -> CortexValue:
    """The entries as a parameter."""
    values = instruction.constant(1)
    if bits((int(values.min()), int(values.max()))) > 32:
        raise Refused("its table holds -2147483648")
    return instruction.graph.parameter(values)
