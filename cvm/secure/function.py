"""A program as a function of jax for secrets: the function of XLA, with weights as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array

from cvm.program.bounds import Bounds
from cvm.proof.validate import Proven
from cvm.secure.lowerings import lowerings_of
from cvm.xla.arrays import Operand
from cvm.xla.function import function_of


def function_on_shares(
    form: Proven, bounds: Mapping[int, Bounds], weights: tuple[int, ...]
) -> Callable[..., list[Array]]:
    """Inputs in order, and then the weights, to the outputs. Other constants are compiled in."""
    program = form.program
    run = function_of(form, lowerings_of(form, bounds))
    places = [value - program.first_constant for value in weights]

    def answer(*arguments: Operand) -> list[Array]:
        inputs = arguments[: program.first_constant]
        constants: list[Operand] = [*program.constants]
        weight_arrays = arguments[program.first_constant :]
        for place, weight in zip(places, weight_arrays, strict=True):
            constants[place] = weight
        values = [*inputs, *constants, *run(inputs, constants)]
        return [jnp.asarray(values[output.value]) for output in program.outputs]

    return answer
