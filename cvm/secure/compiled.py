"""A program compiled for SPU, with what a party must know of its arguments."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import Proven
from cvm.secure import spu_link
from cvm.secure.function import function_on_shares
from cvm.secure.weights import bounds_of, hidden_weights, weights_of


@dataclass(frozen=True)
class SpuProgram:
    """Its arguments are the inputs, secret, and then the weights, which are secret only if they are hidden."""

    program: Program
    executable: Any
    weights: tuple[int, ...]
    hides_weights: bool

    @property
    def digest(self) -> str:
        """SHA-256 of what SPU runs: the same for all parties, whatever the weights that are hidden."""
        return hashlib.sha256(self.executable.code).hexdigest()

    def weight(self, value: int) -> IntArray:
        """A weight's array."""
        return self.program.constants[value - self.program.first_constant]


def compile_program(form: Proven, *, hide_weights: bool) -> SpuProgram:
    """Trace, and compile. The result does not depend on weights that are hidden."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    program = form.program
    hidden = hidden_weights(program) if hide_weights else ()
    weights = hidden or weights_of(program)
    function = function_on_shares(form, bounds_of(form, hidden), weights)
    inputs = [
        np.zeros(input_.type.shape, DTYPES[input_.type.dtype])
        for input_ in program.inputs
    ]
    weight_arrays = [
        np.zeros_like(program.constants[value - program.first_constant])
        for value in weights
    ]
    secret = [True] * len(inputs) + [hide_weights] * len(weight_arrays)
    executable = spu_link.compiled(function, [*inputs, *weight_arrays], secret)
    return SpuProgram(program, executable, weights, hide_weights)
