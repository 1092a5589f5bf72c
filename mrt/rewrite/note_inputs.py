"""What the inputs that hold whole numbers are for is written on them, for calibration and quantisation to read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import constant, first, integer, operand, shape_of

INDICES, COMPARED = "mrt.indices", "mrt.compared"
_MOVES = ("Cast", "Floor", "Clip", "Reshape", "Transpose", "Slice", "Concat")
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")

Use = tuple[
    ir.Node, int, bool
]  # a reader, which of its operands it is, whether the value was cut to a whole number before


def note_inputs(model: ir.Model) -> int:
    """Write "mrt.indices" on an input that looks things up, "mrt.compared" on one that is held against constants.

    "0 99" are the places of an axis of 100; and of the constants it says the least and the greatest.
    An input of floats is one of indices if it does nothing else; one of an integer type if it looks up anything.
    """
    count = 0
    for value in model.graph.inputs:
        uses = list(_uses(value, cut=value.dtype != ir.DataType.FLOAT))
        sizes = [size for use in uses if (size := _size(*use)) is not None]
        only = len(sizes) == len(uses)
        if sizes and (only or value.dtype != ir.DataType.FLOAT):
            value.metadata_props[INDICES] = f"0 {min(sizes) - 1}"
            count += 1
        ends = [end for use in uses for end in _held_against(*use)]
        if ends and value.dtype != ir.DataType.FLOAT:
            value.metadata_props[COMPARED] = f"{min(ends)} {max(ends)}"
            count += 1
    return count


def _uses(value: ir.Value, *, cut: bool) -> Iterator[Use]:
    """The readers of a value and of what only moves it, or cuts it to whole numbers."""
    for use in value.uses():
        node = use.node
        if node.op_type in _MOVES and use.idx == 0 and not node.outputs[0].is_graph_output():
            yield from _uses(node.outputs[0], cut=cut or node.op_type in ("Cast", "Floor"))
        else:
            yield node, use.idx, cut


def _size(node: ir.Node, place: int, cut: bool) -> int | None:
    """How long the axis is in which a reader looks this operand up."""
    if node.op_type not in ("Gather", "GatherElements") or place != 1 or not cut:
        return None
    shape = shape_of(first(node))
    return None if shape is None else shape[integer(node, "axis", 0)]


def _held_against(node: ir.Node, place: int, cut: bool) -> Iterator[int]:
    array = constant(operand(node, 1)) if node.op_type in _COMPARISONS and place == 0 and cut else None
    if array is not None and array.size:
        yield int(np.floor(array.min()).clip(-(2**31), 2**31 - 1))
        yield int(np.ceil(array.max()).clip(-(2**31), 2**31 - 1))
