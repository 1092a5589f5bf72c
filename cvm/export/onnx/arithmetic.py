"""Element by element: arithmetic, scale, logic. 32 bits where the proof leaves room, 64 in between elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.export.onnx.graph import NUMPY_NAMES, OnnxGraph
from cvm.export.onnx.instruction import OnnxInstruction
from cvm.program import DTYPE_RANGES, IntArray

Writer = Callable[[OnnxInstruction], str]


def plain(operator: str, dtype: str, result: str = "") -> Writer:
    """One node over all operands in this dtype, in which the proof lets its result fit."""

    def write(instruction: OnnxInstruction) -> str:
        operands = [
            instruction.operand(index, dtype)
            for index in range(len(instruction.operands))
        ]
        return instruction.graph.node(
            operator, *operands, dtype=result or dtype
        )

    return write


def cast(instruction: OnnxInstruction) -> str:
    """The driver casts every result to its dtype: nothing is left to do."""
    return instruction.operand(0)


def clamp(instruction: OnnxInstruction) -> str:
    """min(max(x, min), max)."""
    least, most = instruction.integer("min"), instruction.integer("max")
    return clipped(instruction.graph, with_kernel(instruction, 0), least, most)


def with_kernel(instruction: OnnxInstruction, index: int) -> str:
    """An operand as it is, or in 32 bits if it has 16, for which most operators have no kernel."""
    dtype = instruction.types[index].dtype
    return instruction.operand(index, "i32" if dtype == "i16" else dtype)


def clipped(graph: OnnxGraph, x: str, least: int, most: int) -> str:
    """Clip has kernels for 8, 32 and 64 bits."""
    dtype = graph.dtypes[x]
    bounds = graph.number(least, dtype), graph.number(most, dtype)
    return graph.node("Clip", x, *bounds)


def saturated(graph: OnnxGraph, x: str, dtype: str) -> str:
    """Stop at the ends of a dtype."""
    return clipped(graph, x, *DTYPE_RANGES[dtype])


def floor_shift(graph: OnnxGraph, x: str, shift: IntArray) -> str:
    """floor(x / 2^shift) of any 64-bit x, shift in 1..63: BitShift takes unsigned integers, so x moves up by 2^63."""
    top = graph.number(2**63, "u64")
    unsigned = graph.node("BitwiseXor", graph.cast(x, "u64"), top)
    amount = graph.constant(shift.astype(np.uint64))
    moved = graph.node("BitShift", unsigned, amount, direction="RIGHT")
    back = np.left_shift(np.uint64(1), (63 - shift).astype(np.uint64))
    # 2^(63 - shift) is at most 2^62
    lowered = graph.constant(back.astype(np.int64))
    return graph.node("Sub", graph.cast(moved, "i64"), lowered)


def shift_half_up(graph: OnnxGraph, x: str, shift: IntArray) -> str:
    """floor(x / 2^shift + 1/2), for x at most 2^62 in size and shift in 1..62."""
    half = graph.constant(
        np.left_shift(np.int64(1), shift.astype(np.int64) - 1)
    )
    return floor_shift(graph, graph.node("Add", x, half), shift)


def rescale(instruction: OnnxInstruction) -> str:
    """The product is below 2^62 in size, half of 2^shift at most 2^61: both fit 64 bits."""
    graph, zero_point = instruction.graph, instruction.integer("input_zp")
    multiplier, shift = (
        instruction.constant(index).astype(np.int64) for index in (1, 2)
    )
    if multiplier.size == 1:
        multiplier, shift = multiplier.reshape(()), shift.reshape(())
    if _leaves_a_bit(instruction, multiplier, shift):
        return _rescale_short(instruction, multiplier, shift)
    x = instruction.operand(0, "i64")
    if zero_point:
        x = graph.node("Sub", x, graph.number(zero_point, "i64"))
    product = graph.node("Mul", x, graph.constant(multiplier))
    scaled = shift_half_up(graph, product, shift)
    if output_zp := instruction.integer("output_zp"):
        scaled = graph.node("Add", scaled, graph.number(output_zp, "i64"))
    return saturated(graph, scaled, instruction.result.dtype)


def _leaves_a_bit(
    instruction: OnnxInstruction, multiplier: IntArray, shift: IntArray
) -> bool:
    """Whether product and half stay below 2^62 in size, by the proven interval of x."""
    zero_point = instruction.integer("input_zp")
    size = max(abs(end - zero_point) for end in instruction.intervals[0])
    half = 1 << (int(shift.max()) - 1)
    return size * int(multiplier.max()) + half < 2**62


def _rescale_short(
    instruction: OnnxInstruction, multiplier: IntArray, shift: IntArray
) -> str:
    """Both zero points, the half and the 2^62 that makes it positive are added in two sums.

    2^62 is a multiple of 2^shift. Shifted by 32 or more, what is below 2^63 fits 32 bits.
    """
    graph = instruction.graph
    half = np.left_shift(np.int64(1), shift - 1)
    added = 2**62 + half - instruction.integer("input_zp") * multiplier
    product = graph.node(
        "Mul", instruction.operand(0, "i64"), graph.constant(multiplier)
    )
    positive = graph.node("Add", product, graph.constant(added))
    amount = graph.constant(shift.astype(np.uint64))
    moved = graph.node(
        "BitShift", graph.cast(positive, "u64"), amount, direction="RIGHT"
    )
    dtype = "i32" if shift.min() >= 32 else "i64"
    back = np.right_shift(np.int64(2**62), shift) - instruction.integer(
        "output_zp"
    )
    lowered = graph.constant(back.astype(NUMPY_NAMES[dtype]))
    scaled = graph.node("Sub", graph.cast(moved, dtype), lowered)
    return saturated(graph, scaled, instruction.result.dtype)


def mul(instruction: OnnxInstruction) -> str:
    """A product without a shift fits 32 bits by proof. By 63 bits the shift takes two steps, as SPEC's text on mul does."""
    graph, shift = instruction.graph, instruction.integer("shift")
    if not shift:
        return plain("Mul", "i32")(instruction)
    product = plain("Mul", "i64")(instruction)
    if shift < 63:
        return shift_half_up(graph, product, np.array(shift))
    most = floor_shift(graph, product, np.array(62))
    return shift_half_up(graph, most, np.array(1))


