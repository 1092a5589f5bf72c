"""How large a model may be: every later step takes time and memory for each node and each number."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.graph.values import MOST_ELEMENTS, shape_of

MOST_NODES = 1 << 16
COUNTING = "a node of more than 32 operands counts as several"


def weight(operands: int) -> int:
    """Return what a node counts; operands are replaced one by one, in time that grows as their square."""
    return 1 + (operands // 32) ** 2


def refuse_large_values(model: ir.Model) -> None:
    """Raise BadModel, before anything is computed, if an input or a computed value is too large."""
    for value in model.graph.inputs:
        hint = f": give a smaller --shape {value.name}=..."
        _require_small(value, f"input '{value.name}'", hint)
    for node in model.graph:
        for value in node.outputs:
            _require_small(value, f"'{value.name}' ({node.op_type})")


def _require_small(value: ir.Value, what: str, hint: str = "") -> None:
    shape = shape_of(value)
    if shape is not None and math.prod(shape) > MOST_ELEMENTS:
        raise BadModel(
            f"{what} has the shape {list(shape)}, {math.prod(shape)} numbers; "
            f"a value has at most {MOST_ELEMENTS}{hint}"
        )
