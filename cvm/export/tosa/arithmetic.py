"""Element by element: arithmetic, scale, lookup. Where TOSA's operator takes fewer integers, a few of its operators around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cvm.export.tosa.builder import TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction
from cvm.program import DTYPE_RANGES, IntArray
from cvm.tosa.schema import SINGLE_ROUND

LEAST, MOST = DTYPE_RANGES["i32"]
ROOT_BITS = range(15, -1, -1)  # of the root of a number of 31 bits
IDENTITY = (np.array([2**30], np.int32), np.array([30], np.int8))


def rescaled(
    graph: TosaBuilder,
    x: TosaValue,
    factors: Sequence[IntArray],
    points: tuple[int, int],
    element: str,
    *,
    unsigned: bool = False,
) -> TosaValue:
    """RESCALE with multipliers and shifts; a zero point of unsigned bytes is the signed byte with the same bits."""
    point = points[0] - 256 if unsigned and points[0] > 127 else points[0]
    multiplier, shift = factors
    short = multiplier.dtype == np.int16
    operands = [
        x,
        graph.constant(multiplier, "INT16" if short else "INT32"),
        graph.constant(shift, "INT8"),
        graph.one(point, x.element),
        graph.one(points[1], element),
    ]
    return graph.operation(
        "RESCALE",
        operands,
        element,
        x.shape,
        scale32=not short,
        rounding_mode=SINGLE_ROUND,
        per_channel=multiplier.size > 1,
        input_unsigned=unsigned,
        output_unsigned=False,
    )


def widened(graph: TosaBuilder, x: TosaValue, dtype: str) -> TosaValue:
    """The same integers in 32 bits. Bytes without sign go through 16, as TOSA does not take them to 32 at once."""
    if dtype == "u8":
        x = rescaled(graph, x, IDENTITY, (0, 0), "INT16", unsigned=True)
    return graph.cast(x, "INT32")


def rescale(instruction: TosaInstruction) -> TosaValue:
    """TOSA's, of integers that it takes. Others saturate at the bounds of 8 or 16 bits, so may stop earlier; to 32, a product."""
    graph, x = instruction.graph, instruction.operand(0)
    factors = (instruction.constant(1), instruction.constant(2))
    dtype, element = instruction.types[0].dtype, instruction.element
    point = instruction.integer("input_zp")
    after = instruction.integer("output_zp")
    if fits(instruction) and (dtype, element) != ("u8", "INT32"):
        points = (point, after)
        return rescaled(graph, x, factors, points, element, unsigned=dtype == "u8")  # fmt: skip
    x = widened(graph, x, dtype)
    if point:
        zero = graph.splat(point, "INT32", len(x.shape))
        x = graph.operation("SUB", [x, zero], "INT32", x.shape)
    if not fits(instruction):
        if element == "INT32":
            return multiplied(graph, x, factors, instruction.intervals[0])
        x = _stopped(instruction, x)
    return rescaled(graph, x, factors, (0, after), element)


def fits(instruction: TosaInstruction) -> bool:
    """Whether every x lies in the range that TOSA has for its shift, and every scaled one in 32 bits."""
    point = instruction.integer("input_zp")
    interval = [end - point for end in instruction.intervals[0]]
    scales = zip(instruction.constant(1), instruction.constant(2), strict=True)
    return all(
        least <= end <= most
        for least, most in (_range(int(m), int(s)) for m, s in scales)
        for end in interval
    )


