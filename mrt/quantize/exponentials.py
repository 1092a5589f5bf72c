"""The exponentials of logits below the greatest of their row, by table, and their sum: what softmax and its logarithm share."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.errors import Unsupported
from mrt.exact import enclosed_functions
from mrt.exact.enclosure import Enclosure, rounded
from mrt.exact.precision import HALF, PRECISION, add, exp, multiply
from mrt.graph.canonical_values import name_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, identity
from mrt.quantize.tensor import Format, Tensor

LOGIT_LIMIT = 16383  # 15 bits, so that the difference of two logits fits i16
ONE = 32767  # what exp(0) becomes
MOST_ENTRIES = (
    65538  # their exponentials, at most ONE each, still sum to less than 2^31
)
FEW_ENTRIES = 2048  # of more, those that all but vanish add up to something: they are summed in finer steps
FINE_BITS = 8  # by which these are finer, and by which what is summed in them is smaller than ONE


@dataclass(frozen=True)
class Exponentials:
    """`values` = ONE * exp(`below`), where `below` [.., N] are differences to the greatest of each row, in steps of `scale`."""

    logits: Tensor
    below: Handle
    index: Handle  # the same in i16
    values: Handle

    @property
    def scale(self) -> float:
        """Of logits and differences."""
        return float(self.logits.scale[0])

    @classmethod
    def of(cls, net: LoweringContext, node: ir.Node) -> Exponentials:
        """Of the operand's last axis."""
        x = net.to_float_layout(_logits(net, node))
        emit, axis = net.builder.emit, len(x.layout) - 1
        if net.shape(x)[axis] > MOST_ENTRIES:
            raise Unsupported(
                [
                    f"{node.name} ({node.op_type}): {net.shape(x)[axis]} entries; at most {MOST_ENTRIES} can be proven"
                ]
            )
        wide = emit("cast", x.value, dtype="i32")
        below = emit("sub", wide, emit("reduce_max", wide, axis=axis))
        index = emit("cast", emit("clamp", below, min=-32768, max=0), dtype="i16")
        return cls(
            x,
            below,
            index,
            emit("table", index, net.constant(_table(float(x.scale[0])))),
        )

    def total(self, net: LoweringContext) -> Handle:
        """Their sum [.., 1], at least ONE: the greatest logit gives that."""
        if net.shape(self.logits)[-1] <= FEW_ENTRIES:
            return self._sum(net, self.values)
        emit, shape_of_one = net.builder.emit, [1] * len(self.logits.layout)
        large, small = (
            self._sum(net, emit("table", self.index, net.constant(part)))
            for part in _parts(self.scale)
        )
        # Together they stay below 2^31, which the proof, of each alone, does not know: it is shown by leaving room.
        large = emit("clamp", large, min=0, max=2**31 - 2 ** (31 - FINE_BITS) - 1)
        fine = net.constant(np.full(shape_of_one, FINE_BITS, np.int32))
        return emit("add", large, emit("shift_right", small, fine, round=True))

    def _sum(self, net: LoweringContext, values: Handle) -> Handle:
        return net.builder.emit("reduce_sum", values, axis=len(self.logits.layout) - 1)


def _logits(net: LoweringContext, node: ir.Node) -> Tensor:
    """The logits in 15 bits, straight from the accumulator."""
    source = node.inputs[0]
    wide = net.format_for(name_of(source), 16)
    tensor = net.as_computed(source)
    if not tensor.per_tensor and tensor.layout != identity(len(tensor.layout)):
        tensor = net.requantized(source)
    target = Format("i16", wide.scale * 2, 0, -LOGIT_LIMIT, LOGIT_LIMIT)
    return net.requantize_to(tensor, target, name_of(source))


def _parts(scale: float) -> tuple[IntArray, IntArray]:
    """Tables that add up: of what is at least ONE >> FINE_BITS in full steps, and of all else in finer ones."""
    values, fine = _table(scale), _table(scale, FINE_BITS)
    is_small = fine < ONE
    return np.where(is_small, 0, values).astype(np.int32), np.where(
        is_small, fine, 0
    ).astype(np.int32)


def _table(scale: float, finer: int = 0) -> IntArray:
    """round(2^finer * ONE * exp(scale * d)), at most ONE, for d = -32768..0; above 0, which cannot occur, ONE."""
    step, one = Decimal(scale), ONE << finer

    def exactly(place: int) -> int:
        power = exp(multiply(step, Decimal(place - 32768)))
        nearest = add(multiply(power, Decimal(one)), HALF).to_integral_value(
            "ROUND_FLOOR", PRECISION
        )
        return min(ONE, int(nearest))

    powers = enclosed_functions.exp(
        Enclosure.of(scale) * Enclosure.of(np.arange(-32768, 1))
    )
    values = np.full(65536, ONE, np.int32)
    values[:32769] = rounded(powers * Enclosure.of(one), 0, ONE, exactly)
    return values
