"""Finds values whose channels may lie in another order in memory without a change to any output.

A channel is an index of a value's last axis. A convolution may read its input's channels
in any order if its weights have the same; what works channel by channel gives the order
that it is given. So all values between products of one kind or another form a group that
has one order. Whoever sees channels by their numbers, as an output or a concat does,
keeps the order of the whole group as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cvm.instructions import INSTRUCTIONS
from cvm.program import Instruction, IntArray
from cvm.proof.validate import WellFormed

CHANNELWISE = frozenset(("max_pool2d", "avg_pool2d", "resize"))
LOOKUPS = frozenset(("table", "interpolate"))
REDUCTIONS = frozenset(("reduce_sum", "reduce_max", "reduce_min"))


@dataclass(frozen=True)
class ChannelGroup:
    """Values with one order of channels, by what has to be in that order, too.

    `constants` are the axes of constants, (index, axis); `readers` are the instructions
    that sum over the channels, conv2d and dense.
    """

    constants: list[tuple[int, int]] = field(default_factory=list)
    readers: list[Instruction] = field(default_factory=list)


def channel_groups(form: WellFormed) -> list[ChannelGroup]:
    """Return the groups whose order is free, in the order of their first values."""
    finder = _Finder(form)
    for number, instruction in enumerate(
        form.program.instructions, form.program.first_instruction
    ):
        finder.visit(number, instruction)
    return list(finder.groups().values())


class _Finder:
    """Joins values into groups, instruction by instruction."""

    def __init__(self, form: WellFormed) -> None:
        self.form = form
        self.first_constant = form.program.first_constant
        self.first_instruction = form.program.first_instruction
        self.parents = list(range(len(form.types)))
        self.kept = set(range(self.first_instruction))
        self.kept.update(output.value for output in form.program.outputs)
        self.constants: list[tuple[int, int, int]] = []  # value, number, axis
        self.readers: list[tuple[int, Instruction]] = []

    def visit(self, number: int, instruction: Instruction) -> None:
        """Join what has the order of the result."""
        name, operands = instruction.name, instruction.operands
        if name == "dense" or (
            name == "conv2d" and instruction.integer("groups") == 1
        ):
            self._product(number, instruction)
        elif name == "conv2d" and self._is_depthwise(number, instruction):
            self._join(number, operands[0])
            self._order(number, operands[1], 0)
            self._order(number, operands[2], 0)
        elif name in LOOKUPS or name in CHANNELWISE:
            self._join(number, operands[0])
        elif INSTRUCTIONS[name].stage:
            for operand in operands:
                self._follow(number, operand)
        elif name in REDUCTIONS:
            if instruction.integer("axis") != self._rank(operands[0]) - 1:
                self._join(number, operands[0])
        elif self._moves_rows(number, instruction):
            for operand in operands:
                self._follow(number, operand)
        else:
            self.kept.update((number, *operands))

    def groups(self) -> Mapping[int, ChannelGroup]:
        """The groups that are free, by their first values."""
        self._keep_what_shares_constants()
        kept = set(map(self._root, self.kept))
        free: dict[int, ChannelGroup] = {}
        for value, number, axis in self.constants:
            root = self._root(value)
            if root not in kept:
                group = free.setdefault(root, ChannelGroup())
                group.constants.append((number - self.first_constant, axis))
        for value, instruction in self.readers:
            if self._root(value) in free:
                free[self._root(value)].readers.append(instruction)
        return dict(sorted(free.items()))

    def _keep_what_shares_constants(self) -> None:
        """A constant that several operands share has one order, which only equal entries along the axis suit for all."""
        uses = Counter(
            operand
            for instruction in self.form.program.instructions
            for operand in instruction.operands
            if self.first_constant <= operand < self.first_instruction
        )
        for value, number, axis in self.constants:
            if uses[number] > 1 and not _is_even(self._constant(number), axis):
                self.kept.add(value)

    def _product(self, number: int, instruction: Instruction) -> None:
        x, weights, bias = instruction.operands
        self._order(number, weights, 0)
        self._order(number, bias, 0)
        self._order(x, weights, self._rank(weights) - 1)
        self.readers.append((x, instruction))

    def _is_depthwise(self, number: int, instruction: Instruction) -> bool:
        channels = self._channels(instruction.operands[0])
        groups = instruction.integer("groups")
        return channels == self._channels(number) == groups

    def _moves_rows(self, number: int, instruction: Instruction) -> bool:
        """Whether an instruction moves whole rows of channels."""
        last = self._rank(instruction.operands[0]) - 1
        match instruction.name:
            case "reshape":
                return self._channels(number) == self._channels(
                    instruction.operands[0]
                )
            case "transpose":
                return instruction.integers("perm")[-1:] == (last,)
            case "concat":
                return instruction.integer("axis") != last
        return False

    def _follow(self, number: int, operand: int) -> None:
        """An operand with the result's channels has their order; one that is the same for all has none."""
        if self._channels(operand) != self._channels(number):
            return
        if self.first_constant <= operand < self.first_instruction:
            self._order(number, operand, self._rank(operand) - 1)
        else:
            self._join(number, operand)

    def _order(self, value: int, constant: int, axis: int) -> None:
        self.constants.append((value, constant, axis))

    def _join(self, a: int, b: int) -> None:
        first, second = sorted((self._root(a), self._root(b)))
        self.parents[second] = first

    def _root(self, value: int) -> int:
        while self.parents[value] != value:
            self.parents[value] = self.parents[self.parents[value]]
            value = self.parents[value]
        return value

    def _constant(self, number: int) -> IntArray:
        return self.form.program.constants[number - self.first_constant]

    def _rank(self, value: int) -> int:
        return self.form.types[value].rank

    def _channels(self, value: int) -> int:
        shape = self.form.types[value].shape
        return shape[-1] if shape else 1


def _is_even(array: IntArray, axis: int) -> bool:
    """Whether all entries along the axis are equal."""
    return bool((array == array.take([0], axis)).all())
