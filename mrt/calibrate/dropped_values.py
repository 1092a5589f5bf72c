"""Finds values of which a part is dropped: by a Where, or by pooling for the greatest or the least.

What a Where drops may be NaN or infinite, as Log(x) in Where(x > 0, Log(x), 0); the fill of
Where(mask, -inf, x) in front of a ReduceMax is minus infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.calibrate.observed_tensor import Array
from mrt.graph.operators import MOVEMENT, REARRANGEMENTS

# Operators whose result is infinite or NaN where an operand is. Others may stop an
# infinity, as Exp(-inf) = 0 and 1 / inf = 0, or take NaN for a number.
_KEEP_BOTH = (MOVEMENT - {"Pad"}) | {"Abs", "Add", "Cast", "Log", "Mul", "Neg"}
_KEEP_BOTH |= {"Sqrt", "Sub"}
_KEEP_NAN = _KEEP_BOTH | {
    "Atan",
    "Cos",
    "Exp",
    "Reciprocal",
    "Sigmoid",
    "Sin",
    "Tanh",
}
_WHERE = {"Where": 1}
_POOLING = {"MaxPool": 0, "ReduceMax": 0, "ReduceMin": 0}
"""The operators that drop a part, and the first operand of which they do."""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


@dataclass(frozen=True)
class DroppedValues:
    """Names of values that may be NaN, and of those that may be infinite, since that is dropped."""

    nan: frozenset[str] = frozenset()
    infinity: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: ir.Model) -> DroppedValues:
        """Follow the readers of every value to those behind them that drop a part."""
        moved = REARRANGEMENTS | {"Slice"}
        return cls(
            _dropped(model, _KEEP_NAN, _WHERE, of_div=(0, 1)),
            _dropped(model, _KEEP_BOTH, _WHERE, of_div=(0,))
            | _dropped(model, moved, _POOLING, of_div=()),
        )

    def finite(self, name: str, numbers: Array) -> Array:
        """Return the numbers of a value with finite ones of them in the place of those that may be dropped.

        0 if there is none. If a reader does not drop them after all, its own result is
        not finite.
        """
        nan, infinity = name in self.nan, name in self.infinity
        if not (nan or infinity) or numbers.dtype.kind != "f":
            return numbers
        finite = np.isfinite(numbers)
        if finite.all():
            return numbers
        dropped = (np.isnan(numbers) & nan) | (np.isinf(numbers) & infinity)
        some = numbers[finite][0] if finite.any() else numbers.dtype.type(0)
        return np.where(dropped, some, numbers)


def _dropped(
    model: ir.Model,
    keeping: frozenset[str],
    dropping: Mapping[str, int],
    of_div: tuple[int, ...],
) -> frozenset[str]:
    """Return the values whose every reader drops a part, or keeps what is not finite for one that does.

    A Div keeps it of the operands `of_div`.
    """
    dropped: set[ir.Value] = set()

    def leads_to_drop(reader: ir.Node, place: int) -> bool:
        if reader.op_type in dropping:
            return place >= dropping[reader.op_type]
        if reader.op_type == "Div" and place not in of_div:
            return False
        keeps = reader.op_type == "Div" or reader.op_type in keeping
        return keeps and reader.outputs[0] in dropped

    for node in reversed(model.graph):
        for value in node.outputs:
            if value.is_graph_output() or value.dtype not in _FLOATS:
                continue
            readers = [(use.node, use.idx) for use in value.uses()]
            if readers and all(leads_to_drop(*reader) for reader in readers):
                dropped.add(value)
    return frozenset(str(value.name) for value in dropped)
