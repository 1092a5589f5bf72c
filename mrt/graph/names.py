"""Fresh names for the values of a float graph: one scheme for every room that adds nodes."""

from __future__ import annotations

import onnx_ir as ir

_NAMES = "rewrite.names"  # key in graph.meta: every name a value of this graph has had


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """`wanted`, or `wanted.2`, `wanted.3`, ...: the first that no value of the graph has."""
    if _NAMES not in graph.meta:
        graph.meta[_NAMES] = _value_names(graph)
    taken: set[str] = graph.meta[_NAMES]
    return first_free(wanted, taken)


def first_free(wanted: str, taken: set[str]) -> str:
    """The first of `wanted`, `wanted.2`, `wanted.3`, ... that is not taken; it then is."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}.{count}"
    taken.add(name)
    return name


def _value_names(graph: ir.Graph) -> set[str | None]:
    values = [*graph.inputs, *graph.initializers.values()]
    for node in graph:
        values += node.outputs
    return {value.name for value in values}
