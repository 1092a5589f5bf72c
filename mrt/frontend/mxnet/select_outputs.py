"""Choose other outputs of a symbol: the nodes that the user names become its heads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mrt.errors import BadOption
from mrt.frontend.mxnet.operators import OPERATORS
from mrt.frontend.mxnet.operators.aliases import known_name
from mrt.frontend.mxnet.operators.registry import read_attributes
from mrt.frontend.mxnet.symbol import Edge, Symbol, SymbolNode

_OUTPUT = re.compile(r"_output([0-9]{0,4})")


def node_names(symbol: Symbol) -> dict[str, int]:
    """Return the id of every operator's node by a unique name.

    The nodes of a repeated name are act, act_2, act_3.
    """
    variable_names = {
        node.name for node in symbol.nodes.values() if node.operator is None
    }
    names: dict[str, int] = {}
    numbered: dict[
        str, int
    ] = {}  # for each base name, the last number that was tried
    for index, node in symbol.nodes.items():
        if node.operator is not None:
            base_name = name = node.name or "node"
            number = numbered.get(base_name, 1)
            while name in variable_names or name in names:
                number += 1
                name = f"{base_name}_{number}"
            names[name], numbered[base_name] = index, number
    return names


def select_outputs(
    symbol: Symbol, outputs: Sequence[str]
) -> tuple[Symbol, list[str]]:
    """Return the symbol with these outputs, and the names that are not found in it.

    If any name is not found, the symbol keeps its own heads as well. The name of a node
    selects all its outputs; fc_output is MXNet's own name for one, split_output1 for a
    second.
    """
    names = node_names(symbol)
    nodes = dict(symbol.nodes)
    for name, index in names.items():
        nodes[index] = replace(nodes[index], name=name)
    selected: list[Edge] = []
    not_found: list[str] = []
    for name in outputs:
        edges = _edges(name, names, symbol.nodes)
        if not edges:
            not_found.append(name)
        _refuse_repeated(name, edges, selected)
        selected += edges
    heads = selected
    if not_found:
        added = [edge for edge in selected if edge not in symbol.heads]
        heads = [*symbol.heads, *added]
    return replace(symbol, nodes=nodes, heads=tuple(heads)), not_found


def _refuse_repeated(
    name: str, edges: Sequence[Edge], selected: Sequence[Edge]
) -> None:
    for edge in edges:
        if edge in selected:
            raise BadOption(
                f"--outputs: {name!r} is listed twice (output {edge.output} of its node)"
            )


def _edges(
    name: str, names: Mapping[str, int], nodes: Mapping[int, SymbolNode]
) -> list[Edge]:
    """Return the outputs that a name selects; none where it is unknown."""
    if name in names:
        index = names[name]
        count = _output_count(nodes[index])
        return [Edge(index, output) for output in range(count)]
    ending = _OUTPUT.search(name, max(name.rfind("_output"), 0))
    if ending is None or ending.end() != len(name):
        return []
    node_name = name[: ending.start()]
    if node_name not in names:
        return []
    index = names[node_name]
    output = int(ending.group(1) or 0)
    return [Edge(index, output)] if output < _output_count(nodes[index]) else []


def _output_count(node: SymbolNode) -> int:
    """Return the number of outputs.

    It is 1 for an operator that cannot be converted, which is refused later.
    """
    operator = OPERATORS.get(known_name(node.operator or ""))
    if operator is None:
        return 1
    values, problems = read_attributes(operator.attributes, node.attributes)
    return 1 if problems else operator.outputs(values)
