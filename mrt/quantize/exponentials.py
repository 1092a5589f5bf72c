"""Exponentials of logits and their sum, which Softmax and LogSoftmax share.

below  = x - max of the row, at most 0
values = 32767 * exp(below), by straight lines between 512 points
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.errors import Unsupported
from mrt.exact import enclosed_functions
from mrt.exact.enclosure import Enclosure, rounded
from mrt.exact.precision import divide, exp, multiply, round_half_up
from mrt.graph.canonical_values import name_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import (
    Format,
    Tensor,
    identity,
)
from mrt.quantize.wide_tables import (
    SEGMENT,
    Lines,
    emit_entries,
    emit_lines,
)

LOGIT_LIMIT = 16383
"""Logits have 15 bits, so that the difference of two fits i16."""

ONE = 32767
"""The integer of exp(0)."""

MOST_ENTRIES = 65538
"""The sum of so many exponentials of at most ONE each is below 2^31."""

MOST_ENTRIES_SUMMED_AT_ONCE = 2048
"""Longer rows sum small exponentials in finer steps: many small ones together matter."""

SMALLEST = 11.1
"""exp(-SMALLEST) * ONE is less than a half, which rounds to 0."""

TOP = 32640
"""The integer of i16 that stands for a difference of 0: the last of the points but one."""

STEP = 0.00017
"""By how much the logit grows from one integer of the index to the next, unless scales are powers of two.

So all exponentials read the same points: 65408 of these steps reach to SMALLEST.
"""

FINE_STEP_BITS = 8
"""Small exponentials, below ONE / 2^8, are summed in steps 2^8 times as fine."""


@dataclass(frozen=True)
class Exponentials:
    """`values` = ONE * exp(`below`), where `below` [.., N] counts in steps of `scale`.

    `below` holds the differences to the greatest logit of each row.
    """

    logits: Tensor
    below: Handle
    values: Handle

    @property
    def scale(self) -> float:
        """The scale of logits and differences."""
        return float(self.logits.scale[0])

    @classmethod
    def of(cls, net: LoweringContext, node: ir.Node) -> Exponentials:
        """Return the exponentials along the last axis of a node's operand."""
        logits = net.to_float_layout(_logits(net, node))
        entries = net.shape(logits)[-1]
        if entries > MOST_ENTRIES:
            raise Unsupported(
                [
                    f"{node.name} ({node.op_type}): {entries} entries; "
                    f"at most {MOST_ENTRIES} can be proven"
                ]
            )
        emit, axis = net.builder.emit, len(logits.layout) - 1
        integers = emit("cast", logits.value, dtype="i32")
        below = emit("sub", integers, emit("reduce_max", integers, axis=axis))
        return cls(logits, below, _exponentials(net, logits, below))

    def total(self, net: LoweringContext) -> Handle:
        """Return the sum of each row [.., 1]: at least ONE, from the greatest logit."""
        if net.shape(self.logits)[-1] <= MOST_ENTRIES_SUMMED_AT_ONCE:
            return self._sum(net, self.values)
        a = Arithmetic(net.builder, len(self.logits.layout))
        index = _in_16_bits(net, self.below)
        large, small = (
            self._sum(net, emit_entries(net, index, table))
            for table in _large_and_small(self.scale)
        )
        # The proof bounds each sum alone, although not both can be greatest at once.
        # The clamp leaves room for the small ones, so that the sum of both is proven.
        room = 2 ** (31 - FINE_STEP_BITS)
        large = a.clamp(large, 0, 2**31 - room - 1)
        fine_bits = a.number(FINE_STEP_BITS)
        return a.add(large, a.right_by(small, fine_bits))

    def _sum(self, net: LoweringContext, values: Handle) -> Handle:
        return net.builder.emit(
            "reduce_sum", values, axis=len(self.logits.layout) - 1
        )


