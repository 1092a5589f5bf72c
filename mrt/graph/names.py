"""Fresh names for the values of a float graph, by one scheme for the passes; the MXNet reader has its own."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

_NAMES = "rewrite.names"  # key in graph.meta: every name a value of this graph has had


class Names:
    """The names that are taken. None becomes free again."""

    def __init__(self, taken: Iterable[str | None] = ()) -> None:
        self._taken = set(taken)
        # How far the counts behind each wanted name are known to be taken: asked for the
        # same name again and again, a search from the first would be quadratic.
        self._counts: dict[str, int] = {}

    def first_free(self, wanted: str) -> str:
        """Return the first free one of `wanted`, `wanted.2`, `wanted.3`, ... and mark it taken."""
        name, count = wanted, self._counts.get(wanted, 1)
        if count > 1:
            name = f"{wanted}.{count}"
        while name in self._taken:
            count += 1
            name = f"{wanted}.{count}"
        self._taken.add(name)
        self._counts[wanted] = count
        return name


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """Return the first of `wanted`, `wanted.2`, `wanted.3`, ... that is new in the graph.

    No value of the graph has had this name.
    """
    if _NAMES not in graph.meta:
        graph.meta[_NAMES] = Names(_value_names(graph))
    names: Names = graph.meta[_NAMES]
    return names.first_free(wanted)


def _value_names(graph: ir.Graph) -> set[str | None]:
    values = [*graph.inputs, *graph.initializers.values()]
    for node in graph:
        values += node.outputs
    return {value.name for value in values}
