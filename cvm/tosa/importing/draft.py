"""A program being written: steps whose types are inferred as they are added, numbered when all are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cvm.program import (
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
    dtype_name,
)
from cvm.proof.validate import infer_type

Key = tuple[str, tuple[int, ...], bytes]


@dataclass(frozen=True, eq=False)
class DraftValue:
    """A value: an input or the result of a step, by its place; or a constant."""

    type: TensorType
    step: int = -1
    input: int = -1
    constant: IntArray | None = None


@dataclass(frozen=True)
class DraftStep:
    """An instruction before its operands have numbers."""

    name: str
    operands: tuple[DraftValue, ...]
    attributes: Mapping[str, Attribute]


@dataclass
class ProgramDraft:
    """Inputs and steps in order."""

    inputs: list[Input] = field(default_factory=list)
    steps: list[DraftStep] = field(default_factory=list)

    def input(self, port: Input) -> DraftValue:
        """Add an input."""
        self.inputs.append(port)
        return DraftValue(port.type, input=len(self.inputs) - 1)

    def add(
        self, name: str, *operands: DraftValue, **attributes: Attribute
    ) -> DraftValue:
        """Add a step; Invalid names the constraint that it breaks."""
        places = tuple(range(len(operands)))
        result = infer_type(
            Instruction(name, places, attributes),
            [operand.type for operand in operands],
            tuple(operand.constant for operand in operands),
        )
        self.steps.append(DraftStep(name, operands, attributes))
        return DraftValue(result, step=len(self.steps) - 1)

    def program(self, outputs: Sequence[tuple[str, DraftValue]]) -> Program:
        """The steps that outputs need, and their constants in the order of their first use."""
        needed = self._needed([value for _, value in outputs])
        constants: dict[Key, IntArray] = {}
        for index in needed:
            for value in self.steps[index].operands:
                if value.constant is not None:
                    constants.setdefault(_key(value), value.constant)
        first = len(self.inputs)
        numbers = {key: first + n for n, key in enumerate(constants)}
        start = first + len(constants)
        places = {index: start + n for n, index in enumerate(needed)}

        def number(value: DraftValue) -> int:
            if value.constant is not None:
                return numbers[_key(value)]
            return value.input if value.input >= 0 else places[value.step]

        return Program(
            tuple(self.inputs),
            tuple(constants.values()),
            tuple(
                Instruction(
                    step.name,
                    tuple(map(number, step.operands)),
                    step.attributes,
                )
                for step in map(self.steps.__getitem__, needed)
            ),
            tuple(Output(name, number(value)) for name, value in outputs),
        )

    def _needed(self, outputs: Sequence[DraftValue]) -> list[int]:
        """The steps that an output is computed from, in order."""
        needed = {value.step for value in outputs}
        for index in reversed(range(len(self.steps))):
            if index in needed:
                needed |= {
                    operand.step for operand in self.steps[index].operands
                }
        return sorted(index for index in needed if index >= 0)


def constant(values: IntArray) -> DraftValue:
    """A constant value."""
    array = np.asarray(values)
    return DraftValue(
        TensorType(dtype_name(array), array.shape), constant=array
    )


def filled(value: int, dtype: str, rank: int) -> DraftValue:
    """A constant of one element that broadcasts."""
    return constant(np.full((1,) * rank, value, DTYPES[dtype]))


def _key(value: DraftValue) -> Key:
    array = value.constant
    assert array is not None
    return value.type.dtype, array.shape, array.tobytes()
