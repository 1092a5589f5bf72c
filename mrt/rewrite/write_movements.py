"""Transpose, Concat and Slice say every axis, counted from the front."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import (
    Patch,
    constant_integers,
    first,
    integer,
    integers,
    nodes,
    operand,
    rank_of,
    set_attributes,
    shape_of,
)


def write_movements(model: ir.Model) -> int:
    """Transpose with perm, Concat with axis >= 0, Slice with starts, ends, axes and steps inside the dimensions.

    Applies where shapes are known, and a Slice's operands constant with positive steps. Always equal.
    """
    return sum(_WRITERS[node.op_type](node) for node in nodes(model, *_WRITERS) if rank_of(node.inputs[0]) is not None)


def _write_transpose(node: ir.Node) -> bool:
    if integers(node, "perm") is not None:
        return False
    set_attributes(node, perm=tuple(reversed(range(rank_of(first(node)) or 0))))
    return True


def _write_concat(node: ir.Node) -> bool:
    axis = integer(node, "axis", 0)
    if axis >= 0:
        return False
    set_attributes(node, axis=axis + (rank_of(first(node)) or 0))
    return True


def _write_slice(node: ir.Node) -> bool:
    shape = shape_of(first(node)) or ()
    given = [constant_integers(operand(node, index)) for index in range(1, 5)]
    starts, ends = given[0], given[1]
    if starts is None or ends is None or (operand(node, 3) and given[2] is None) or (operand(node, 4) and not given[3]):
        return False
    axes = tuple(axis % len(shape) for axis in given[2]) if given[2] is not None else tuple(range(len(starts)))
    steps = given[3] or (1,) * len(starts)
    if min(steps, default=1) < 1:
        return False
    spans = {axis: slice(s, e, t).indices(shape[axis]) for s, e, axis, t in zip(starts, ends, axes, steps, strict=True)}
    wanted = tuple(zip(*((s, max(s, e), axis, t) for axis, (s, e, t) in sorted(spans.items())), strict=True))
    if tuple(given) == wanted:
        return False
    patch = Patch(node)
    roles = ("starts", "ends", "axes", "steps")
    operands = [patch.constant(np.array(part, np.int64), role) for part, role in zip(wanted, roles, strict=True)]
    patch.finish(patch.add("Slice", first(node), *operands))
    return True


_WRITERS = {"Transpose": _write_transpose, "Concat": _write_concat, "Slice": _write_slice}
