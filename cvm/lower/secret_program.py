"""A program as steps for an engine on secrets, and what the client computes before and after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvm.lower import sums
from cvm.lower.comparisons import (
    COMPARING,
    compared,
    greatest,
    least,
    same_units,
    windows,
)
from cvm.lower.functions import AppliedFunction, apply
from cvm.lower.lowering import Lowering
from cvm.lower.movements import is_movement, places_of
from cvm.lower.parties import Parties, operands, parties
from cvm.lower.runnable import runnable
from cvm.lower.secret_steps import (
    NoSteps,
    SecretStep,
    SecretValue,
    TooWide,
)
from cvm.lower.stored import from_zero, plain
from cvm.lower.writer import StepWriter
from cvm.program import Instruction, IntArray
from cvm.program.bounds import Bounds


@dataclass(frozen=True)
class NotComputed:
    """An instruction for which there are no steps; `bits` are those of a look-up that is too wide."""

    value: int
    name: str
    reason: str
    bits: int | None = None


@dataclass(frozen=True, eq=False)
class SecretProgram:
    """The steps and their values, inputs first; values of the program by number, and who computes what."""

    lowering: Lowering
    parties: Parties
    steps: Sequence[SecretStep]
    values: Sequence[SecretValue]
    by_number: Mapping[int, SecretValue]
    functions: Mapping[int, AppliedFunction]
    refused: Sequence[NotComputed]


def secret_program(
    lowering: Lowering, who: Parties | None = None
) -> SecretProgram:
    """Write the steps; instructions without any are listed, and stand for what they are proven to be."""
    return _Translator(lowering, who or parties(lowering)).translated()


class _Translator:
    """Takes the server's values in order."""

    def __init__(self, lowering: Lowering, who: Parties) -> None:
        self.lowering, self.who = lowering, who
        self.writer = StepWriter()
        self.by_number: dict[int, SecretValue] = {}
        self.functions: dict[int, AppliedFunction] = {}
        self.refused: list[NotComputed] = []

    def translated(self) -> SecretProgram:
        for number in self.who.encrypted:
            stored = from_zero(self.bounds(number))
            self.by_number[number] = self.writer.input(
                self.shape(number), stored
            )
        for number in self.who.server:
            try:
                value = self.value(number)
            except NoSteps as problem:
                name = self.instruction(number).name
                refused = NotComputed(number, name, *problem.args)
                self.refused.append(refused)
                value = self.unknown(number)
            self.by_number[number] = value
        return SecretProgram(
            self.lowering,
            self.who,
            self.writer.steps,
            self.writer.values,
            self.by_number,
            self.functions,
            self.refused,
        )

    def shape(self, number: int) -> tuple[int, ...]:
        return self.lowering.form.types[number].shape or (1,)

    def bounds(self, number: int) -> Bounds:
        """The proven interval of each index of the last axis."""
        bounds, count = self.lowering.bounds[number], self.shape(number)[-1]
        if len(bounds.lo) == count:
            return bounds
        hull = bounds.hull()
        return Bounds(np.repeat(hull.lo, count), np.repeat(hull.hi, count))

    def instruction(self, number: int) -> Instruction:
        program = self.lowering.form.program
        return program.instructions[number - program.first_instruction]

    def unknown(self, number: int) -> SecretValue:
        """A value with its proven bounds that no step computes."""
        shape = self.shape(number)
        return self.writer.input_of_nobody(shape, plain(self.bounds(number)))

    def value(self, number: int) -> SecretValue:
        """The value of the server with this number; raises `NoSteps`."""
        if number in self.lowering.functions:
            return self.function(number)
        instruction = self.instruction(number)
        secrets = [self.by_number[x] for x in operands(self.lowering, number)]
        kind = _kind(instruction)
        result = kind(self, number, instruction, secrets)
        tight = result.stored.within(self.bounds(number))
        return SecretValue(result.number, result.shape, tight)

    def function(self, number: int) -> SecretValue:
        function = self.lowering.functions[number]
        argument = self.by_number[function.argument]
        runner = runnable(self.lowering, function, argument.stored)
        applied = apply(self.writer, runner, argument)
        self.functions[number] = applied
        if applied.value is None:
            assert applied.width is not None
            raise TooWide(applied.width.index)
        return applied.value

    def linear(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        if len(secrets) > 1:
            raise NoSteps("it multiplies two secrets")
        _, weights, bias = self.constants(instruction)
        assert weights is not None and bias is not None
        rule = {"conv2d": sums.conv2d, "dense": sums.dense}[instruction.name]
        return rule(self.writer, instruction, secrets[0], (weights, bias))

    def constants(self, instruction: Instruction) -> list[IntArray | None]:
        """The constant among the operands, in their places."""
        return [
            self.lowering.constant_values.get(value)
            for value in instruction.operands
        ]

    def moved(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        constants = self.constants(instruction)
        if instruction.name == "gather" and constants[1] is None:
            raise NoSteps("its places are secret")
        places, fillers = places_of(
            instruction,
            [
                self.by_number[value] if array is None else array
                for value, array in zip(
                    instruction.operands, constants, strict=True
                )
            ],
        )
        shape = self.shape(number)
        return self.writer.take(
            secrets, places.reshape(shape), fillers.reshape(shape)
        )

    def summed(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        axis, shape = instruction.integer("axis"), self.shape(number)
        return sums.reduce_sum(self.writer, secrets[0], axis, shape)

    def extreme(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        (x,) = secrets
        shape = self.shape(number)
        if instruction.name == "max_pool2d":
            chosen = windows(instruction, x.shape)
        else:
            places = np.arange(x.elements).reshape(x.shape)
            rows = np.moveaxis(places, instruction.integer("axis"), 0)
            chosen = [row.reshape(shape) for row in rows]
        candidates = [self.writer.take([x], places) for places in chosen]
        aligned = same_units(self.writer, candidates)
        rule = least if instruction.name == "reduce_min" else greatest
        return rule(self.writer, aligned, number)

    def of_two(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        shape = self.shape(number)
        if len(secrets) != 2:
            raise NoSteps("it repeats a secret beside a constant")
        x, y = (self.spread(secret, shape) for secret in secrets)
        if instruction.name in ("add", "sub"):
            rule = sums.add if instruction.name == "add" else sums.sub
            return rule(self.writer, x, y)
        x, y = same_units(self.writer, [x, y])
        if instruction.name in COMPARING:
            return compared(self.writer, instruction.name, x, y, number)
        smaller = instruction.name in ("minimum", "logical_and")
        choose = least if smaller else greatest
        return choose(self.writer, [x, y], number)

    def spread(self, x: SecretValue, shape: tuple[int, ...]) -> SecretValue:
        """The value repeated along axes of 1."""
        if x.shape == shape:
            return x
        places = np.arange(x.elements).reshape(x.shape)
        return self.writer.take([x], np.broadcast_to(places, shape))

    def lacking(
        self, number: int, instruction: Instruction, secrets: list[SecretValue]
    ) -> SecretValue:
        products = instruction.name in ("mul", "matmul") and len(secrets) > 1
        raise NoSteps(
            "it multiplies two secrets" if products else "it has no steps"
        )


Rule = Callable[[_Translator, int, Instruction, list[SecretValue]], SecretValue]
KINDS: Mapping[str, Rule] = {
    **dict.fromkeys(("conv2d", "dense"), _Translator.linear),
    **dict.fromkeys(
        ("reduce_max", "reduce_min", "max_pool2d"), _Translator.extreme
    ),
    **dict.fromkeys(
        ("add", "sub", "maximum", "minimum", "logical_and", "logical_or"),
        _Translator.of_two,
    ),
    **dict.fromkeys(COMPARING, _Translator.of_two),
    "reduce_sum": _Translator.summed,
}


def _kind(instruction: Instruction) -> Rule:
    if is_movement(instruction):
        return _Translator.moved
    return KINDS.get(instruction.name, _Translator.lacking)
