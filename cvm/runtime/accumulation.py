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
    """A machine that can hide what goes on from sample to sample, and open the last outputs alone."""

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
        names = [port.name for port in program.inputs]
        places = []
        for place, output in enumerate(program.outputs):
            if output.name not in names:
                raise BadInput(
                    f"output {brief(output.name)} has no input of its name to go on as: "
                    "the program gathers nothing (`mrt probe` writes one that does)"
                )
            number = names.index(output.name)
            target = program.inputs[number]
            low, high = form.intervals[output.value]
            type_ = form.types[output.value]
            if type_ != target.type or low < target.lo or high > target.hi:
                raise BadInput(
                    f"output {brief(output.name)} is {type_} in {low}..{high}; "
                    f"it goes on as {target.type} in {target.lo}..{target.hi}"
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
        carried = {number for number, _ in self.places}
        remaining = [
            port
            for number, port in enumerate(program.inputs)
            if number not in carried
        ]
        return replace(program, inputs=tuple(remaining))

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
    """Run the samples one after another and return the outputs of the last."""
    if isinstance(machine, CarryingMachine):
        return machine.accumulate(samples)
    state = carried.start()
    for sample in samples:
        state = machine.run({**sample, **state})
    return state
