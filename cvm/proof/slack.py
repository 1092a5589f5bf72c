"""How much room a proof leaves: for each value, by how many bits its interval could still grow inside its dtype."""

from __future__ import annotations

from typing import Any

from cvm.errors import Unproven
from cvm.program import DTYPE_RANGES
from cvm.proof.validate import Proven

SUMS_AND_PRODUCTS = {
    "conv2d",
    "conv2d_transpose",
    "dense",
    "matmul",
    "add",
    "sub",
    "mul",
    "reduce_sum",
    "resize",
}
COULD_OVERFLOW = SUMS_AND_PRODUCTS | {
    "intdiv",
    "abs",
    "negate",
    "shift_left",
}  # what all others give fits by definition


def slack(dtype: str, interval: tuple[int, int]) -> int | None:
    """floor(100 * log2 f), exact, f the largest factor that keeps f * interval in the dtype; None where all is 0."""
    low, high = DTYPE_RANGES[dtype]
    pairs = [
        (limit, end)
        for limit, end in ((low, interval[0]), (high, interval[1]))
        if limit * end > 0
    ]
    if dtype == "bool" or not pairs:
        return None
    return min(
        (limit**100 // end**100).bit_length() - 1 for limit, end in pairs
    )


def bits(hundredths: int | None) -> str:
    """A slack for people: "3.07", or "-" where it means nothing."""
    return (
        "-"
        if hundredths is None
        else f"{hundredths // 100}.{hundredths % 100:02d}"
    )


def tightest(form: Proven) -> int | None:
    """The number of the first i32 value with the least slack, of those that could have overflowed."""
    program = form.program
    slacks = {
        number: slack("i32", form.intervals[number])
        for number, instruction in enumerate(
            program.instructions, program.first_instruction
        )
        if form.types[number].dtype == "i32"
        and instruction.name in COULD_OVERFLOW
    }
    finite = {
        number: hundredths
        for number, hundredths in slacks.items()
        if hundredths is not None
    }
    return min(finite, key=lambda number: finite[number]) if finite else None


def as_json(
    form: Proven, total_cost: int, program_id: str, *, every: bool
) -> dict[str, Any]:
    """The proof summary for other programs; slack in hundredths of a bit."""
    number = tightest(form)
    summary: dict[str, Any] = {
        "proven": True,
        "program": program_id,
        "values": len(form.intervals),
        "cost": total_cost,
        "tightest": None if number is None else _value(form, number),
    }
    return (
        {
            **summary,
            "intervals": [_value(form, n) for n in range(len(form.intervals))],
        }
        if every
        else summary
    )


def _value(form: Proven, number: int) -> dict[str, Any]:
    (low, high), type_ = form.intervals[number], form.types[number]
    room = slack(type_.dtype, (low, high))
    return {
        "value": number,
        "type": str(type_),
        "lo": low,
        "hi": high,
        "slack_hundredths": room,
    }


def refusal(problem: Unproven) -> dict[str, Any]:
    """Why there is no proof."""
    return {
        "proven": False,
        "rule": problem.rule,
        "where": problem.where,
        "reason": problem.message,
    }
