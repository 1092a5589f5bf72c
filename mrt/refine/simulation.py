"""The integers that samples give to the values of a program that is still being written."""

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

MEMORY = 2**29  # bytes of values that are kept
SHORT = 100  # instructions between two values asked for; more are met where a state goes on beside them, step by step


class Simulation:
    """Computes values when they are asked for, from those asked for before: the inputs, and the last as far as memory allows."""

    def __init__(
        self, builder: ProgramBuilder, samples: Sequence[Sample], pool: Executor
    ) -> None:
        self._builder = builder
        self._samples = samples
        self._pool = pool
        self._kept: dict[Handle, list[IntArray]] = {}

    def values(self, handle: Handle) -> list[IntArray]:
        """The value's integers, for each sample."""
        if handle not in self._kept:
            self._see_inputs()
        if handle not in self._kept:  # it may have been an input
            self._kept |= self._computed(handle)
            self._forget()
        return self._kept[handle]

    def _forget(self) -> None:
        """Drop the oldest values that are no inputs, and not the last."""
        old = [handle for handle in self._kept if handle not in self._builder.inputs][
            :-1
        ]
        size = sum(map(_bytes, self._kept.values()))
        while old and size > MEMORY:
            size -= _bytes(self._kept.pop(old.pop(0)))

    def _see_inputs(self) -> None:
        missing = [
            handle for handle in self._builder.inputs if handle not in self._kept
        ]
        if missing:
            program = self._builder.header()
            integers = [boundary.quantize(program, sample) for sample in self._samples]
            for handle in missing:
                name = self._builder.inputs[handle].name
                self._kept[handle] = [item[name] for item in integers]

    def _computed(self, handle: Handle) -> dict[Handle, list[IntArray]]:
        """The value, last, and what else is worth keeping of what leads to it."""
        part = self._builder.part(
            handle,
            frozenset(self._kept),
            short=SHORT,
            room=MEMORY // (2 * len(self._samples)),
        )
        machine = _machine(check(part.program))
        machine.prepare(traced=False)
        names = [item.name for item in part.program.inputs]
        columns = zip(*(self._kept[item] for item in part.read), strict=True)

        def run(column: tuple[IntArray, ...]) -> Mapping[str, IntArray]:
            return machine.run(dict(zip(names, column, strict=True)))

        found = list(self._pool.map(run, columns))
        return {
            item: [sample[output.name] for sample in found]
            for item, output in zip(part.given, part.program.outputs, strict=True)
        }


def _bytes(values: list[IntArray]) -> int:
    return sum(array.nbytes for array in values)


def _machine(form: WellFormed) -> Machine:
    try:
        return choose(prove(form))
    except Unproven:  # a part forgets what is known of single channels of its inputs; the whole was proven with it
        return Reference(form, checked=True)
