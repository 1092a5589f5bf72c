"""The one place where a target refuses a program; a single message names every instruction that it lacks."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from cvm.errors import BadInput
from cvm.program import Program
from cvm.proof.validate import Proven

NUMBERS_SHOWN = 3


@dataclass(frozen=True)
class Refusal:
    """An instruction that a target cannot express: its name, the value that it defines, and why."""

    name: str
    value: int
    reason: str


def require_expressible(
    program: Program, target: str, instructions: Container[str]
) -> None:
    """Raise `BadInput` unless the target has every instruction of the program."""
    missing: dict[str, list[int]] = {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        if instruction.name not in instructions:
            missing.setdefault(instruction.name, []).append(number)
    if missing:
        listed = ", ".join(map(_described, missing.items()))
        raise BadInput(f"the target {target} has no {listed}")


def refuse(target: str, refusals: Sequence[Refusal], advice: str) -> None:
    """Raise `BadInput` that names every refused instruction with its reason, and ends with the advice; unless there is none."""
    groups: dict[tuple[str, str], list[int]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.name, refusal.reason), []).append(
            refusal.value
        )
    listed = [
        f"{_described((name, numbers))}: {reason}"
        for (name, reason), numbers in groups.items()
    ]
    if listed:
        raise BadInput(
            f"the target {target} cannot express {'; '.join(listed)}. {advice}"
        )


def require_small_values(form: Proven, target: str, most: int) -> None:
    """Raise `BadInput` if a value has more elements than the target can count."""
    for number, type_ in enumerate(form.types):
        if type_.elements > most:
            raise BadInput(
                f"%{number} is {type_}; the target {target} takes values of at most {most:,} elements"
            )


def _described(group: tuple[str, list[int]]) -> str:
    """The name of an instruction, with the first values that it defines."""
    name, numbers = group
    shown = " ".join(f"%{number}" for number in numbers[:NUMBERS_SHOWN])
    more = len(numbers) - NUMBERS_SHOWN
    return f"{name} ({shown}{f' and {more} more' if more > 0 else ''})"
