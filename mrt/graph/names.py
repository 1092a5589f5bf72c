"""Fresh names for the values of a float graph: one scheme for every room that adds nodes."""

from __future__ import annotations

import onnx_ir as ir

_NAMES = "rewrite.names"  # key in graph.meta: every name a value of this graph has had


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """`wanted`, or `wanted.2`, `wanted.3`, ...: the first that no value of the graph has."""
    if _NAMES not in graph.meta:
        values = [
            *graph.inputs,
            *graph.initializers.values(),
            *(out for node in graph for out in node.outputs),
        ]
        graph.meta[_NAMES] = {value.name for value in values}
    taken: set[str] = graph.meta[_NAMES]
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}.{count}"
    taken.add(name)
    return name
