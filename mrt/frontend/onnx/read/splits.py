"""Refuse a Split whose outputs are not as many as it states: the library's shape inference would end the process."""

from __future__ import annotations

import onnx

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.read.sizes import nodes_with_bodies

_COUNT = "num_outputs"


def refuse_wrong_splits(proto: onnx.ModelProto) -> None:
    """Raise BadModel for the first Split, in the graph or in a body, whose num_outputs is not the number of its outputs."""
    for node in nodes_with_bodies(proto.graph.node):
        if node.op_type == "Split" and node.domain in DEFAULT_DOMAINS:
            _refuse_wrong(node)


def _refuse_wrong(node: onnx.NodeProto) -> None:
    count = len(node.output)
    for attribute in node.attribute:
        if attribute.name == _COUNT and attribute.i != count:
            name = node.name or next(iter(node.output), "")
            raise BadModel(
                f"{name} (Split): {_COUNT}={attribute.i} for {count} outputs; "
                f"expected {_COUNT}={count}"
            )
