"""A program that gathers over samples: each of its outputs goes on as the input of that name, and the last ones are the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from cvm.errors import BadInput, brief
from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import Proven, WellFormed
from cvm.runtime.machine import Machine, Sample
from cvm.runtime.record import samples_of


@runtime_checkable
class CarryingMachine(Protocol):
    """A machine that can keep what goes on to itself, and open the last of it alone."""

    def accumulate(self, samples: Iterable[Sample]) -> dict[str, IntArray]:
        """The outputs after the last sample, by name."""


@dataclass(frozen=True)
class Carried:
    """The places of inputs and of the outputs that go on as these."""

    form: WellFormed
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, form: Proven) -> Carried:
        """BadInput unless every output goes on, within the interval of its input, and some input does not."""
        program = form.program
        names = [item.name for item in program.inputs]
        places = []
        for place, output in enumerate(program.outputs):
            if output.name not in names:
                raise BadInput(
                    f"output {brief(output.name)} has no input of its name to go on as: "
                    "the program gathers nothing (`mrt probe` writes one that does)"
                )
            number = names.index(output.name)
            given = program.inputs[number]
            low, high = form.intervals[output.value]
            found = form.types[output.value]
            if found != given.type or low < given.lo or high > given.hi:
                raise BadInput(
                    f"output {brief(output.name)} is {found} in {low}..{high}; "
                    f"it goes on as {given.type} in {given.lo}..{given.hi}"
                )
            places.append((number, place))
        if len(places) == len(names):
            raise BadInput(
                "all inputs go on from sample to sample: none is left for the samples"
            )
        return cls(form, tuple(places))

    @property
    def program(self) -> Program:
        """The program without the inputs that go on, as samples see it."""
        program = self.form.program
        gone = {number for number, _ in self.places}
        left = [
            item
            for number, item in enumerate(program.inputs)
            if number not in gone
        ]
        return replace(program, inputs=tuple(left))

    def start(self) -> dict[str, IntArray]:
        """What goes on before the first sample: the least integers."""
        inputs = self.form.program.inputs
        return {
            inputs[number].name: np.full(
                inputs[number].type.shape,
                inputs[number].lo,
                DTYPES[inputs[number].type.dtype],
            )
            for number, _ in self.places
        }

    def samples(self, path: Path, *, real: bool) -> list[dict[str, IntArray]]:
        """The samples of a file."""
        return samples_of(
            WellFormed(self.program, self.form.types), path, real=real
        )


def accumulate(
    carried: Carried,
    machine: Machine,
    samples: Iterable[Mapping[str, IntArray]],
) -> dict[str, IntArray]:
    """Run the samples one after another; the outputs of the last."""
    if isinstance(machine, CarryingMachine):
        return machine.accumulate(samples)
    found = carried.start()
    for sample in samples:
        found = machine.run({**sample, **found})
    return found
