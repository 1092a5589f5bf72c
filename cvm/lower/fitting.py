"""Whether a program fits homomorphic encryption: how wide its look-ups and sums are, and what is too wide."""

from __future__ import annotations

from dataclasses import dataclass

from cvm.lower.functions import MOST_INDEX_BITS
from cvm.lower.lowering import Lowering
from cvm.lower.secret_program import SecretProgram, secret_program
from cvm.lower.secret_steps import TableLookUp

MOST_SUM_BITS = 18
"""Of a sum in a program with look-ups: for wider ones Concrete 2.11 finds no parameters."""

MOST_BESIDE_TRUNCATED = 10
"""Bits left of an index: beside look-ups that are truncated, Concrete 2.11 found no parameters for more in the networks tried."""


@dataclass(frozen=True)
class Misfit:
    """An instruction that does not fit: its name, the value that it defines, and why."""

    name: str
    value: int
    reason: str


@dataclass(frozen=True)
class Fit:
    """Look-ups of single integers, the bits of the widest, and what does not fit.

    `index` is before and `table` after the bits are dropped that cannot matter. `doubtful` are widths that fit one by one
    and for which Concrete has found no parameters together.
    """

    look_ups: int
    index: int
    table: int
    sums: int
    misfits: tuple[Misfit, ...]
    doubtful: bool

    def line(self) -> str:
        """The same in one line."""
        widths = (
            f"{self.look_ups:,} look-ups on the server, indices of up to {self.index} bits, tables of {self.table}, "
            f"sums of {self.sums}"
        )
        if self.doubtful and not self.misfits:
            return (
                f"{widths}: fits by its bits, but Concrete 2.11 found no parameters for networks with tables of more than "
                f"{MOST_BESIDE_TRUNCATED} bits beside truncated ones: try `run.py simulate` of its export, or give fewer "
                "--activation-bits or --sum-bits"
            )
        if not self.misfits:
            return f"{widths}: fits by its bits; `run.py simulate` of its export shows whether Concrete has parameters"
        listed = "; ".join(
            f"{misfit.name} (%{misfit.value}): {misfit.reason}"
            for misfit in self.misfits[:3]
        )
        more = len(self.misfits) - 3
        return f"{widths}: does not fit: {listed}{f'; {more} more' if more > 0 else ''}"


def fit_of(lowering: Lowering) -> Fit:
    """How a program fits, with the client's part in clear."""
    return measured(secret_program(lowering))


def measured(program: SecretProgram) -> Fit:
    """The same of steps that are written already."""
    tables = [s for s in program.steps if isinstance(s, TableLookUp)]
    index_bits = [step.bits - step.dropped for step in tables]
    counts = [program.values[step.operand].elements for step in tables]
    return Fit(
        sum(counts),
        max((step.bits for step in tables), default=0),
        max(index_bits, default=0),
        max((value.stored.bits for value in program.values), default=0),
        tuple(_misfits(program)),
        max(index_bits, default=0) > MOST_BESIDE_TRUNCATED
        and any(step.dropped for step in tables),
    )


def _misfits(program: SecretProgram) -> list[Misfit]:
    """What has no steps or is too wide; sums are looked at where all have steps."""
    refused = [
        Misfit(
            refusal.name,
            refusal.value,
            f"it needs {refusal.reason}, FHE has {MOST_INDEX_BITS}"
            if refusal.bits
            else refusal.reason,
        )
        for refusal in program.refused
    ]
    if refused or not any(isinstance(s, TableLookUp) for s in program.steps):
        return refused
    source = program.lowering.form.program
    return [
        Misfit(
            source.instructions[number - source.first_instruction].name,
            number,
            f"it is a sum of {value.stored.bits} bits, FHE has {MOST_SUM_BITS} beside look-ups",
        )
        for number, value in program.by_number.items()
        if value.stored.bits > MOST_SUM_BITS
        and number >= source.first_instruction
    ]
