"""What a person sees: one row per operator, then each difference that nothing explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.mxnet_judge.compare import Outcome, Verdict
from tests.mxnet_judge.known import KNOWN

MOST_SHOWN = 60


def name_of(verdict: Verdict) -> str:
    """Of the operator that was drawn, or chain."""
    return verdict.case.id.rsplit(":", 1)[0]


def untested(verdicts: Sequence[Verdict]) -> list[str]:
    """Operators of which no case at all was compared, and not for a known reason."""
    compared = (Outcome.AGREE, Outcome.DIFFER)
    seen = {
        name_of(verdict)
        for verdict in verdicts
        if verdict.outcome in compared or verdict.known is not None
    }
    return sorted({name_of(verdict) for verdict in verdicts} - seen)


def show(console: Console, verdicts: Sequence[Verdict], seconds: float) -> None:
    console.print(_table(verdicts))
    for known in KNOWN:
        number = sum(verdict.known is known for verdict in verdicts)
        console.print(
            f"known, {number} cases: {escape(', '.join(known.operators))}: {escape(known.why)}"
        )
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    for verdict in wrong[:MOST_SHOWN]:
        console.print(
            f"[red]{escape(verdict.case.id)}[/] {verdict.outcome}: {escape(verdict.detail)}"
        )
        console.print(f"    {escape(describe(verdict))}")
    if len(wrong) > MOST_SHOWN:
        console.print(f"... and {len(wrong) - MOST_SHOWN} more")
    for name in untested(verdicts):
        console.print(
            f"[red]{escape(name)}[/]: not one of its cases could be compared"
        )
    compared = sum(
        verdict.outcome in (Outcome.AGREE, Outcome.DIFFER)
        for verdict in verdicts
    )
    console.print(
        f"{len(verdicts)} cases, {compared} compared in numbers, {sum(v.known is not None for v in verdicts)} known "
        f"differences, {len(wrong)} unexplained; {seconds:.0f} s"
    )


def describe(verdict: Verdict) -> str:
    """The operators with what they were given."""
    case = verdict.case
    uses = [
        f"{row['op']} {row['attrs']}"
        for row in case.symbol["nodes"]
        if row["op"] != "null"
    ]
    arrays = {**case.inputs, **case.parameters, **case.labels}
    return (
        "; ".join(uses)
        + " on "
        + ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    )


def _table(verdicts: Sequence[Verdict]) -> Table:
    """Operators without anything to say are one row together."""
    table = Table("operator", *(str(outcome) for outcome in Outcome), "known")
    names = dict.fromkeys(name_of(verdict) for verdict in verdicts)
    plain: list[Verdict] = []
    for name in names:
        mine = [verdict for verdict in verdicts if name_of(verdict) == name]
        if all(verdict.outcome == Outcome.AGREE for verdict in mine):
            plain += mine
        else:
            table.add_row(*_row(name, mine))
    others = len({name_of(verdict) for verdict in plain})
    if plain:
        table.add_row(*_row(f"{others} more, all agree", plain))
    table.add_section()
    table.add_row(*_row("all", verdicts))
    return table


def _row(name: str, verdicts: Sequence[Verdict]) -> list[str]:
    counts = Counter(verdict.outcome for verdict in verdicts)
    known = sum(verdict.known is not None for verdict in verdicts)
    return [
        name,
        *(str(counts[outcome] or "") for outcome in Outcome),
        str(known or ""),
    ]
