"""The kernel that each step becomes."""

from __future__ import annotations

from dataclasses import dataclass

from cvm.export.c.constants import Constants
from cvm.export.c.elements import Elements
from cvm.export.c.function import Function
from cvm.export.c.instruction import (
    C_TYPES,
    CInstruction,
    narrowed,
)
from cvm.export.c.program import CFunction, CProgram
from cvm.export.cuda.table import TABLE
from cvm.export.cuda.work import Work, each_place
from cvm.program import IntArray, dtype_name


@dataclass(frozen=True)
class Kernel:
    """Parameters with what stands for them, and what its threads do."""

    function: Function
    work: Work

    def text(self, apart: int) -> str:
        """The kernel without its name; the values of two samples lie `apart` bytes from each other."""
        function = self.function
        moved = []
        pairs = zip(function.parameters, function.arguments, strict=True)
        for parameter, argument in pairs:
            if isinstance(argument, int):
                name = parameter.rpartition("*")[2]
                moved.append(f"{name} = of_sample<{apart}>({name});")
        lines = [*moved, *self.work.text()]
        body = "\n".join(f"  {line}" for line in lines)
        return f"({', '.join(function.parameters)})\n{{\n{body}\n}}"


def kernel_of(
    plan: CProgram, step: CFunction, constants: Constants, scratch: int | None
) -> Kernel:
    """The kernel of a step; `scratch` is the number of the buffer that it needs besides its results."""
    first, *others = step.values
    node, function = plan.node(first), Function()
    row = TABLE[node.name]
    if not row.kernel and not row.sums:
        elements = Elements(plan, constants, function, node.result.shape)
        counts, lines = elements.walk(step.values, step.writes)
        threads = plan.form.types[first].elements
        return Kernel(function, Work(threads, each_place(counts, lines)))
    _read_operands(plan, first, constants, function)
    if row.sums:
        finish = _finish(plan, step, constants, function, node)
        return Kernel(function, row.sums(node, finish))
    function.writes(node.c_type, "y", first)
    if scratch is not None:
        function.writes("int32_t", "scratch", scratch)
    assert row.kernel
    return Kernel(function, row.kernel(node))


def _finish(
    plan: CProgram,
    step: CFunction,
    constants: Constants,
    function: Function,
    node: CInstruction,
) -> list[str]:
    """The lines for one sum: it is stored, or the instructions after it go on with it."""
    first, *others = step.values
    if others:
        elements = Elements(plan, constants, function, node.result.shape)
        return elements.place(first, "sum", others, step.writes)
    function.writes(node.c_type, "y", first)
    return [f"y[row * {node.result.shape[-1]} + o] = sum;"]


def _read_operands(
    plan: CProgram, number: int, constants: Constants, function: Function
) -> None:
    """Parameters x0, x1, .. for the operands of an instruction."""
    node = plan.node(number)
    moved = TABLE[node.name].constant
    for index, value in enumerate(plan.operands(number)):
        operand = node.operands[index]
        if operand.constant is None:
            function.reads(operand.c_type, value)
            continue
        array = moved(node, index) if moved else None
        stored = _stored(node, index) if array is None else array
        c_type = C_TYPES[dtype_name(stored)]
        function.reads(c_type, constants.name(stored))


def _stored(node: CInstruction, index: int) -> IntArray:
    """A constant as it is, of the dtype that the plan chose for it."""
    operand = node.operands[index]
    assert operand.constant is not None
    if operand.stored == operand.type.dtype:
        return operand.constant
    return narrowed(operand.constant)
