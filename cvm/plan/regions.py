"""Which instructions become one step: element-wise trees, with at most one linear instruction at their head.

A region computes many values and stores one, its root. It runs where its root stands in the program: everything that
it loads is the root of an earlier step, since an instruction only reads earlier values. Behind a dense or a matmul, whose
result is rows of channels whatever its shape, a reshape that keeps these rows is a member, too. A sum of halves
(`halves.py`) is one linear instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from cvm.plan.halves import Halves, find_halves
from cvm.plan.steps import LINEAR, STAGES, Integers, split
from cvm.program import Instruction, TensorType
from cvm.proof.validate import WellFormed

MAX_OPERANDS = 16  # kMaxLoads in cvm/engine/chain.h
MAX_STAGES = 64  # kMaxStages
ROWS = frozenset(("dense", "matmul"))

Region = Integers  # the values that it computes, in order; the last is its root


class _Graph:
    """The program, and the readers of each value. An output counts as read by an instruction outside every region."""

    def __init__(self, form: WellFormed, halves: Mapping[int, Halves]) -> None:
        self.form, self.halves, program = form, halves, form.program
        inner = {
            value
            for node in halves.values()
            for value in (node.high, node.shifted, node.low)
        }
        self.readers: dict[int, set[int]] = {}
        self.linear: set[int] = set()
        self.by_rows: set[int] = set()  # linear ones of ROWS
        self.reshapes: dict[int, int] = {}  # that keep rows: operands
        self.data: dict[
            int, Integers
        ] = {}  # of the instructions that can be in a region: operands, less parameters
        for number, node in enumerate(
            program.instructions, program.first_instruction
        ):
            for value in node.operands:
                self.readers.setdefault(value, set()).add(number)
            if number in inner:
                continue
            if number in halves:
                node = program.instructions[
                    halves[number].low - program.first_instruction
                ]
            if node.name in STAGES or node.name in LINEAR:
                self.data[number] = split(node)[0]
            if node.name in LINEAR:
                self.linear.add(number)
            if node.name in ROWS:
                self.by_rows.add(number)
            if node.name == "reshape" and _keeps_rows(form, number, node):
                self.reshapes[number] = node.operands[0]
        for output in program.outputs:
            self.readers.setdefault(output.value, set()).add(-1)

    def head(self, region: Region) -> int | None:
        return next((value for value in region if value in self.linear), None)

    def loads(self, region: Region) -> list[int]:
        """The values from outside the region that its stages read."""
        read = dict.fromkeys(
            v
            for member in region
            if member in self.data and member not in self.linear
            for v in self.data[member]
        )
        return [value for value in read if value not in set(region)]


def _keeps_rows(form: WellFormed, value: int, reshape: Instruction) -> bool:
    before, after = form.types[reshape.operands[0]], form.types[value]
    return before.shape[-1:] == after.shape[-1:] != ()


def find_regions(
    form: WellFormed, halves: Mapping[int, Halves] | None = None
) -> list[Region]:
    """The linear and element-wise instructions of a program, each in one region, in the order of their roots."""
    graph = _Graph(form, find_halves(form) if halves is None else halves)
    regions: dict[int, Region] = {}  # by root
    for value in graph.data:
        _absorb_operands(graph, regions, value)
    homes = {
        value: root for root, region in regions.items() for value in region
    }
    for root in sorted(regions, reverse=True):
        _join_only_reader(graph, regions, homes, root)
    return [regions[root] for root in sorted(regions)]


def _absorb_operands(
    graph: _Graph, regions: dict[int, Region], value: int
) -> None:
    """Start the region of one instruction with those of its operands that nothing else reads.

    Of two linear operands only the later is absorbed: the other's value is stored, after the stages of its own.
    """
    region: Region = (value,)
    if value in graph.halves:
        pair = graph.halves[value]
        region = tuple(sorted((pair.high, pair.shifted, pair.low, value)))
    if value not in graph.linear:
        endings = [
            (root, ending)
            for v in set(graph.data[value])
            if graph.readers[v] == {value}
            for root, ending in _ending_in(graph, regions, v)
        ]
        for root, operand in sorted(
            endings,
            key=lambda pair: (graph.head(pair[1]) or -1, pair[0]),
            reverse=True,
        ):
            joined = _joined(graph, operand, region)
            if joined:
                region = joined
                del regions[root]
    regions[value] = region


def _ending_in(
    graph: _Graph, regions: dict[int, Region], value: int
) -> list[tuple[int, Region]]:
    """The root and the region whose last value this is, perhaps by a reshape that alone reads the root; or nothing."""
    if value in regions:
        return [(value, regions[value])]
    root = graph.reshapes.get(value, value)
    if root not in regions or graph.readers[root] != {value}:
        return []
    if graph.by_rows.isdisjoint(regions[root]):
        return []
    return [(root, (*regions[root], value))]


def _join_only_reader(
    graph: _Graph, regions: dict[int, Region], homes: dict[int, int], root: int
) -> None:
    """A root that several instructions read, all of one region, need not be stored either: x * table(x)."""
    targets = {homes.get(reader) for reader in graph.readers[root]}
    target = next(iter(targets))
    if len(targets) > 1 or target is None:
        return
    joined = _joined(graph, regions[root], regions[target])
    if joined:
        regions[target] = joined
        homes.update(dict.fromkeys(regions.pop(root), target))


def _joined(graph: _Graph, region: Region, reader: Region) -> Region | None:
    """One region of two, or None if the engine could not run it as one step.

    Inside a region every value has the shape of the root: stages only broadcast what they load.
    """
    types = graph.form.types
    if types[region[-1]].shape != types[reader[-1]].shape:
        return None
    joined = tuple(sorted((*region, *reader)))
    heads = [value for value in joined if value in graph.linear]
    loads = graph.loads(joined)
    linear_operands = graph.data[heads[0]] if heads else ()
    if len(heads) > 1 or not set(linear_operands).isdisjoint(
        joined
    ):  # one accumulator, whose operands must be in memory
        return None
    if (
        len(linear_operands) + len(loads) > MAX_OPERANDS
        or len(loads) + len(joined) - len(heads) > MAX_STAGES
    ):
        return None
    if heads and not all(
        _fits_rows(types[value], types[joined[-1]]) for value in loads
    ):
        return None
    return joined


def _fits_rows(loaded: TensorType, result: TensorType) -> bool:
    """Whether a linear step, which writes its result as rows of channels, can load a tensor beside it.

    That is: one of the result's own shape, or with one row for all, one column for all, or one element for all.
    """
    rows, last = (prod(result.shape[:-1]), 1), (result.shape[-1:], (1,))
    return prod(loaded.shape[:-1]) in rows and loaded.shape[-1:] in last
