"""Lowers GlobalAveragePool and GlobalMaxPool to reductions."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, rank_of

_REDUCTION = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}


def lower_global_pool(model: ir.Model) -> int:
    """GlobalAveragePool -> ReduceMean, GlobalMaxPool -> ReduceMax.

    Over all axes after the second. Always equal.
    """
    count = 0
    for node in nodes(model, *_REDUCTION):
        rank = rank_of(first(node))
        if rank is None or rank < 3:
            continue
        patch = Patch(node)
        axes = patch.axes(list(range(2, rank)))
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
