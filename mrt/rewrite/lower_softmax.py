"""Softmax works on the last axis; LogSoftmax is its logarithm."""

from __future__ import annotations

import onnx_ir as ir

from mrt.rewrite.edit import Patch, first, integer, nodes, rank_of, set_attributes


def lower_softmax(model: ir.Model) -> int:
    """Softmax(axis=a) -> Transpose, Softmax(axis=last), Transpose; LogSoftmax -> Log(Softmax).

    Applies where the rank is known. A Softmax whose axis is last only gets it written from the front. Equal; the
    logarithm of a Softmax below the smallest float32 is -inf where LogSoftmax is about -103 or less.
    """
    count = 0
    for node in nodes(model, "Softmax", "LogSoftmax"):
        rank = rank_of(first(node))
        if not rank:
            continue
        axis, last = integer(node, "axis", -1) % rank, rank - 1
        if node.op_type == "LogSoftmax":
            patch = Patch(node)
            patch.finish(patch.add("Log", patch.add("Softmax", first(node), axis=axis)))
        elif axis != last:
            swap = tuple({axis: last, last: axis}.get(index, index) for index in range(rank))
            patch = Patch(node)
            turned = patch.add("Transpose", first(node), perm=swap)
            patch.finish(patch.add("Transpose", patch.add("Softmax", turned, axis=last), perm=swap))
        elif integer(node, "axis", -1) != last:
            set_attributes(node, axis=last)
        else:
            continue
        count += 1
    return count
