"""A program as one function of jax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array

from cvm.program import DTYPES, Instruction, IntArray
from cvm.program.short_rescale import factors_of
from cvm.proof.validate import Proven
from cvm.xla.arrays import Operand
from cvm.xla.registry import LOWERINGS, Lowering
from cvm.xla.scale import rescale_in_32_bits

Function = Callable[[Sequence[Operand], Sequence[Operand]], list[Array]]


def function_of(
    form: Proven, others: Mapping[int, Lowering] | None = None
) -> Function:
    """Inputs and constants in order to the values of all instructions, for one sample.

    `others` holds functions that take the place of an instruction's own, by the value that they compute.

    Constants are arguments, too, so that one who traces the function decides what is compiled in
    and what is given later. It is to be traced with 64-bit types enabled (`jax.enable_x64`).
    """
    program = form.program
    replacements = {**_short_rescales(form), **(others or {})}

    def run(
        inputs: Sequence[Operand], constants: Sequence[Operand]
    ) -> list[Array]:
        values: list[Operand] = [*inputs, *constants]
        results = []
        for number, instruction in enumerate(
            program.instructions, program.first_instruction
        ):
            operands = [values[value] for value in instruction.operands]
            lowering = replacements.get(number, LOWERINGS[instruction.name])
            result = lowering(*operands, **instruction.attributes)
            dtype = DTYPES[form.types[number].dtype]
            narrow = jnp.asarray(result.astype(dtype))
            values.append(narrow)
            results.append(narrow)
        return results

    return run


def _short_rescales(form: Proven) -> Mapping[int, Lowering]:
    """Functions of 32 bits for the rescales whose products fit, by the value that they give.

    What XLA computes in 64 bits takes a processor several times as long. The short factors are compiled in.
    """
    return {
        number: partial(
            _with_factors, factors_of(form.program, _instruction(form, number))
        )
        for number, facts in form.rescales.items()
        if facts.fits32
    }


def _instruction(form: Proven, number: int) -> Instruction:
    program = form.program
    return program.instructions[number - program.first_instruction]


def _with_factors(
    factors: tuple[IntArray, IntArray], x: Operand, *_: Operand, **more: Any
) -> Array:
    return rescale_in_32_bits(x, *factors, **more)


def results_of(form: Proven) -> Callable[..., list[Array]]:
    """The inputs, one argument each, to the values of all instructions."""
    run = function_of(form)
    return lambda *inputs: run(inputs, form.program.constants)


def outputs_of(form: Proven) -> Callable[..., list[Array]]:
    """The inputs, one argument each, to the outputs in order; constants are compiled in."""
    program, run = form.program, results_of(form)

    def answer(*inputs: Operand) -> list[Array]:
        values = [*inputs, *program.constants, *run(*inputs)]
        return [jnp.asarray(values[output.value]) for output in program.outputs]

    return answer
