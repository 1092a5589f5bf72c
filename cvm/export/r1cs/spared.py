"""Rescales whose results need no bits of their own: they are added, and the rows of the sum's function prove them.

The rows of such a rescale are d * q + r = m * x + b with r in 0..d - 1, and nothing holds q to be an integer: in the field
there is a q for every r. But the function of the sum z has rows by which M * z is an integer below 2^64 in size, or is one
over the step of the division inside its bend. With z = q1 + q2 and n = m * x + b, times d1 * d2:

    M * (d2 * (n1 - r1) + d1 * (n2 - r2)) = d1 * d2 * integer

holds in the field, and so for integers, as both sides are far below the prime. If d1 has no divisor in common with M and d2,
it divides n1 - r1, so r1 is the remainder and q1 the quotient; likewise q2. M stands for every slope on the way from z.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import gcd, prod

import numpy as np

from cvm.export.r1cs import functions
from cvm.export.r1cs.fit import MOST
from cvm.export.r1cs.fractions import Division, divisions
from cvm.export.r1cs.secret import Secret, joined
from cvm.export.r1cs.system import System, in_range, weights_of
from cvm.export.refusals import Refusal
from cvm.lower import Lowering, ValueFunction
from cvm.lower.runnable import RunnableFunction, runnable
from cvm.lower.step_function import step_function
from cvm.program import DTYPE_RANGES

TRIED = 64
Divisions = list[Division | None]


@dataclass(frozen=True)
class Spared:
    """The division of each element of a spared rescale, None where it keeps its bits; the plans of functions of their sums."""

    divisions: Mapping[int, Divisions]
    plans: Mapping[int, list[functions.Plan | None]]


def spared_of(lowering: Lowering) -> Spared:
    """The rescales of a program that are spared their bits."""
    divided: dict[int, Divisions] = {}
    plans: dict[int, list[functions.Plan | None]] = {}
    for function in lowering.functions.values():
        terms = list(_terms(lowering, function))
        if not terms:
            continue
        ready = runnable(lowering, function)
        steps = step_function(ready)
        if steps is None:
            continue
        number = function.value
        plans[number] = functions.plans_of(ready, steps)
        rescales = [
            runnable(lowering, lowering.functions[term]) for term in terms
        ]
        term_divisions = _divisions(ready, plans[number], rescales)
        divided.update(zip(terms, term_divisions, strict=True))
    return Spared(divided, plans)


def _terms(lowering: Lowering, function: ValueFunction) -> Iterator[int]:
    """The rescales that only a sum reads, if only this function reads the sum."""
    program = lowering.form.program
    readers: dict[int, set[int]] = {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        for value in instruction.operands:
            readers.setdefault(value, set()).add(number)
    outputs = {output.value for output in program.outputs}
    sum_value = function.argument
    if sum_value not in lowering.kept or sum_value in outputs:
        return
    instruction = program.instructions[sum_value - program.first_instruction]
    is_only_reader = readers.get(sum_value, set()) <= set(function.members)
    if instruction.name not in ("add", "sub") or not is_only_reader:
        return
    shape = lowering.form.types[sum_value].shape
    for value in instruction.operands:
        member = lowering.functions.get(value)
        if member is None or len(member.members) > 1 or value in outputs:
            continue
        name = program.instructions[value - program.first_instruction].name
        same_shape = lowering.form.types[value].shape == shape
        if name == "rescale" and readers[value] == {sum_value} and same_shape:
            yield value


def _divisions(
    function: RunnableFunction,
    plans: list[functions.Plan | None],
    rescales: list[RunnableFunction],
) -> list[Divisions]:
    """For each rescale the division of each element."""
    rows = [function.classes, *(rescale.classes for rescale in rescales)]
    unique, places = np.unique(
        np.stack([row.reshape(-1) for row in rows]),
        axis=1,
        return_inverse=True,
    )
    chosen = []
    for first, *others in unique.T.tolist():
        factors = functions.slopes_of(plans[first])
        place_divisions: Divisions = []
        for rescale, class_ in zip(rescales, others, strict=True):
            division = _division(rescale, class_, factors)
            place_divisions.append(division)
            if division is not None:
                factors = [*factors, division.step]
        chosen.append(place_divisions)
    return [
        [chosen[place][column] for place in places.reshape(-1)]
        for column in range(len(rescales))
    ]


def _division(
    rescale: RunnableFunction, class_: int, factors: list[int]
) -> Division | None:
    """A division of a class whose step has no divisor in common with the factors; None without factors or such a division."""
    (number,) = rescale.function.members
    instruction = rescale.instruction(number)
    class_array = np.array([class_])
    multiplier, shift = (
        int(rescale.constant(number, place, class_array)[0]) for place in (1, 2)
    )
    input_zp = instruction.integer("input_zp")
    output_zp = instruction.integer("output_zp")
    offset = (1 << (shift - 1)) - multiplier * input_zp
    division = Division(multiplier, offset + (output_zp << shift), 1 << shift)
    low, high = int(rescale.low[class_]), int(rescale.high[class_])
    least, most = sorted((division.at(low), division.at(high)))
    limits = DTYPE_RANGES[rescale.lowering.form.types[number].dtype]
    if not factors or least < limits[0] or most > limits[1] or low == high:
        return None
    for candidate in islice(divisions(division, low, high), TRIED):
        size = abs(candidate.slope) * max(-low, high) + abs(candidate.offset)
        if gcd(candidate.step, prod(factors)) == 1 and size < MOST:
            return candidate
    return None


def apply(
    system: System,
    x: Secret,
    rescale: RunnableFunction,
    divided: Divisions,
) -> tuple[Secret, list[Refusal]]:
    """The rescale of `x`: new wires held to nothing but their remainders where there is a division."""
    flat = x.flat()
    bare = np.array([division is not None for division in divided])
    with_division = np.flatnonzero(bare)
    without_division = np.flatnonzero(~bare)
    results = [_written(system, flat.at(with_division), divided)]
    refusals: list[Refusal] = []
    if len(without_division):
        element_classes = rescale.classes.reshape(-1)[without_division]
        result, refusals = functions.by_members(
            system, flat.at(without_division), rescale, element_classes
        )
        results.append(result)
    order = np.argsort(np.concatenate([with_division, without_division]))
    return joined(results).at(order).reshaped(x.shape), refusals


def _written(system: System, x: Secret, divided: Divisions) -> Secret:
    """The rows of a vector, by the divisions that there are."""
    columns = [(d.slope, d.offset, d.step) for d in divided if d is not None]
    numbers = np.array(columns, np.int64).reshape(-1, 3)
    counts = np.array(
        [(step - 1).bit_length() for step in numbers[:, 2].tolist()]
    )
    quotients = [x.at(slice(0, 0))]
    places = [np.zeros(0, np.int64)]
    for count in np.unique(counts):
        indices = np.flatnonzero(counts == count)
        slope, offset, step = numbers[indices].T
        dividend = x.at(indices).times(slope).plus(offset)
        y = system.new(dividend.values // step)
        in_range(system, dividend.minus(y.times(step)), weights_of(step - 1))
        quotients.append(y)
        places.append(indices)
    order = np.argsort(np.concatenate(places))
    return joined(quotients).at(order)
