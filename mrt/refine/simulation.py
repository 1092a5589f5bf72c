"""The integers that samples give to the values of a program that is still being written."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from cvm import boundary
from cvm.errors import Unproven
from cvm.machine import Machine, Reference, choose
from cvm.program import IntArray
from cvm.validate import WellFormed, check, prove
from mrt.calibrate.samples import Sample
from mrt.quantize.builder import Handle, ProgramBuilder

MEMORY = 2**29  # bytes of values that are kept


class Simulation:
    """Computes values when they are asked for, from those asked for before: the inputs, and the last as far as memory allows."""

    def __init__(self, builder: ProgramBuilder, samples: Sequence[Sample], pool: Executor) -> None:
        self._builder = builder
        self._samples = samples
        self._pool = pool
        self._kept: dict[Handle, list[IntArray]] = {}

    def values(self, handle: Handle) -> list[IntArray]:
        """The value's integers, for each sample."""
        if handle not in self._kept:
            self._see_inputs()
        if handle not in self._kept:  # it may have been an input
            self._kept[handle] = self._computed(handle)
            self._forget()
        return self._kept[handle]

    def _forget(self) -> None:
        """Drop the oldest values that are no inputs, and not the last."""
        old = [handle for handle in self._kept if handle not in self._builder.inputs][:-1]
        size = sum(map(_bytes, self._kept.values()))
        while old and size > MEMORY:
            size -= _bytes(self._kept.pop(old.pop(0)))

    def _see_inputs(self) -> None:
        missing = [handle for handle in self._builder.inputs if handle not in self._kept]
        if missing:
            program = self._builder.header()
            integers = [boundary.quantize(program, sample) for sample in self._samples]
            for handle in missing:
                name = self._builder.inputs[handle].name
                self._kept[handle] = [item[name] for item in integers]

    def _computed(self, handle: Handle) -> list[IntArray]:
        part, known = self._builder.part(handle, frozenset(self._kept))
        machine = _machine(check(part))
        machine.prepare(traced=False)
        names = [item.name for item in part.inputs]
        columns = zip(*(self._kept[item] for item in known), strict=True)

        def run(column: tuple[IntArray, ...]) -> IntArray:
            return machine.run(dict(zip(names, column, strict=True)))[part.outputs[0].name]

        return list(self._pool.map(run, columns))


def _bytes(values: list[IntArray]) -> int:
    return sum(array.nbytes for array in values)


def _machine(form: WellFormed) -> Machine:
    try:
        return choose(prove(form))
    except Unproven:  # a part forgets what is known of single channels of its inputs; the whole was proven with it
        return Reference(form, checked=True)
