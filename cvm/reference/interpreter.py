"""Runs a program with numpy integers, one instruction after the other. Its answers are right by definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cvm.errors import Trap
from cvm.program import DTYPE_RANGES, DTYPES, IntArray
from cvm.proof.validate import Proven, WellFormed
from cvm.reference.registry import RULES

ValueCallback = Callable[[int, IntArray], None]  # value number, value


def run(
    form: WellFormed,
    inputs: Mapping[str, IntArray],
    *,
    checked: bool = False,
    observe: ValueCallback | None = None,
) -> dict[str, IntArray]:
    """Outputs by name for one sample. `inputs` hold arrays of the declared dtypes and shapes, inside their intervals.

    A proven program cannot overflow. Any other well-formed program needs `checked`, which raises `Trap` at the first
    instruction whose final value does not fit its dtype. `observe` sees the value of every instruction, in order.
    """
    if not (checked or isinstance(form, Proven)):
        raise Trap("an unproven program runs only in checked mode")
    program = form.program
    values: dict[int, IntArray] = dict(
        enumerate(
            [
                *(inputs[port.name] for port in program.inputs),
                *program.constants,
            ]
        )
    )
    last_use = program.last_uses()
    kept = {port.value for port in program.outputs}
    for index, instruction in enumerate(program.instructions):
        number = program.first_instruction + index
        operands = [values[value] for value in instruction.operands]
        try:
            exact = RULES[instruction.name].run(
                *operands, **instruction.attributes
            )
            values[number] = _narrow(exact, form.types[number].dtype)
        except Trap as trap:
            raise Trap(f"%{number} = {instruction.name}: {trap}") from None
        if observe is not None:
            observe(number, values[number])
        for value in set(instruction.operands):
            if last_use[value] == index and value not in kept:
                del values[value]
    return {port.name: values[port.value] for port in program.outputs}


def _narrow(exact: IntArray, dtype: str) -> IntArray:
    """The exact result in its dtype, or a trap naming the value that does not fit."""
    exact = np.asarray(
        exact
    )  # numpy answers scalars where every operand has rank 0
    if exact.dtype == DTYPES[dtype]:
        return exact
    low, high = DTYPE_RANGES[dtype]
    least, most = int(exact.min()), int(exact.max())
    if least < low or most > high:
        raise Trap(
            f"value {least if least < low else most} does not fit {dtype} ({low}..{high})"
        )
    return exact.astype(DTYPES[dtype])
