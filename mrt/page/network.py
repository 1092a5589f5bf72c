"""The program as a network of its layers: for each the instructions that compute it, their work and their bytes.

An instruction belongs to the first compared value that is computed from it. Where there is
none, it belongs to the output of the program that needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cvm.program import Program
from cvm.proof.cost import CostReport, Work
from mrt.evaluate.layers import Layer
from mrt.page.limits import SOURCES


@dataclass
class Node:
    """One layer, an input, or what is left over; `sources` are the nodes that it reads."""

    name: str
    instructions: Counter[str] = field(default_factory=Counter)
    sources: set[int] = field(default_factory=set)
    work: Work = field(default_factory=Work)
    constant_bytes: int = 0
    layer: Layer | None = None
    # The instruction with most products, or which costs most; and its products and cost.
    main: str = ""
    main_work: tuple[int, int] = (-1, -1)

    @property
    def is_input(self) -> bool:
        """Whether nothing is computed here."""
        return not self.instructions

    def add(self, name: str, work: Work) -> None:
        """Add one instruction."""
        self.instructions[name] += 1
        self.work += work
        weight = work.multiply_accumulates, work.cost
        if weight > self.main_work:
            self.main, self.main_work = name, weight


def network_of(
    program: Program, costs: CostReport, layers: Sequence[Layer]
) -> list[Node]:
    """The nodes in an order in which each comes after those that it reads."""
    owners = _owners(program, {layer.number for layer in layers})
    by_number = {layer.number: layer for layer in layers}
    names = {entry.value: entry.name for entry in program.outputs}
    nodes = [Node(entry.name) for entry in program.inputs]
    places = {number: number for number in range(len(nodes))}
    for owner in sorted(set(owners.values())):
        places[owner] = len(nodes)
        layer = by_number.get(owner)
        name = names.get(owner, "") if layer is None else layer.source
        nodes.append(Node(name, layer=layer))
    constants = set(range(program.first_constant, program.first_instruction))
    for index, entry in enumerate(program.instructions):
        number = program.first_instruction + index
        place = places[owners[number]]
        node = nodes[place]
        node.add(entry.name, costs.instructions[index])
        for operand in set(entry.operands):
            if operand in constants:
                constants.discard(operand)
                array = program.constants[operand - program.first_constant]
                node.constant_bytes += array.nbytes
            elif operand < len(program.inputs):
                node.sources.add(operand)
            elif operand >= program.first_instruction:
                node.sources.add(places[owners[operand]])
        node.sources.discard(place)
    return nodes


def _owners(program: Program, layers: Collection[int]) -> dict[int, int]:
    """The layer or output to which the value of each instruction belongs."""
    first = program.first_instruction
    kept = {*layers, *(output.value for output in program.outputs)}
    owners: dict[int, int] = {}
    for index in reversed(range(len(program.instructions))):
        number = first + index
        owner = number if number in kept else owners.get(number, number)
        owners[number] = owner
        for operand in program.instructions[index].operands:
            # The first one, so that no node reads a later one.
            if operand >= first:
                owners[operand] = min(owner, owners.get(operand, owner))
    return owners


def contracted(
    nodes: Sequence[Node], kept: Collection[int]
) -> list[tuple[int, list[int]]]:
    """The nodes of these places with what each reads, through the others that are left out.

    At most the SOURCES nearest are listed for each, so that the work stays bounded.
    """
    kept_places = set(kept)
    nearest: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        sources: set[int] = set()
        for source in node.sources:
            sources.update(
                [source] if source in kept_places else nearest[source]
            )
        nearest[place] = sorted(sources)[-SOURCES:]
    return [(place, nearest[place]) for place in sorted(kept_places)]


def totals(nodes: Sequence[Node]) -> Mapping[str, int]:
    """The sums over all nodes: cost, products and bytes of constants."""
    work = [node.work for node in nodes]
    return {
        "cost": sum(node_work.cost for node_work in work),
        "products": sum(node_work.multiply_accumulates for node_work in work),
        "bytes": sum(node.constant_bytes for node in nodes),
    }
