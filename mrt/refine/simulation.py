"""Computes the integers of a program that is being written, on samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from cvm.errors import Unproven
from cvm.program import IntArray
from cvm.proof.validate import WellFormed, check, prove
from cvm.runtime import boundary
from cvm.runtime.machine import Machine, Reference, choose
from mrt.calibrate.samples import Sample
from mrt.quantize.builder import Handle, ProgramBuilder

MEMORY = 3 * 2**26  # bytes of values that are kept
SHORT = 100
"""The most instructions between two values that are read.

There are more where a recurrent state goes on beside the values, step by step.
"""


class Simulation:
    """Computes values of the program when they are read, from values read before.

    It keeps the inputs' integers, but not the samples, and the latest of the other values
    as far as memory allows. All inputs must have been declared.
    """

    def __init__(
        self, builder: ProgramBuilder, samples: Sequence[Sample], pool: Executor
    ) -> None:
        self._builder = builder
        self._pool = pool
        self._count = len(samples)
        self._kept: dict[Handle, list[IntArray]] = {}
        program = builder.header()
        integers = [boundary.quantize(program, sample) for sample in samples]
        for handle, input_ in builder.inputs.items():
            self._kept[handle] = [
                of_sample[input_.name] for of_sample in integers
            ]

    def values(self, handle: Handle) -> list[IntArray]:
        """Return the value's integers, for each sample."""
        if handle not in self._kept:
            self._kept |= self._computed(handle)
            self._forget()
        return self._kept[handle]

    def _forget(self) -> None:
        """Drop the oldest values, but neither inputs nor the latest value."""
        inputs = self._builder.inputs
        computed = [handle for handle in self._kept if handle not in inputs]
        size = sum(map(_bytes, self._kept.values()))
        for handle in computed[:-1]:
            if size <= MEMORY:
                break
            size -= _bytes(self._kept.pop(handle))

    def _computed(self, handle: Handle) -> dict[Handle, list[IntArray]]:
        """Return the value, last, and other values on the way to it that are worth keeping."""
        subprogram = self._builder.subprogram(
            handle,
            frozenset(self._kept),
            short=SHORT,
            room=MEMORY // (2 * self._count),
        )
        program = subprogram.program
        machine = _machine(check(program))
        machine.prepare(traced=False)
        names = [input_.name for input_ in program.inputs]

        def run(operands: tuple[IntArray, ...]) -> Mapping[str, IntArray]:
            return machine.run(dict(zip(names, operands, strict=True)))

        operands = [self._kept[operand] for operand in subprogram.operands]
        by_sample = zip(*operands, strict=True)
        results = list(self._pool.map(run, by_sample))
        return {
            result: [of_sample[output.name] for of_sample in results]
            for result, output in zip(
                subprogram.results, program.outputs, strict=True
            )
        }


def _bytes(values: list[IntArray]) -> int:
    return sum(array.nbytes for array in values)


def _machine(form: WellFormed) -> Machine:
    """Return the fastest machine; the reference where the subprogram alone is not proven.

    The whole program is proven with intervals of single channels, which the inputs of a
    subprogram do not have.
    """
    try:
        return choose(prove(form))
    except Unproven:
        return Reference(form, checked=True)
