"""The function of C that each step becomes: its parameters, its body, and what it is called with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cvm.export.c.constants import Constants
from cvm.export.c.nest import View, broadcast, collapsed, contiguous, nest
from cvm.export.c.node import C_TYPES, Node, Operand, literal, narrowed
from cvm.export.c.steps import Plan, Step
from cvm.export.c.table import TABLE
from cvm.program import IntArray


@dataclass
class Function:
    """A function being written. Its arguments are values by number, or names of constants."""

    parameters: list[str] = field(default_factory=list)
    arguments: list[int | str] = field(default_factory=list)
    body: str = ""

    def reads(self, c_type: str, argument: int | str) -> str:
        """One more parameter to read from; its name."""
        name = f"x{len(self.parameters)}"
        self._add(f"const {c_type} *restrict {name}", argument)
        return name

    def writes(self, c_type: str, name: str, argument: int | str) -> None:
        """One more parameter to write to."""
        self._add(f"{c_type} *restrict {name}", argument)

    def _add(self, parameter: str, argument: int | str) -> None:
        self.parameters.append(parameter)
        self.arguments.append(argument)


def function_of(
    plan: Plan, step: Step, constants: Constants, scratch: str | None
) -> Function:
    """The function of a step."""
    node = plan.node(step.values[0])
    if TABLE[node.name].expression:
        return _Elements(plan, step, constants).function()
    return _single(plan, step, constants, scratch)


def _single(
    plan: Plan, step: Step, constants: Constants, scratch: str | None
) -> Function:
    """One instruction, whose operands are x0, x1, .. in order."""
    (number,) = step.values
    node, program = plan.node(number), plan.form.program
    row, function = TABLE[node.name], Function()
    assert row.body
    operands = program.instructions[number - program.first_instruction].operands
    for index, value in enumerate(operands):
        operand = node.operands[index]
        array = _stored_constant(node, index)
        argument = value if array is None else constants.name(array)
        function.reads(operand.c_type, argument)
    function.writes(node.c_type, "y", number)
    if scratch:
        function.writes("int32_t", "scratch", scratch)
    function.body = _tidied(row.body(node).rstrip("\n"))
    return function


def _tidied(body: str) -> str:
    """Without factors of one and terms of zero, which come of literal shapes."""
    body = re.sub(r" [*/] 1\b", "", body)
    body = re.sub(r" [+-] 0\b(?! [*/])", "", body)
    return re.sub(r" - -(\d)", r" + \1", body)


def _stored_constant(node: Node, index: int) -> IntArray | None:
    """An operand's integers as the body reads them; None if it is no constant."""
    operand, row = node.operands[index], TABLE[node.name]
    if operand.constant is None:
        return None
    moved = row.constant(node, index) if row.constant else None
    array = operand.constant if moved is None else moved
    return narrowed(array) if row.any_dtype else array


@dataclass
class _Elements:
    """One loop over elements for all instructions of a step; what only they read stays in variables."""

    plan: Plan
    step: Step
    constants: Constants
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    made: Function = field(default_factory=Function)

    def function(self) -> Function:
        """The function, with a nest of as few loops as the shapes allow."""
        shape = self.plan.form.types[self.step.values[0]].shape
        for number in self.step.values:
            self._compute(number)
        for index, number in enumerate(self.step.writes):
            self._store(number, f"y{index}" if index else "y")
        self.views.append(contiguous(shape))
        counts, views = collapsed(shape, self.views)
        indices = [view.index() for view in views]
        lines = [line.format(*indices, own=indices[-1]) for line in self.lines]
        self.made.body = "\n".join(nest(counts, lines))
        return self.made

    def _compute(self, number: int) -> None:
        node, program = self.plan.node(number), self.plan.form.program
        row = TABLE[node.name]
        assert row.expression
        values = program.instructions[
            number - program.first_instruction
        ].operands
        terms = [
            self._array(value, operand)
            if (node.name, index) == ("table", 1)
            else self._term(value, operand)
            for index, (value, operand) in enumerate(
                zip(values, node.operands, strict=True)
            )
        ]
        self._set_apart(terms)
        self.names[number] = name = f"v{len(self.names)}"
        expression = row.expression(node, terms)
        self.lines.append(f"const int32_t {name} = {expression};")

    def _set_apart(self, terms: list[str]) -> None:
        """An operand that stands twice gets a second name: compilers warn where a variable is compared with itself."""
        for index, term in enumerate(terms):
            if term in terms[:index]:
                terms[index] = f"w{len(self.lines)}"
                self.lines.append(f"const int32_t {terms[index]} = {term};")

    def _term(self, value: int, operand: Operand) -> str:
        """The variable of an operand's element, loaded at its first use."""
        if value not in self.names:
            loaded = self._load(value, operand)
            self.names[value] = name = f"v{len(self.names)}"
            self.lines.append(f"const int32_t {name} = {loaded};")
        return self.names[value]

    def _load(self, value: int, operand: Operand) -> str:
        if operand.constant is not None and operand.constant.size == 1:
            return literal(int(operand.constant.reshape(-1)[0]))
        shape = self.plan.form.types[self.step.values[0]].shape
        aligned = operand.shape
        if len(aligned) != len(shape):  # one entry, or one for the last axis
            aligned = (1,) * (len(shape) - len(aligned)) + aligned
        self.views.append(broadcast(aligned))
        return f"{self._array(value, operand)}[{{{len(self.views) - 1}}}]"

    def _array(self, value: int, operand: Operand) -> str:
        """A parameter for an operand."""
        argument: int | str = value
        if operand.constant is not None:
            argument = self.constants.name(narrowed(operand.constant))
        return self.made.reads(operand.c_type, argument)

    def _store(self, number: int, name: str) -> None:
        c_type = C_TYPES[self.plan.form.types[number].dtype]
        stored = self.names[number]
        if c_type != "int32_t":
            stored = f"({c_type}){stored}"
        self.lines.append(f"{name}[{{own}}] = {stored};")
        self.made.writes(c_type, name, number)
