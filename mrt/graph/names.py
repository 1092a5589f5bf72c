"""Fresh names for the values of a float graph, by one scheme for all code that adds nodes."""

from __future__ import annotations

import onnx_ir as ir

_NAMES = "rewrite.names"  # key in graph.meta: every name a value of this graph has had


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """Return the first of `wanted`, `wanted.2`, `wanted.3`, ... that is new in the graph.

    No value of the graph has had this name.
    """
    if _NAMES not in graph.meta:
        graph.meta[_NAMES] = _value_names(graph)
    taken: set[str] = graph.meta[_NAMES]
    return first_free(wanted, taken)


def first_free(wanted: str, taken: set[str]) -> str:
    """Return the first free one of `wanted`, `wanted.2`, `wanted.3`, ... and mark it taken."""
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
