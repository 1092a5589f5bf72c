"""XLA as a machine: a program compiled for the processor, run sample by sample.

Never for a GPU, even where jax prefers it: XLA gives other bytes there (docs/how_to/stablehlo.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import jax
import numpy as np

from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven
from cvm.xla.function import outputs_of, results_of

Observer = Callable[[int, IntArray], None]  # value number, value
Compiled = Callable[..., Any]


@dataclass(frozen=True)
class Xla:
    """A program is compiled when it is first needed: once for speed, once to show every value."""

    form: Proven
    name: str = "xla"
    shares_a_sample: bool = True
    _compiled: dict[bool, Compiled] = field(
        default_factory=dict, repr=False, compare=False
    )  # by whether it is traced
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def prepare(self, *, traced: bool) -> None:
        """Compile."""
        self._compile(traced)

    def run(
        self,
        sample: Mapping[str, IntArray],
        *,
        observe: Observer | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """XLA chooses its number of threads: `threads` changes nothing."""
        program = self.form.program
        arrays = [sample[port.name] for port in program.inputs]
        if observe is None:
            outputs = self._compile(False)(*arrays)
            names = [port.name for port in program.outputs]
            return dict(zip(names, map(np.asarray, outputs), strict=True))
        results = [np.asarray(array) for array in self._compile(True)(*arrays)]
        for number, value in enumerate(results, program.first_instruction):
            observe(number, value)
        values = [*arrays, *program.constants, *results]
        return {port.name: values[port.value] for port in program.outputs}

    def _compile(self, traced: bool) -> Compiled:
        with self._lock:
            if traced not in self._compiled:
                function = (results_of if traced else outputs_of)(self.form)
                self._compiled[traced] = compiled(self.form, function)
            return self._compiled[traced]


def compiled(form: Proven, function: Callable[..., Any]) -> Compiled:
    """A function of the inputs, compiled for the processor."""
    place = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    with jax.enable_x64(True):
        placed = jax.jit(function, in_shardings=place, out_shardings=place)
        executable: Compiled = placed.lower(*types_of(form)).compile()
    return executable


def types_of(form: Proven) -> list[jax.ShapeDtypeStruct]:
    """The inputs' types, in order."""
    return [
        jax.ShapeDtypeStruct(input_.type.shape, DTYPES[input_.type.dtype])  # type: ignore[no-untyped-call]
        for input_ in form.program.inputs
    ]
