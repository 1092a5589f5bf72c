"""Rewrite the nodes whose sizes the library's shape inference finds wrong, all at once that do not follow from each other."""

from __future__ import annotations

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.opsets.ceil_mode import resolve_ceil_mode
from mrt.frontend.onnx.opsets.conv_transpose import (
    resolve_conv_transpose_output,
)

MOST_ROUNDS = 32
"""The most such nodes in a row: each pool halves its input at least, or has a size of 1 already."""


def resolve_wrong_sizes(model: ir.Model) -> list[ir.Node]:
    """Rewrite every such node that reads no size which is wrong itself; return these nodes.

    What reads their results waits until inference has run again.
    """
    resolved: list[ir.Node] = []
    outdated = set[ir.Value]()
    for node in list(model.graph):
        is_outdated = any(value in outdated for value in node.inputs)
        if not is_outdated and _resolve(node):
            resolved.append(node)
            is_outdated = True
        if is_outdated:
            outdated.update(node.outputs)
    return resolved


def _resolve(node: ir.Node) -> bool:
    return resolve_ceil_mode(node) or resolve_conv_transpose_output(node)


def too_many_in_a_row(node: ir.Node) -> BadModel:
    """Return the error for the node that comes after MOST_ROUNDS others."""
    return BadModel(
        f"{node.name or node.outputs[0].name} ({node.op_type}): follows {MOST_ROUNDS} others whose sizes are rounded or stated; "
        "write the pads of each, without ceil_mode, auto_pad and output_shape"
    )
