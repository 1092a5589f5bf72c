"""Checks that a program as written contains only integers, value by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPES, Attribute
from cvm.proof.validate import WellFormed
from mrt.errors import NotProvable


@dataclass(frozen=True)
class IntegerCheck:
    """The values that were checked, by dtype (all integers or booleans), and the instructions.

    It also holds the dtypes of inputs and outputs.
    """

    values: Mapping[str, int]
    constants: int
    instructions: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def sentence(self) -> str:
        """Return the result of the check as a sentence."""
        kinds = ", ".join(
            f"{count} {dtype}" for dtype, count in self.values.items()
        )
        return (
            f"all {sum(self.values.values())} values are integers ({kinds}); "
            f"none of the {self.instructions} instructions takes or gives a real number"
        )


def check_integers(form: WellFormed) -> IntegerCheck:
    """Check every value, constant and attribute of a program as read.

    Raise NotProvable, naming it, if one is not an integer.
    """
    program = form.program
    for number, type_ in enumerate(form.types):
        if (
            type_.dtype not in DTYPES
            or np.dtype(DTYPES[type_.dtype]).kind not in "biu"
        ):
            raise NotProvable(
                f"value %{number} of the program has the dtype {type_.dtype}, which is no integer"
            )
    for number, array in enumerate(program.constants, len(program.inputs)):
        if array.dtype.kind not in "biu":
            raise NotProvable(
                f"constant %{number} of the program holds {array.dtype}, which is no integer"
            )
    for number, entry in enumerate(
        program.instructions, program.first_instruction
    ):
        if entry.name not in INSTRUCTIONS:
            raise NotProvable(
                f"instruction %{number} of the program is '{entry.name}', which the machine does not have"
            )
        for name, value in entry.attributes.items():
            if not _is_integral(value):
                raise NotProvable(
                    f"instruction %{number} ({entry.name}) of the program has {name} = {value}"
                )
    return IntegerCheck(
        values=dict(
            sorted(
                Counter(type_.dtype for type_ in form.types).items(),
                key=lambda pair: list(DTYPES).index(pair[0]),
            )
        ),
        constants=len(program.constants),
        instructions=len(program.instructions),
        inputs={entry.name: entry.type.dtype for entry in program.inputs},
        outputs={
            entry.name: form.types[entry.value].dtype
            for entry in program.outputs
        },
    )


def _is_integral(value: Attribute) -> bool:
    """Whether an attribute is an integer, a boolean, a word, or several integers."""
    items = value if isinstance(value, tuple) else (value,)
    return all(isinstance(element, int | str) for element in items)
