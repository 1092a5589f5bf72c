"""Writes in an input's metadata what its integers index or are compared with.

Calibration and quantization read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.notes import indices_of, set_compared, set_indices
from mrt.graph.operators import COMPARISONS, LOOKUPS, MOVEMENT
from mrt.graph.values import constant, first, int_attribute, operand, shape_of
from mrt.rewrite.canonical import INTEGER_NUMBERS

INTEGERS: frozenset[ir.DataType | None] = frozenset(INTEGER_NUMBERS)
# Pad is not among them: it adds elements of its own.
_MOVES = (MOVEMENT - {"Pad"}) | {"Cast", "Floor", "Clip"}


@dataclass(frozen=True)
class Use:
    """A reader of a value.

    `place` is the operand that the value is. `cut`, `clipped` and `sliced` are whether
    it was cast to an integer, clipped or cut to a part before.
    """

    node: ir.Node
    place: int
    cut: bool
    clipped: bool
    sliced: bool


def note_inputs(model: ir.Model) -> int:
    """Write "mrt.indices" on inputs used as indices, "mrt.compared" on compared ones.

    "mrt.indices" has the interval of the indices: "-100 99" for an axis of 100, counted
    from the end or the front, "0 99" where a Clip comes first. Of an input whose slices
    are looked up in axes of 100 and 300 it is "-100 299": each slice has its own axis,
    and 0..99 suits them all. "mrt.compared" has the least and the greatest constant that
    the input is compared with.

    A float input has "mrt.indices" if it is used for nothing else, an integer input if
    it is used as an index at all. A float input that every reader casts to integers is
    taken to be integral: it gets "mrt.compared", with "0 0" where it is compared with
    nothing.
    """
    count = 0
    for value in model.graph.inputs:
        uses = list(_uses(value, cut=value.dtype != ir.DataType.FLOAT))
        sizes = [size for use in uses if (size := _size(use)) is not None]
        only = len(sizes) == len(uses)
        if sizes and (only or value.dtype != ir.DataType.FLOAT):
            from_behind = not any(use.clipped for use in uses)
            low = -min(sizes) if from_behind else 0
            set_indices(value, (low, _longest(uses) - 1))
            count += 1
        ends = [end for use in uses for end in _held_against(use)]
        cut = bool(uses) and all(_is_of_integer_numbers(use) for use in uses)
        if (cut or (ends and value.dtype != ir.DataType.FLOAT)) and indices_of(
            value
        ) is None:
            set_compared(value, (min(ends, default=0), max(ends, default=0)))
            count += 1
    return count


def _longest(uses: list[Use]) -> int:
    """Return the size of the longest axis in which an element of the value may be looked up."""
    sizes = [
        (use.sliced, size) for use in uses if (size := _size(use)) is not None
    ]
    of_all = [size for sliced, size in sizes if not sliced]
    return min(of_all, default=max(size for _, size in sizes))


def _uses(value: ir.Value, *, cut: bool) -> Iterator[Use]:
    """List the readers of a value, looking through movement, casts and clips.

    Each value is visited once for each way in which it was changed, without recursion:
    chains may be long, and their branches may meet again.
    """
    waiting = [(value, cut, False, False)]
    visited = set(waiting)
    while waiting:
        value, cut, clipped, sliced = waiting.pop()
        for use in value.uses():
            node = use.node
            moved = node.outputs[0]
            if (
                node.op_type not in _MOVES
                or use.idx != 0
                or moved.is_graph_output()
            ):
                yield Use(node, use.idx, cut, clipped, sliced)
                continue
            now_cut = cut or moved.dtype in INTEGERS
            now_clipped = clipped or node.op_type == "Clip"
            now_sliced = sliced or node.op_type == "Slice"
            behind = (moved, now_cut, now_clipped, now_sliced)
            if behind not in visited:
                visited.add(behind)
                waiting.append(behind)


def _is_of_integer_numbers(use: Use) -> bool:
    """Whether a reader computes with integers.

    A reader that casts back to floats may use the cast to truncate any number.
    """
    operand_read = use.node.inputs[use.place]
    return (
        use.cut
        and operand_read is not None
        and operand_read.dtype in INTEGERS
        and use.node.op_type != "Cast"
    )


def _size(use: Use) -> int | None:
    """Return the size of the axis in which a reader looks this operand up, or None."""
    if use.node.op_type not in LOOKUPS or use.place != 1 or not use.cut:
        return None
    shape = shape_of(first(use.node))
    return None if shape is None else shape[int_attribute(use.node, "axis", 0)]


def _held_against(use: Use) -> Iterator[int]:
    compared = use.node.op_type in COMPARISONS and use.place == 0 and use.cut
    array = constant(operand(use.node, 1)) if compared else None
    if array is not None and array.size:
        yield int(np.floor(array.min()).clip(-(2**31), 2**31 - 1))
        yield int(np.ceil(array.max()).clip(-(2**31), 2**31 - 1))
