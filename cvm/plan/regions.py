"""Which instructions become one step: element-wise trees, with at most one linear instruction at their head.

A region computes many values and stores one, its root. It runs where its root stands in the program: everything that
it loads is the root of an earlier step, since an instruction only reads earlier values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cvm.plan.narrow import stage_attributes
from cvm.plan.steps import CHAIN, LINEAR, LOAD, STAGES, Integers, Stage, Step, attributes, split
from cvm.program import Instruction, TensorType
from cvm.validate import WellFormed

MAX_OPERANDS = 16  # kMaxLoads in cvm/engine/chain.h
MAX_STAGES = 64  # kMaxStages

Region = Integers  # the values that it computes, in order; the last is its root


@dataclass(frozen=True)
class _Graph:
    """The program, and who reads what. An output counts as read by an instruction outside every region."""

    form: WellFormed
    readers: dict[int, set[int]]

    def instruction(self, value: int) -> Instruction:
        return self.form.program.instructions[value - self.form.program.first_instruction]

    def is_linear(self, value: int) -> bool:
        return self.instruction(value).name in LINEAR

    def head(self, region: Region) -> int | None:
        return next((value for value in region if self.is_linear(value)), None)

    def loads(self, region: Region) -> list[int]:
        """What its stages read from elsewhere, in the order in which they do."""
        read = [v for member in region if not self.is_linear(member) for v in split(self.instruction(member))[0]]
        return list(dict.fromkeys(value for value in read if value not in region))


def find_regions(form: WellFormed) -> list[Region]:
    """The linear and element-wise instructions of a program, each in one region, in the order of their roots."""
    graph = _graph(form)
    regions: dict[int, Region] = {}  # by root
    for value in _members(form):
        _absorb_operands(graph, regions, value)
    homes = {value: root for root, region in regions.items() for value in region}
    for root in sorted(regions, reverse=True):
        _join_only_reader(graph, regions, homes, root)
    return [regions[root] for root in sorted(regions)]


def _graph(form: WellFormed) -> _Graph:
    readers: dict[int, set[int]] = {}
    program = form.program
    for number, item in enumerate(program.instructions, program.first_instruction):
        for value in item.operands:
            readers.setdefault(value, set()).add(number)
    for output in program.outputs:
        readers.setdefault(output.value, set()).add(-1)
    return _Graph(form, readers)


def _members(form: WellFormed) -> Iterable[int]:
    numbered = enumerate(form.program.instructions, form.program.first_instruction)
    return (number for number, item in numbered if item.name in STAGES or item.name in LINEAR)


def _absorb_operands(graph: _Graph, regions: dict[int, Region], value: int) -> None:
    """Start the region of one instruction with those of its operands that nothing else reads.

    Of two linear operands only the later is absorbed: the other's value is stored, after the stages of its own.
    """
    region: Region = (value,)
    if not graph.is_linear(value):
        found = [v for v in set(graph.instruction(value).operands) if v in regions and graph.readers[v] == {value}]
        for operand in sorted(found, key=lambda v: (graph.head(regions[v]) or -1, v), reverse=True):
            joined = _joined(graph, regions[operand], region)
            if joined:
                region = joined
                del regions[operand]
    regions[value] = region


def _join_only_reader(graph: _Graph, regions: dict[int, Region], homes: dict[int, int], root: int) -> None:
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
    heads = [value for value in joined if graph.is_linear(value)]
    loads = graph.loads(joined)
    own = split(graph.instruction(heads[0]))[0] if heads else ()
    if len(heads) > 1 or not set(own).isdisjoint(joined):  # one accumulator, whose operands must be in memory
        return None
    if len(own) + len(loads) > MAX_OPERANDS or len(loads) + len(joined) - len(heads) > MAX_STAGES:
        return None
    if heads and not all(_fits_rows(types[value], types[joined[-1]]) for value in loads):
        return None
    return joined


def _fits_rows(loaded: TensorType, result: TensorType) -> bool:
    """Whether a linear step, which sees its result as rows of channels, can load a tensor beside it.

    That is: one of the result's own shape, or with one row for all, one column for all, or one element for all.
    """
    own, last = result.shape[:-1], result.shape[-1:]
    rows = (own, (1,) * len(own))
    return loaded.shape[:-1] in rows and loaded.shape[-1:] in (last, (1,))


def step_of_region(form: WellFormed, region: Region) -> Step:
    """The step that computes a region."""
    writer = _Writer(_Graph(form, {}), region)
    writer.visit(region[-1])
    head = writer.head
    if head is None:
        return Step(CHAIN, tuple(writer.operands), (), region[-1], {}, tuple(writer.stages), region)
    instruction = writer.graph.instruction(head)
    parameters, own = split(instruction)[1], attributes(instruction)
    return Step(instruction.name, tuple(writer.operands), parameters, region[-1], own, tuple(writer.stages), region)


class _Writer:
    """Writes the stages of a region: what a stage reads right before it, and first what comes from the accumulator.

    So the registers in use at once are few, and steps of one kind have their stages in one order.
    """

    def __init__(self, graph: _Graph, region: Region) -> None:
        self.graph, self.region, self.head = graph, region, graph.head(region)
        self.operands = [] if self.head is None else list(split(graph.instruction(self.head))[0])
        self.registers = {} if self.head is None else {self.head: 0}
        self.accumulated = set(self.registers)  # what depends on the accumulator
        self.stages: list[Stage] = []
        for member in region:
            if not self.accumulated.isdisjoint(graph.instruction(member).operands):
                self.accumulated.add(member)

    def visit(self, value: int) -> None:
        """Bring a value into a register. No deeper than MAX_STAGES."""
        if value in self.registers:
            return
        stage = self._stage(value) if value in self.region else self._load(value)
        self.registers[value] = len(self.registers)
        self.stages.append(stage)

    def _stage(self, value: int) -> Stage:
        instruction = self.graph.instruction(value)
        data, parameters = split(instruction)
        for source in sorted(data, key=lambda v: v not in self.accumulated):
            self.visit(source)
        sources = tuple(self.registers[source] for source in data)
        return Stage(instruction.name, sources, -1, parameters, stage_attributes(self.graph.form, instruction))

    def _load(self, value: int) -> Stage:
        self.operands.append(value)
        return Stage(LOAD, operand=len(self.operands) - 1)
