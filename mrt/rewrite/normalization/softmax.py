"""Canonicalizes Softmax and LogSoftmax to the last axis."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import first, int_attribute, nodes, rank_of


def lower_softmax(model: ir.Model) -> int:
    """Softmax(axis=a) -> Transpose, Softmax(axis=last), Transpose; LogSoftmax likewise.

    Applies where the rank is known. A negative axis that is the last is only counted
    from the front. Equal.
    """
    count = 0
    for node in nodes(model, "Softmax", "LogSoftmax"):
        rank = rank_of(first(node))
        if not rank:
            continue
        axis, last = int_attribute(node, "axis", -1) % rank, rank - 1
        if axis != last:
            swap = tuple(
                {axis: last, last: axis}.get(index, index)
                for index in range(rank)
            )
            patch = Patch(node)
            transposed = patch.add("Transpose", first(node), perm=swap)
            patch.finish(
                patch.add(
                    "Transpose",
                    patch.add(node.op_type, transposed, axis=last),
                    perm=swap,
                )
            )
        elif int_attribute(node, "axis", -1) != last:
            set_attributes(node, axis=last)
        else:
            continue
        count += 1
    return count