def _range(multiplier: int, shift: int) -> tuple[int, int]:
    """Between which integers TOSA scales: inside its range for a shift, and such that 32 bits hold the result and a zero point."""
    most = 2 ** (shift - 1) - 1
    if multiplier:
        most = min(most, (2**31 - 2**10 << shift) // multiplier)
    most = min(most, 2**31 - 1)
    return -most, most


def multiplied(
    graph: TosaBuilder,
    x: TosaValue,
    factors: Sequence[IntArray],
    interval: tuple[int, int],
) -> TosaValue:
    """x of 32 bits, scaled by MUL, which takes every x whose result fits 32 bits; for others the bound is selected."""
    firsts, lasts = _firsts(factors), _lasts(factors)
    least = _per_channel(graph, x, firsts)
    most = _per_channel(graph, x, lasts)
    if max(firsts) <= interval[0] and interval[1] <= min(lasts):
        return _product(graph, x, factors)
    above = _between(graph, "MAXIMUM", x, least)
    limited = _between(graph, "MINIMUM", above, most)
    result = _product(graph, limited, factors)
    for sides, bound in (([x, most], MOST), ([least, x], LEAST)):
        beyond = graph.operation("GREATER", sides, "BOOL", x.shape)
        end = graph.splat(bound, "INT32", len(x.shape))
        chosen = [beyond, end, result]
        result = graph.operation("SELECT", chosen, "INT32", x.shape)
    return result


def _product(
    graph: TosaBuilder, x: TosaValue, factors: Sequence[IntArray]
) -> TosaValue:
    """MUL has one shift, so there is a product for each shift, which is 0 for channels with another one; they are added up."""
    multiplier, shift = factors
    result: TosaValue | None = None
    for by in sorted(set(shift.tolist())):
        selected = _per_channel(graph, x, np.where(shift == by, multiplier, 0))
        operands = [x, selected, graph.one(by, "INT8")]
        product = graph.operation("MUL", operands, "INT32", x.shape)
        if result is None:
            result = product
        else:
            terms = [result, product]
            result = graph.operation("ADD", terms, "INT32", x.shape)
    assert result is not None
    return result


def _firsts(factors: Sequence[IntArray]) -> list[int]:
    """For each factor the least x whose scaled integer fits 32 bits."""
    scales = zip(*(values.tolist() for values in factors), strict=True)
    return [
        max(LEAST, -(((-LEAST << s) + (1 << s - 1)) // m)) if m else LEAST
        for m, s in scales
    ]


def _lasts(factors: Sequence[IntArray]) -> list[int]:
    """For each factor the greatest."""
    scales = zip(*(values.tolist() for values in factors), strict=True)
    return [
        min(MOST, ((MOST + 1 << s) - (1 << s - 1) - 1) // m) if m else MOST
        for m, s in scales
    ]


def _per_channel(
    graph: TosaBuilder, x: TosaValue, values: Sequence[int] | IntArray
) -> TosaValue:
    """Integers for the channels of x, or one for all."""
    rank = len(x.shape)
    shape = (1,) * (rank - 1) + (len(values),) if rank else ()
    return graph.constant(np.reshape(values, shape), "INT32")


def _stopped(instruction: TosaInstruction, x: TosaValue) -> TosaValue:
    """x less its zero point, stopped at what TOSA scales, per channel."""
    graph = instruction.graph
    scales = zip(instruction.constant(1), instruction.constant(2), strict=True)
    ranges = np.array([_range(int(m), int(s)) for m, s in scales])
    for operator, bounds in (("MAXIMUM", ranges[:, 0]), ("MINIMUM", ranges[:, 1])):  # fmt: skip
        x = _between(graph, operator, x, _per_channel(graph, x, bounds))
    return x


def _between(
    graph: TosaBuilder, operator: str, x: TosaValue, y: TosaValue
) -> TosaValue:
    """MAXIMUM or MINIMUM."""
    return graph.operation(operator, [x, y], "INT32", x.shape, nan_mode=1)


def clamp(instruction: TosaInstruction) -> TosaValue:
    """TOSA has 8 and 16 bits; 32 are its maximum and its minimum."""
    x, graph = instruction.operand(0), instruction.graph
    least, most = instruction.integer("min"), instruction.integer("max")
    if x.element != "INT32":
        width = 1 if x.element == "INT8" else 2
        lower = least.to_bytes(width, "little", signed=True)
        upper = most.to_bytes(width, "little", signed=True)
        return instruction.write(
            "CLAMP", x, min_val=lower, max_val=upper, nan_mode=1
        )
    rank = len(x.shape)
    above = _between(graph, "MAXIMUM", x, graph.splat(least, "INT32", rank))
    return _between(graph, "MINIMUM", above, graph.splat(most, "INT32", rank))


def cast(instruction: TosaInstruction) -> TosaValue:
    """To fewer bits TOSA keeps the low ones, which are all; a byte without sign is the byte with the same bits."""
    x, graph = instruction.operand(0), instruction.graph
    before, after = instruction.types[0].dtype, instruction.result.dtype
    if before == "u8" and after in ("i16", "i32"):
        return graph.cast(widened(graph, x, before), instruction.element)
    return graph.cast(x, instruction.element)


def mul(instruction: TosaInstruction) -> TosaValue:
    """TOSA's, with the shift as an operand. By 63 the result is 1 if both are the least integer, and 0 else."""
    if instruction.integer("shift") == 63:
        return _both_least(instruction)
    shift = instruction.graph.one(instruction.integer("shift"), "INT8")
    return instruction.write("MUL", *instruction.all, shift)


def _both_least(instruction: TosaInstruction) -> TosaValue:
    """Arm's reference model adds the half in 64 bits, which overflow."""
    graph, shape = instruction.graph, instruction.result.shape
    sides = []
    for x in instruction.all:
        least = graph.splat(LEAST, "INT32", len(x.shape))
        sides.append(graph.operation("EQUAL", [x, least], "BOOL", x.shape))
    both = graph.operation("LOGICAL_AND", sides, "BOOL", shape)
    return graph.cast(both, "INT32")


def negate(instruction: TosaInstruction) -> TosaValue:
    """TOSA's, with zero points as operands."""
    x, graph = instruction.operand(0), instruction.graph
    points = [
        graph.one(instruction.integer(name), x.element)
        for name in ("input_zp", "output_zp")
    ]
    return instruction.write("NEGATE", x, *points)


def shift_right(instruction: TosaInstruction) -> TosaValue:
    """TOSA's has the same two roundings."""
    rounds = bool(instruction.integer("round"))
    return instruction.write(
        "ARITHMETIC_RIGHT_SHIFT", *instruction.all, round=rounds
    )


def isqrt(instruction: TosaInstruction) -> TosaValue:
    """Bit by bit from the highest: a bit stays if the square, which is formed where it fits 32 bits, is not above x.

    The roots of the ends of x's interval bound it, which changes no root, so that a reader's proof finds these bounds.
    """
    graph, x = instruction.graph, instruction.operand(0)
    least, greatest = map(math.isqrt, instruction.intervals[0])
    shape, rank = x.shape, len(x.shape)
    root = graph.constant(np.zeros(shape), "INT32")
    most = graph.splat(greatest, "INT32", rank)
    for bit in ROOT_BITS:
        raised = graph.splat(1 << bit, "INT32", rank)
        tried = graph.operation("ADD", [root, raised], "INT32", shape)
        small = graph.operation("GREATER_EQUAL", [most, tried], "BOOL", shape)
        limited = _between(graph, "MINIMUM", tried, most)
        factors = [limited, limited, graph.one(0, "INT8")]
        square = graph.operation("MUL", factors, "INT32", shape)
        below = graph.operation("GREATER_EQUAL", [x, square], "BOOL", shape)
        stays = graph.operation("LOGICAL_AND", [small, below], "BOOL", shape)
        chosen = [stays, limited, root]
        root = graph.operation("SELECT", chosen, "INT32", shape)
    lowest = graph.splat(least, "INT32", rank)
    return _between(graph, "MAXIMUM", root, lowest) if least else root


def table(instruction: TosaInstruction) -> TosaValue:
    """TOSA's from bytes to bytes; a gather of the entry at x less its dtype's least value for others."""
    graph, x = instruction.graph, instruction.operand(0)
    dtype, entries = instruction.types[0].dtype, instruction.constant(1)
    if (x.element, instruction.element) == ("INT8", "INT8"):
        turned = np.roll(entries, 128) if dtype == "u8" else entries
        return instruction.write("TABLE", x, graph.of_array(turned))
    count, least = instruction.types[0].elements, DTYPE_RANGES[dtype][0]
    places = widened(graph, x, dtype)
    start = graph.splat(least, "INT32", len(x.shape))
    places = graph.operation("SUB", [places, start], "INT32", x.shape)
    rows = graph.of_array(entries.reshape(1, -1, 1))
    operands = [rows, graph.reshape(places, (1, count))]
    shape = (1, count, 1)
    looked_up = graph.operation("GATHER", operands, instruction.element, shape)
    return graph.reshape(looked_up, instruction.result.shape)


def interpolate(instruction: TosaInstruction) -> TosaValue:
    """TOSA's table of 16 bits; entries of 8 bits are widened here."""
    points = instruction.constant(1).astype(np.int16)
    entries = instruction.graph.of_array(points)
    return instruction.write("TABLE", instruction.operand(0), entries)
