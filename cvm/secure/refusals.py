"""What is refused before anything runs: one message names every instruction."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.errors import BadInput
from cvm.program.bounds import Bounds
from cvm.proof.validate import Proven
from cvm.secure.calls import call_of
from cvm.secure.steps import comparisons_of

MOST_COMPARISONS = 2**22  # of a table: about 100 MB sent by each party
SHOWN = 3
# Found by the vectors of argsort; aby3 and semi2k keep the order.
UNSTABLE = "SPU's sorting exchanges equal numbers under cheetah, and what it opens to the parties is not known"
REASONS = {"argsort": UNSTABLE, "nms": f"it sorts, and {UNSTABLE}"}


def require_runnable(form: Proven, bounds: Mapping[int, Bounds]) -> None:
    """BadInput that names every instruction which cannot run among parties, with the reason."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number in range(form.program.first_instruction, len(form.types)):
        name, reason = _refusal(form, number, bounds)
        if reason:
            groups.setdefault((name, reason), []).append(number)
    if groups:
        listed = "; ".join(
            f"{name} ({_numbers(numbers)}): {reason}"
            for (name, reason), numbers in groups.items()
        )
        raise BadInput(f"the back end spu cannot run {listed}")


def _refusal(
    form: Proven, number: int, bounds: Mapping[int, Bounds]
) -> tuple[str, str]:
    """The name of an instruction, and why it cannot run; empty if it can."""
    program = form.program
    instruction = program.instructions[number - program.first_instruction]
    if instruction.name not in ("table", "interpolate"):
        return instruction.name, REASONS.get(instruction.name, "")
    comparisons = comparisons_of(call_of(form, number, bounds))
    count = comparisons * form.types[number].elements
    if count <= MOST_COMPARISONS:
        return instruction.name, ""
    reason = (
        f"{count:,} comparisons, at most {MOST_COMPARISONS:,}; "
        "convert with fewer bits before it"
    )
    return instruction.name, reason


def _numbers(numbers: list[int]) -> str:
    shown = " ".join(f"%{number}" for number in numbers[:SHOWN])
    more = len(numbers) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
