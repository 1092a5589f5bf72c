"""The one place where a target refuses a program: a single message names every instruction that it lacks."""

from __future__ import annotations

from collections.abc import Container

from cvm.errors import BadInput
from cvm.program import Program

NUMBERS_SHOWN = 3


def require_expressible(
    program: Program, target: str, instructions: Container[str]
) -> None:
    """Raise `BadInput` unless the target has every instruction of the program."""
    missing: dict[str, list[int]] = {}
    for number, item in enumerate(
        program.instructions, program.first_instruction
    ):
        if item.name not in instructions:
            missing.setdefault(item.name, []).append(number)
    if missing:
        listed = ", ".join(map(_described, missing.items()))
        raise BadInput(f"the target {target} has no {listed}")


def _described(item: tuple[str, list[int]]) -> str:
    """The name, with the first values that it defines."""
    name, numbers = item
    shown = " ".join(f"%{number}" for number in numbers[:NUMBERS_SHOWN])
    more = len(numbers) - NUMBERS_SHOWN
    return f"{name} ({shown}{f' and {more} more' if more > 0 else ''})"
