"""Other outputs for a symbol: the nodes that the user names become its heads, and what follows them is not looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mrt.errors import BadOption
from mrt.frontend.mxnet.operators import OPERATORS
from mrt.frontend.mxnet.operators.registry import read_attributes
from mrt.frontend.mxnet.symbol import Edge, Symbol, SymbolNode

_OUTPUT = re.compile(r"_output([0-9]{0,4})")


def node_names(symbol: Symbol) -> dict[str, int]:
    """The id of every operator's node by a name of its own: act, act_2, act_3 where the file repeats one."""
    taken = {node.name for node in symbol.nodes.values() if node.operator is None}
    names: dict[str, int] = {}
    numbered: dict[str, int] = {}  # by wanted name: where to go on
    for index, node in symbol.nodes.items():
        if node.operator is not None:
            wanted = name = node.name or "node"
            number = numbered.get(wanted, 1)
            while name in taken or name in names:
                number += 1
                name = f"{wanted}_{number}"
            names[name], numbered[wanted] = index, number
    return names


def select_outputs(symbol: Symbol, outputs: Sequence[str]) -> tuple[Symbol, list[str]]:
    """The symbol with these outputs, and the names that it does not know; if there are any, its own heads stay too.

    A node's name means all its outputs; fc_output is MXNet's own way to write it, split_output1 its second.
    """
    names = node_names(symbol)
    renamed = {
        index: replace(symbol.nodes[index], name=name) for name, index in names.items()
    }
    found: list[Edge] = []
    left: list[str] = []
    for name in outputs:
        edges = _edges(name, names, symbol.nodes)
        if not edges:
            left.append(name)
        if repeated := [edge for edge in edges if edge in found]:
            raise BadOption(
                f"--outputs: {name!r} is listed twice (output {repeated[0].output} of its node)"
            )
        found += edges
    heads = (
        found
        if not left
        else [*symbol.heads, *(edge for edge in found if edge not in symbol.heads)]
    )
    return replace(symbol, nodes={**symbol.nodes, **renamed}, heads=tuple(heads)), left


def _edges(
    name: str, names: Mapping[str, int], nodes: Mapping[int, SymbolNode]
) -> list[Edge]:
    if name in names:
        return [
            Edge(names[name], output)
            for output in range(_output_count(nodes[names[name]]))
        ]
    ending = _OUTPUT.search(name, max(name.rfind("_output"), 0))
    if (
        ending is None
        or ending.end() != len(name)
        or name[: ending.start()] not in names
    ):
        return []
    index = names[name[: ending.start()]]
    output = int(ending.group(1) or 0)
    return [Edge(index, output)] if output < _output_count(nodes[index]) else []


def _output_count(node: SymbolNode) -> int:
    """How many outputs can be used; of what cannot be converted, the first: it is refused by its name later."""
    operator = OPERATORS.get(node.operator or "")
    if operator is None:
        return 1
    values, troubles = read_attributes(operator.attributes, node.attributes)
    return 1 if troubles else operator.outputs(values)
