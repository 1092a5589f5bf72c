"""What a person sees: a row for each operator, each reason with its count, each test that nothing explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.tosa_judge.verdict import (
    CHECKED,
    EXACT,
    LEFT_OUT,
    REJECTED,
    WITHOUT,
    Verdict,
)

MOST_SHOWN = 60


def show(
    console: Console, positive: Sequence[Verdict], negative: Sequence[Verdict]
) -> None:
    """Print everything."""
    console.print(_table(positive, negative))
    reasons = Counter(
        (item.detail, item.operator)
        for item in positive
        if item.outcome == LEFT_OUT
    )
    for (reason, operator), count in sorted(reasons.items()):
        if reason != WITHOUT:
            console.print(f"left out, {count} of {operator}: {reason}")
    listed = sorted({op for reason, op in reasons if reason == WITHOUT})
    console.print(f"left out, {WITHOUT}: {', '.join(listed)}")
    wrong = [item for item in [*positive, *negative] if item.wrong]
    for item in wrong[:MOST_SHOWN]:
        console.print(
            f"[red]{item.test}[/] {item.outcome}: {escape(item.detail)}"
        )
    console.print(sentence(positive, negative))


def sentence(positive: Sequence[Verdict], negative: Sequence[Verdict]) -> str:
    """The counts of a run."""
    found = Counter(item.outcome for item in positive)
    without = Counter(item.detail for item in positive)[WITHOUT]
    others = found[LEFT_OUT] - without
    rejected = Counter(item.outcome for item in negative)[REJECTED]
    lacking = Counter(item.detail for item in negative)[WITHOUT]
    wrong = sum(item.wrong for item in [*positive, *negative])
    return (
        f"{len(positive):,} that must run: {found[EXACT]:,} exact, {found[CHECKED]:,} exact in a checked run, "
        f"{without:,} {WITHOUT}, {others:,} left out for other reasons; "
        f"{len(negative):,} that must be rejected: {rejected:,} are, {lacking:,} of them {WITHOUT}; {wrong:,} wrong"
    )


def _table(positive: Sequence[Verdict], negative: Sequence[Verdict]) -> Table:
    table = Table("operator", box=None)
    for column in ("exact", "exact, checked", "left out", "wrong", "rejected", "accepted"):  # fmt: skip
        table.add_column(column, justify="right")
    names = sorted({item.operator for item in [*positive, *negative]})
    for name in names:
        ours = [item for item in positive if item.operator == name]
        theirs = [item for item in negative if item.operator == name]
        found = Counter(item.outcome for item in ours)
        counts = [found[EXACT], found[CHECKED], found[LEFT_OUT]]
        counts += [sum(item.wrong for item in ours)]
        accepted = sum(item.wrong for item in theirs)
        counts += [len(theirs) - accepted, accepted]
        table.add_row(name, *(str(count or "") for count in counts))
    return table
