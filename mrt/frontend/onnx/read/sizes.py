"""Refuse models with so many nodes that every later step would be slow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from mrt.errors import BadModel
from mrt.frontend.limits import COUNTING, MOST_NODES, weight


def refuse_large(proto: onnx.ModelProto, path: Path) -> None:
    """Raise BadModel if the model, with its bodies and functions, has too many nodes."""
    total = weight_of_nodes(proto.graph.node)
    total += sum(weight_of_nodes(function.node) for function in proto.functions)
    if total > MOST_NODES:
        raise BadModel(
            f"{path}: {total} nodes ({COUNTING}); at most {MOST_NODES} are read: "
            "convert a part of the model"
        )


def weight_of_nodes(nodes: Iterable[onnx.NodeProto]) -> int:
    """Count nodes and those of their bodies, with their operands."""
    return sum(map(weight_of, nodes_with_bodies(nodes)))


def weight_of(node: onnx.NodeProto) -> int:
    """Return what one node counts, without its bodies."""
    return weight(len(node.input) + len(node.output))


def nodes_with_bodies(
    nodes: Iterable[onnx.NodeProto],
) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of their bodies."""
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting.append(attribute.g.node)
                waiting += [graph.node for graph in attribute.graphs]
