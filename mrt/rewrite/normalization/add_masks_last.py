"""Adds a mask to the logits after everything else.

Its sum with a bias or another mask would have a coarse scale.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.masked_logits import holds_mask
from mrt.graph.operators import REARRANGEMENTS
from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    nodes,
    producer,
    shape_of,
    source_of_moves,
)

_MOVEMENT = REARRANGEMENTS | {"Slice", "Expand"}


def add_masks_last(model: ir.Model) -> int:
    """Add(x, Add(m, fills)) -> Add(Add(x, m), fills).

    Applies where x has the shape of the result and is no mask itself, and m is computed, but is not a Where, or
    m is a constant bias and the fills are a computed mask, as the relative positions and
    the padding of T5. Equal up to rounding.
    """
    count = 0
    for node in nodes(model, "Add"):
        for index in (0, 1):
            inner = producer(node.inputs[index], "Add")
            x = node.inputs[1 - index]
            parts = (
                None
                if inner is None or constant(x) is not None
                else _parts(inner)
            )
            if (
                parts is None
                or x is None
                or shape_of(x) is None
                or shape_of(x) != shape_of(node.outputs[0])
                or _is_computed_mask(x)
            ):
                continue
            patch = Patch(node)
            patch.finish(
                patch.add("Add", patch.add("Add", x, parts[0]), parts[1])
            )
            count += 1
            break
    return count


def _parts(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """Return the operand that is added first, and the one that masks, if one does."""
    for index in (0, 1):
        computed, other = node.inputs[index], node.inputs[1 - index]
        if computed is None or other is None or constant(computed) is not None:
            continue
        if holds_mask(other):
            return None if producer(computed, "Where") else (computed, other)
        if constant(other) is not None and _is_computed_mask(computed):
            return other, computed
    return None


def _is_computed_mask(value: ir.Value) -> bool:
    """Whether the value is 0 or a number that masks, such as (1 - m) * -1e9, perhaps moved."""
    source = source_of_moves(value, _MOVEMENT)
    node = producer(source, "Add", "Mul", "Where")
    return node is not None and any(map(holds_mask, node.inputs))
