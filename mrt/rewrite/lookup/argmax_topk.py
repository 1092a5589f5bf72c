"""Canonicalizes ArgMax, TopK and lookups to an axis counted from the front.

ArgMin, and ArgMax of the last of equal elements, become ArgMax of the first.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import first, int_attribute, nodes, rank_of, shape_of
from mrt.rewrite.canonical_operators import BACKWARDS


def canonicalize_argmax_topk(model: ir.Model) -> int:
    """ArgMin(x) -> ArgMax(-x); a negative axis -> counted from the front; TopK -> sorted.

    ArgMax that selects the last index -> size - 1 - ArgMax(x reversed). Applies where
    the shape is known. Always equal, except that a TopK that may return its elements in
    any order returns them sorted.
    """
    count = 0
    for node in nodes(
        model, "ArgMax", "ArgMin", "TopK", "Gather", "GatherElements"
    ):
        rank = rank_of(first(node))
        if not rank:
            continue
        axis = int_attribute(node, "axis", -1 if node.op_type == "TopK" else 0)
        if axis < 0 or "axis" not in node.attributes:
            set_attributes(node, axis=axis % rank)
        elif node.op_type == "ArgMin":
            patch = Patch(node)
            negated = patch.add("Neg", first(node))
            patch.finish(patch.add("ArgMax", negated, **_attributes(node)))
        elif node.op_type == "ArgMax" and int_attribute(
            node, "select_last_index", 0
        ):
            _take_last(node)
        elif node.op_type == "TopK" and not int_attribute(node, "sorted", 1):
            set_attributes(node, sorted=1)
        else:
            continue
        count += 1
    return count


def reversed_axis(patch: Patch, x: ir.Value, axis: int) -> ir.Value:
    """Reverse the elements of an axis."""
    return patch.slice(x, axis, -1, BACKWARDS, step=-1)


def _attributes(node: ir.Node) -> dict[str, int]:
    defaults = {"axis": 0, "keepdims": 1, "select_last_index": 0}
    return {
        name: int_attribute(node, name, default)
        for name, default in defaults.items()
    }


def _take_last(node: ir.Node) -> None:
    patch, axis = Patch(node), int_attribute(node, "axis", 0)
    attributes = _attributes(node) | {"select_last_index": 0}
    index = patch.add(
        "ArgMax", reversed_axis(patch, first(node), axis), **attributes
    )
    size = (shape_of(first(node)) or ())[axis]
    patch.finish(
        patch.add(
            "Sub", patch.constant(np.array(size - 1, np.int64), "last"), index
        )
    )