def _exponentials(
    net: LoweringContext, logits: Tensor, below: Handle
) -> Handle:
    """Return ONE * exp(below) in i32, by lines if these are close.

    Differences that matter are spread over as much of i16 as a whole factor can.
    """
    scale = float(logits.scale[0])
    entries = _table(scale)
    steps = round(scale / STEP)
    # A much greater scale equals such a product by chance, since floats are far apart there.
    is_shared = scale <= SMALLEST and steps * STEP == scale
    factor = steps if is_shared else _factor(scale)
    least = -((TOP + 32768) // factor)
    points = _points(STEP, 1) if is_shared else _points(scale, factor)
    lines = Lines(points, 1.0, "i32")
    differences = np.arange(max(least, -32768), 1)
    occurring = entries[differences + 32768]
    if not lines.are_close(TOP + factor * differences, occurring):
        return emit_entries(net, _in_16_bits(net, below), entries)
    a = Arithmetic(net.builder, len(logits.layout))
    spread = a.clamp(below, least, 0)
    if factor > 1:
        spread = a.mul(spread, a.number(factor))
    index = net.builder.emit("cast", a.add_number(spread, TOP), dtype="i16")
    return emit_lines(net, index, lines)


def _in_16_bits(net: LoweringContext, below: Handle) -> Handle:
    clamped = net.builder.emit("clamp", below, min=-32768, max=0)
    return net.builder.emit("cast", clamped, dtype="i16")


def _factor(scale: float) -> int:
    """Return how many integers of the index a difference of 1 takes."""
    differences = int(SMALLEST / scale) + 1
    return max(1, (TOP + 32768) // differences)


def _logits(net: LoweringContext, node: ir.Node) -> Tensor:
    """Return the logits in 15 bits, straight from the accumulator."""
    logits = node.inputs[0]
    format_of_16_bits = net.format_for(name_of(logits), 16)
    tensor = net.as_computed(logits)
    if not tensor.per_tensor and tensor.layout != identity(len(tensor.layout)):
        tensor = net.requantized(logits)
    scale = _shared(format_of_16_bits.scale * 2, net.options.scales)
    target = Format("i16", scale, 0, -LOGIT_LIMIT, LOGIT_LIMIT)
    return net.requantize_to(tensor, target, name_of(logits))


def _shared(scale: float, scales: str) -> float:
    """Return the next greater scale that is a multiple of the step, if that can serve the logits."""
    steps = math.ceil(scale / STEP)
    return scale if scales == "shift" or scale > SMALLEST else steps * STEP


def _large_and_small(scale: float) -> tuple[IntArray, IntArray]:
    """Return two tables that add up to the exponentials.

    The first has those of at least ONE / 2^8 in steps of 1 / ONE, the second all others in
    steps 2^8 times as fine.
    """
    values, fine_values = _table(scale), _table(scale, FINE_STEP_BITS)
    is_small = fine_values < ONE
    large = np.where(is_small, 0, values).astype(np.int32)
    small = np.where(is_small, fine_values, 0).astype(np.int32)
    return large, small


def _points(scale: float, factor: int) -> IntArray:
    """round(ONE * exp(scale / factor * (128 k - 65408))) for k = 0 .. 511, and ONE once more, which no index needs."""
    step = divide(Decimal(scale), Decimal(factor))

    def exactly(place: int) -> int:
        power = exp(multiply(step, Decimal(SEGMENT * place - 65408)))
        return int(round_half_up(multiply(power, Decimal(ONE))))

    differences = SEGMENT * np.arange(512) - 65408
    powers = enclosed_functions.exp(
        Enclosure.of(scale) * Enclosure.of(differences) / Enclosure.of(factor)
    )
    points = rounded(powers * Enclosure.of(ONE), 0, ONE, exactly)
    return np.append(points, ONE)


def _table(scale: float, finer: int = 0) -> IntArray:
    """round(2^finer * ONE * exp(scale * d)), at most ONE, for d = -32768 .. 0.

    The entries for d > 0, which cannot occur, are ONE.
    """
    step, one = Decimal(scale), ONE << finer

    def exactly(place: int) -> int:
        power = exp(multiply(step, Decimal(place - 32768)))
        nearest = round_half_up(multiply(power, Decimal(one)))
        return min(ONE, int(nearest))

    differences = np.arange(-32768, 1)
    logits = Enclosure.of(scale) * Enclosure.of(differences)
    powers = enclosed_functions.exp(logits)
    values = np.full(65536, ONE, np.int32)
    values[:32769] = rounded(powers * Enclosure.of(one), 0, ONE, exactly)
    return values
