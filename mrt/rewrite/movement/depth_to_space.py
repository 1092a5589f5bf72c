"""Lowers DepthToSpace and SpaceToDepth to Reshape, Transpose, Reshape."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    first,
    int_attribute,
    nodes,
    shape_of,
    string_attribute,
)


def lower_depth_to_space(model: ir.Model) -> int:
    """DepthToSpace (DCR and CRD), SpaceToDepth -> Reshape to rank 6, Transpose, Reshape.

    Always equal.
    """
    count = 0
    for node in nodes(model, "DepthToSpace", "SpaceToDepth"):
        shape, result = shape_of(first(node)), shape_of(node.outputs[0])
        if shape is None or result is None:
            continue
        n, c, h, w = shape
        block = int_attribute(node, "blocksize", 1)
        if node.op_type == "SpaceToDepth":
            split = (n, c, h // block, block, w // block, block)
            permutation = (0, 3, 5, 1, 2, 4)
        elif string_attribute(node, "mode", "DCR") == "DCR":
            split = (n, block, block, c // block**2, h, w)
            permutation = (0, 3, 4, 1, 5, 2)
        else:
            split = (n, c // block**2, block, block, h, w)
            permutation = (0, 1, 4, 2, 5, 3)
        patch = Patch(node)
        apart = patch.add(
            "Reshape", first(node), patch.axes(split, "split"), allowzero=0
        )
        transposed = patch.add("Transpose", apart, perm=permutation)
        patch.finish(
            patch.add(
                "Reshape", transposed, patch.axes(result, "shape"), allowzero=0
            )
        )
        count += 1
    return count
