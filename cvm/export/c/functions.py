"""The function of C that each step becomes: its parameters, its body, and what it is called with."""

from __future__ import annotations

import re

from cvm.export.c.constants import Constants
from cvm.export.c.elements import Elements
from cvm.export.c.function import Function
from cvm.export.c.instruction import C_TYPES, CInstruction
from cvm.export.c.program import CFunction, CProgram
from cvm.export.c.table import TABLE, ConstantOrder
from cvm.program import dtype_name


def function_of(
    plan: CProgram, step: CFunction, constants: Constants, scratch: str | None
) -> Function:
    """The function of a step; `scratch` is the place of the integers that it needs besides its results."""
    function = Function()
    first = step.values[0]
    node = plan.node(first)
    if TABLE[node.name].expression:
        elements = Elements(plan, constants, function, node.result.shape)
        function.body = elements.nest(step.values, step.writes)
        return function
    read_operands(plan, first, constants, function, TABLE[node.name].constant)
    if plan.finishes_rows(step):
        assert scratch
        function.body = _by_rows(plan, step, constants, function, scratch)
    else:
        function.body = _single(node, first, function, scratch)
    return function


def read_operands(
    plan: CProgram,
    number: int,
    constants: Constants,
    function: Function,
    moved: ConstantOrder | None,
) -> None:
    """Parameters x0, x1, .. for the operands of an instruction; `moved` gives the integers of some in another order."""
    node = plan.node(number)
    for index, value in enumerate(plan.operands(number)):
        operand = node.operands[index]
        if operand.constant is None:
            function.reads(operand.c_type, value)
            continue
        array = moved(node, index) if moved else None
        stored = operand.array if array is None else array
        c_type = C_TYPES[dtype_name(stored)]
        function.reads(c_type, constants.name(stored))


def _single(
    node: CInstruction, number: int, function: Function, scratch: str | None
) -> str:
    """One instruction."""
    row = TABLE[node.name]
    assert row.body
    function.writes(node.c_type, "y", number)
    if scratch:
        function.writes("int32_t", "scratch", scratch)
    return _tidied(row.body(node))


def _by_rows(
    plan: CProgram,
    step: CFunction,
    constants: Constants,
    function: Function,
    scratch: str,
) -> str:
    """Sums of products, each row of which the instructions after it finish."""
    first, *others = step.values
    node = plan.node(first)
    rows = TABLE[node.name].rows
    assert rows
    elements = Elements(plan, constants, function, node.result.shape)
    finish = elements.row(first, others, step.writes)
    function.writes("int32_t", "sums", scratch)
    return _tidied(rows(node, finish))


def _tidied(body: str) -> str:
    """The text without factors of one, terms of zero and empty lines, which result from literal shapes."""
    body = "\n".join(line for line in body.splitlines() if line.strip())
    body = re.sub(r" [*/] 1\b", "", body)
    body = re.sub(r" [+-] 0\b(?! [*/])", "", body)
    return re.sub(r" - -(\d)", r" + \1", body)
