"""Merges two Transposes in a row."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import set_attributes
from mrt.graph.values import first, ints_attribute, nodes, producer


def merge_transposes(model: ir.Model) -> int:
    """Transpose(Transpose(x)) -> Transpose(x).

    The inner node stays for its other readers. Equal.
    """
    count = 0
    for node in nodes(model, "Transpose"):
        inner = producer(first(node), "Transpose")
        outer_perm = ints_attribute(node, "perm")
        inner_perm = None if inner is None else ints_attribute(inner, "perm")
        if inner is None or outer_perm is None or inner_perm is None:
            continue
        node.replace_input_with(0, first(inner))
        set_attributes(
            node, perm=tuple(inner_perm[axis] for axis in outer_perm)
        )
        count += 1
    return count
