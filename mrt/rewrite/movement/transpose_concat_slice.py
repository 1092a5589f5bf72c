"""Canonicalizes Transpose, Concat and Slice: axes from the front, nothing implied."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    rank_of,
    shape_of,
)
from mrt.rewrite.canonical_operators import BACKWARDS
from mrt.rewrite.lookup.argmax_topk import reversed_axis


def canonicalize_transpose_concat_slice(model: ir.Model) -> int:
    """Transpose -> with perm; Concat -> with axis >= 0; Slice -> with all operands.

    The starts and ends of a Slice lie inside the dimensions, its axes are counted from
    the front and its steps are positive. A negative step becomes a positive one and a
    Slice that reverses the axis. Applies where shapes are known and a Slice's operands
    constant. Always equal.
    """
    return sum(
        _WRITERS[node.op_type](node)
        for node in nodes(model, *_WRITERS)
        if rank_of(node.inputs[0]) is not None
    )


def _write_transpose(node: ir.Node) -> bool:
    if ints_attribute(node, "perm") is not None:
        return False
    set_attributes(node, perm=tuple(reversed(range(rank_of(first(node)) or 0))))
    return True


def _write_concat(node: ir.Node) -> bool:
    axis, rank = int_attribute(node, "axis", 0), rank_of(first(node)) or 0
    if not -rank <= axis < 0:
        return False
    set_attributes(node, axis=axis + rank)
    return True


def _write_slice(node: ir.Node) -> bool:
    shape = shape_of(first(node)) or ()
    written = [constant_integers(operand(node, index)) for index in range(1, 5)]
    starts, ends = written[0], written[1]
    if (
        starts is None
        or ends is None
        or (operand(node, 3) and written[2] is None)
        or (operand(node, 4) and not written[3])
    ):
        return False
    axes = (
        tuple(axis % len(shape) for axis in written[2])
        if written[2] is not None
        else tuple(range(len(starts)))
    )
    steps = written[3] or (1,) * len(starts)
    if min(steps, default=1) < 1:
        return _step_forward(node, starts, ends, axes, steps)
    spans = {
        axis: slice(s, e, t).indices(shape[axis])
        for s, e, axis, t in zip(starts, ends, axes, steps, strict=True)
    }
    canonical = tuple(
        zip(
            *(
                (s, max(s, e), axis, t)
                for axis, (s, e, t) in sorted(spans.items())
            ),
            strict=True,
        )
    )
    if tuple(written) == canonical:
        return False
    patch = Patch(node)
    roles = ("starts", "ends", "axes", "steps")
    operands = [
        patch.constant(np.array(numbers, np.int64), role)
        for numbers, role in zip(canonical, roles, strict=True)
    ]
    patch.finish(patch.add("Slice", first(node), *operands))
    return True


def _step_forward(node: ir.Node, *parts: tuple[int, ...]) -> bool:
    """Take the same elements by positive steps, then reverse their axes one by one."""
    shape = shape_of(first(node)) or ()
    if parts[3] == (-1,) and parts[0] == (-1,) and parts[1] == (BACKWARDS,):
        return False
    patch, forward, backwards = Patch(node), [], []
    for start, end, axis, step in zip(*parts, strict=True):
        places = range(*slice(start, end, step).indices(shape[axis]))
        if not places:
            return False
        if step < 0:
            backwards.append(axis)
            places = places[::-1]
        forward.append((places[0], places[-1] + 1, axis, places.step))
    roles = ("starts", "ends", "axes", "steps")
    operands = [
        patch.axes(list(numbers), role)
        for numbers, role in zip(zip(*forward, strict=True), roles, strict=True)
    ]
    value = patch.add("Slice", first(node), *operands)
    for axis in backwards:
        value = reversed_axis(patch, value, axis)
    patch.finish(value)
    return True


_WRITERS = {
    "Transpose": _write_transpose,
    "Concat": _write_concat,
    "Slice": _write_slice,
}
