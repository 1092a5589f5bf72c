"""The kernel that each step becomes."""

from __future__ import annotations

from dataclasses import dataclass

from cvm.export.c.constants import Constants
from cvm.export.c.elements import Elements
from cvm.export.c.function import Function
from cvm.export.c.functions import read_operands
from cvm.export.c.nest import indented
from cvm.export.c.program import CFunction, CProgram
from cvm.export.cuda.finish import four_at_once, one_by_one
from cvm.export.cuda.table import TABLE
from cvm.export.cuda.work import KernelWork, each_place

SCRATCH = -1  # an argument: what the step needs besides its results


@dataclass(frozen=True)
class Kernel:
    """Parameters with their arguments, and the work of the threads."""

    function: Function
    work: KernelWork

    def text(self, apart: int) -> str:
        """The kernel without its name; the values of two samples lie `apart` bytes from each other."""
        function = self.function
        parameters, lines = [], []
        pairs = zip(function.parameters, function.arguments, strict=True)
        for parameter, argument in pairs:
            pointed, _, name = parameter.rpartition("*")
            if isinstance(argument, str):
                parameters.append(f"{pointed}*__restrict__ {name}")
                continue
            parameters.append(f"{pointed}*first_{name}")
            lines.append(
                f"{pointed}*__restrict__ {name} = of_sample<{apart}>(first_{name});"
            )
        lines = indented([*lines, *self.work.text()])
        body = "\n".join(lines)
        return f"({', '.join(parameters)})\n{{\n{body}\n}}"


def kernel_of(plan: CProgram, step: CFunction, constants: Constants) -> Kernel:
    """The kernel of a step."""
    first = step.values[0]
    node, function = plan.node(first), Function()
    row = TABLE[node.name]
    if not row.kernel and not row.sums:
        elements = Elements(plan, constants, function, node.result.shape)
        counts, lines = elements.walk(step.values, step.writes)
        threads = plan.form.types[first].elements
        return Kernel(function, KernelWork(threads, each_place(counts, lines)))
    read_operands(plan, first, constants, function, row.constant)
    if row.sums:
        write = four_at_once if row.fours(node) else one_by_one
        finish = write(plan, step, constants, function)
        return Kernel(function, row.sums(node, finish))
    function.writes(node.c_type, "y", first)
    if row.scratch:
        function.writes("int32_t", "scratch", SCRATCH)
    assert row.kernel
    return Kernel(function, row.kernel(node))