def negate(instruction: OnnxInstruction) -> str:
    """input_zp - x + output_zp; i8 saturates."""
    zero_points = instruction.integer("input_zp") + instruction.integer(
        "output_zp"
    )
    graph = instruction.graph
    number = graph.number(zero_points, "i32")
    negative = graph.node("Sub", number, instruction.operand(0, "i32"))
    if instruction.result.dtype != "i8":
        return negative
    return saturated(graph, negative, "i8")


def _power(instruction: OnnxInstruction) -> str:
    """2^s, unsigned."""
    graph = instruction.graph
    one = graph.number(1, "u64")
    return graph.node(
        "BitShift", one, instruction.operand(1, "u64"), direction="LEFT"
    )


def shift_left(instruction: OnnxInstruction) -> str:
    """x * 2^s, below 2^62 in size."""
    power = instruction.graph.cast(_power(instruction), "i64")
    return instruction.graph.node("Mul", instruction.operand(0, "i64"), power)


def shift_right(instruction: OnnxInstruction) -> str:
    """floor(x / 2^s), or with half of 2^s added first. 2^31 is a multiple of every 2^s, so x can move up by it."""
    graph, x = instruction.graph, instruction.operand(0, "i64")
    amount, top = instruction.operand(1, "u64"), graph.number(2**31, "u64")
    if instruction.integer("round"):
        one = graph.number(1, "u64")
        half = graph.node(
            "BitShift", _power(instruction), one, direction="RIGHT"
        )
        x = graph.node("Add", x, graph.cast(half, "i64"))
    raised = graph.node("Add", x, graph.number(2**31, "i64"))
    moved = graph.node(
        "BitShift", graph.cast(raised, "u64"), amount, direction="RIGHT"
    )
    back = graph.node("BitShift", top, amount, direction="RIGHT")
    return graph.node("Sub", graph.cast(moved, "i64"), graph.cast(back, "i64"))


def clz(instruction: OnnxInstruction) -> str:
    """32 less the number of powers of two that x reaches; 0 below zero."""
    graph, x = instruction.graph, instruction.operand(0)
    column = graph.reshape(x, (*instruction.result.shape, 1))
    powers = graph.constant(2 ** np.arange(31, dtype=np.int32))
    reached = graph.node("GreaterOrEqual", column, powers, dtype="bool")
    length = graph.node(
        "ReduceSum",
        graph.cast(reached, "i32"),
        graph.integers([-1]),
        keepdims=0,
    )
    zero = graph.number(0, "i32")
    zeros = graph.node("Sub", graph.number(32, "i32"), length)
    negative = graph.node("Greater", zero, x, dtype="bool")
    return graph.node("Where", negative, zero, zeros, dtype="i32")


def isqrt(instruction: OnnxInstruction) -> str:
    """Bit by bit from the highest: a bit stays unless the square exceeds x. Squares need 33 bits."""
    graph, x = instruction.graph, instruction.operand(0, "i64")
    root = graph.node("Mul", x, graph.number(0, "i64"))
    for bit in range(15, -1, -1):
        larger = graph.node("Add", root, graph.number(1 << bit, "i64"))
        square = graph.node("Mul", larger, larger)
        exceeds = graph.node("Greater", square, x, dtype="bool")
        root = graph.node("Where", exceeds, root, larger, dtype="i64")
    return root


def select(instruction: OnnxInstruction) -> str:
    """Where has kernels for i8 and i32, not for bool and i16."""
    dtype = {"bool": "i8", "i16": "i32"}.get(
        instruction.result.dtype, instruction.result.dtype
    )
    branches = instruction.operand(1, dtype), instruction.operand(2, dtype)
    return instruction.graph.node(
        "Where", instruction.operand(0), *branches, dtype=dtype
    )


def table(instruction: OnnxInstruction) -> str:
    """Gather from the table by x less the least value of its dtype."""
    graph, x = instruction.graph, instruction.operand(0, "i32")
    least = DTYPE_RANGES[instruction.types[0].dtype][0]
    if least:
        x = graph.node("Sub", x, graph.number(least, "i32"))
    return graph.node("Gather", instruction.operand(1), x)


def interpolate(instruction: OnnxInstruction) -> str:
    """Gather the start of the line and its rise, for the nine high bits of x + 32768; the seven low bits count steps."""
    graph, points = instruction.graph, instruction.constant(1).astype(np.int32)
    raised = graph.node(
        "Add", instruction.operand(0, "i32"), graph.number(32768, "i32")
    )
    segment = graph.number(128, "i32")
    index = graph.node("Div", raised, segment)
    rest = graph.node("Mod", raised, segment)
    start = graph.node("Gather", graph.constant(points[:-1] * 128), index)
    rise = graph.node("Gather", graph.constant(np.diff(points)), index)
    return graph.node("Add", start, graph.node("Mul", rest, rise))
