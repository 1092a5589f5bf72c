"""Writes out the attributes that a node leaves at their defaults."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import AddDefaultAttributesPass

from mrt.graph.patch import drop_attributes


def write_default_attributes(model: ir.Model) -> int:
    """Write every attribute that has a default in opset 20.

    Except auto_pad, which an earlier pass has resolved.
    """
    before = sum(len(node.attributes) for node in model.graph)
    AddDefaultAttributesPass()(model)
    for node in model.graph:
        drop_attributes(node, "auto_pad")
    return sum(len(node.attributes) for node in model.graph) - before
