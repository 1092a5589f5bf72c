"""Lowers pools over whole images to reductions: the global ones, and AveragePool with such a window."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, shape_of
from mrt.rewrite.linear.conv_pool_attributes import window_of

_REDUCTION = {
    "GlobalAveragePool": "ReduceMean",
    "GlobalMaxPool": "ReduceMax",
    "AveragePool": "ReduceMean",
}


def lower_global_pool(model: ir.Model) -> int:
    """GlobalAveragePool -> ReduceMean, GlobalMaxPool -> ReduceMax.

    Over all axes after the second. AveragePool -> ReduceMean, where its window is the
    whole image: a sum needs no weights. Always equal.
    """
    count = 0
    for node in nodes(model, *_REDUCTION):
        shape = shape_of(first(node))
        if shape is None or len(shape) < 3 or not _is_global(node, shape):
            continue
        patch = Patch(node)
        axes = patch.axes(list(range(2, len(shape))))
        patch.finish(
            patch.add(
                _REDUCTION[node.op_type],
                first(node),
                axes,
                keepdims=1,
                noop_with_empty_axes=0,
            )
        )
        count += 1
    return count


def _is_global(node: ir.Node, shape: tuple[int, ...]) -> bool:
    if node.op_type != "AveragePool":
        return True
    window = window_of(node)
    return (
        window is not None
        and window.extent == shape[2:]
        and set(window.dilations) == {1}
        and not any(window.pads)
    )
