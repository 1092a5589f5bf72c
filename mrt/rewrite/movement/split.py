"""Lowers Split to one Slice for each output."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, int_attribute, nodes, shape_of


def lower_split(model: ir.Model) -> int:
    """Split -> a Slice for each output, with the output's name.

    Applies where the sizes of the pieces are known. Equal.
    """
    count = 0
    for node in nodes(model, "Split"):
        pieces = [shape_of(output) for output in node.outputs]
        rank = len(pieces[0] or ())
        if any(piece is None for piece in pieces) or not rank:
            continue
        axis = int_attribute(node, "axis", 0) % rank
        start = 0
        for output, piece in zip(node.outputs, pieces, strict=True):
            size = (piece or ())[axis]
            patch = Patch(node, output)
            patch.take_over(patch.slice(first(node), axis, start, start + size))
            start += size
        model.graph.remove(node, safe=True)
        count += 1
    return count
