"""The whole report of one conversion, as a few lines, as text or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cvm.errors import printable
from cvm.proof.validate import WellFormed
from mrt.report.integers import IntegerCheck, check_integers
from mrt.report.outcomes import (
    FUSED,
    KEPT,
    MEANINGS,
    FloatGraph,
    OperatorOutcome,
    outcomes,
)

FORMAT = "mrt-report-1"


@dataclass(frozen=True)
class Report:
    """The outcome of every operator of `model`, and the check of the program `program_id`.

    `elsewhere` counts instructions that belong to no operator of the model: those that
    split an input.
    """

    outcomes: Sequence[OperatorOutcome]
    elsewhere: Mapping[str, int]
    check: IntegerCheck
    model: str
    # The front end that read the model; its operators are listed as it wrote them in
    # ONNX.
    origin: str
    program_id: str
    # What was measured of the program on a few samples, for JSON, and the verdict.
    quality: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        form: WellFormed,
        before: FloatGraph,
        after: FloatGraph,
        source_map: Mapping[int, str],
        *,
        quality: Mapping[str, Any] | None = None,
        **names: str,
    ) -> Report:
        """Report on a program as it was read back.

        It takes the float graphs before and after rewriting, and the source map of the
        program.
        """
        program = form.program
        all_outcomes = outcomes(before, after, program, source_map)
        # Operators with the same anchors share their places.
        places = {
            id(outcome.places): outcome.places for outcome in all_outcomes
        }
        of_operators = {
            output
            for items in places.values()
            for entry in items
            for output in entry.outputs
        }
        numbered = enumerate(program.instructions, program.first_instruction)
        elsewhere = Counter(
            entry.name
            for number, entry in numbered
            if source_map.get(number, "") not in of_operators
        )
        return cls(
            all_outcomes,
            dict(sorted(elsewhere.items())),
            check_integers(form),
            quality=quality or {},
            **names,
        )

    def summary(self, most: int = 8) -> list[str]:
        """Return a few lines: counts of outcomes, the commonest kinds, the check's result."""
        counts = Counter(outcome.what for outcome in self.outcomes)
        kinds = by_kind(self.outcomes)
        # The last row stands for two kinds or more, never for one.
        shown = kinds if len(kinds) <= most + 1 else kinds[:most]
        rows = [
            (
                f"{kind.count} {kind.kind}",
                counted(kind.outcomes),
                shortened(kind.instructions, 6),
            )
            for kind in shown
        ]
        more = f"    and {len(kinds) - len(shown)} more kinds; --report F lists every operator"
        return [
            f"  {'operators':<14} {len(self.outcomes)} in float: {counted(dict(counts.most_common()))}",
            *(f"    {line}" for line in _columns(rows)),
            *([more] if len(kinds) > len(shown) else []),
            f"  {'integers only':<14} checked on the file: {self.check.sentence()}",
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the report for other programs to read."""
        return {
            "format": FORMAT,
            "model": self.model,
            "origin": self.origin,
            "program": self.program_id,
            "kinds": [asdict(row) for row in by_kind(self.outcomes)],
            "operators": [_to_json(outcome) for outcome in self.outcomes],
            "other_instructions": dict(self.elsewhere),
            "integers": {
                "statement": self.check.sentence(),
                **asdict(self.check),
            },
            "quality": dict(self.quality),
        }

    def text(self) -> str:
        """Return the full report for people."""
        rows = [("operator", "node", "became", "instructions")]
        rows += [
            (
                outcome.operator.kind,
                outcome.operator.name,
                became(outcome),
                instructions_of(outcome),
            )
            for outcome in self.outcomes
        ]
        header = [
            self.heading(),
            "",
            *(f"  {word:<10} {MEANINGS[word]}" for word in MEANINGS),
            "",
        ]
        lines = [*header, *_columns(rows), "", *self.ending()]
        text = "".join(f"{printable(line)}\n" for line in lines)
        return text.encode("ascii", "backslashreplace").decode()

    def heading(self) -> str:
        """Return the title of the report."""
        reading = (
            "MXNet's, read as ONNX operators"
            if self.origin == "mxnet"
            else "as they were read"
        )
        return f"{self.model}: the outcomes of its {len(self.outcomes)} float operators, {reading}"

    def ending(self) -> list[str]:
        """Return the lines after the operators, with the result of the check."""
        others = (
            [f"Instructions that prepare inputs: {counted(self.elsewhere)}."]
            if self.elsewhere
            else []
        )
        measured = self.quality.get("sentence")
        return [
            *others,
            *([f"Against float: {measured}."] if measured else []),
            f"Checked on program {self.program_id}: {self.check.sentence()}.",
        ]


@dataclass(frozen=True)
class Kind:
    """All operators of one kind: their count, their outcomes, and their instructions."""

    kind: str
    count: int
    outcomes: Mapping[str, int]
    instructions: Sequence[str]


def by_kind(outcomes: Iterable[OperatorOutcome]) -> list[Kind]:
    """Count operators by kind, the most frequent kind first."""
    groups: dict[str, list[OperatorOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.operator.kind, []).append(outcome)
    kinds = [
        Kind(
            kind,
            len(group),
            dict(Counter(outcome.what for outcome in group).most_common()),
            sorted(
                {name for outcome in group for name in outcome.instructions}
            ),
        )
        for kind, group in groups.items()
    ]
    return sorted(kinds, key=lambda entry: (-entry.count, entry.kind))


def became(outcome: OperatorOutcome) -> str:
    """Describe an operator's outcome, with its anchors in the rewritten model."""
    if not outcome.places:
        return outcome.what
    kinds = counted(Counter(operator.kind for operator in outcome.places))
    if outcome.what == FUSED:
        return f"fused with {outcome.together - 1} more into {kinds} '{shortened(outcome.into)}'"
    return (
        outcome.what if outcome.what == KEPT else f"{outcome.what} as {kinds}"
    )


def instructions_of(outcome: OperatorOutcome) -> str:
    """Describe the instructions of an operator's places in the model."""
    if outcome.instructions:
        return counted(outcome.instructions)
    return (
        f"none of its own: done with '{outcome.taken_up_by}'"
        if outcome.taken_up_by
        else "none"
    )


def counted(counts: Mapping[str, int]) -> str:
    """Format counts, such as "conv2d, 2 rescale"."""
    return ", ".join(
        name if count == 1 else f"{count} {name}"
        for name, count in counts.items()
    )


def shortened(words: Sequence[str], most: int = 4) -> str:
    """Return the first few words, and how many more there are."""
    return ", ".join(words[:most]) + (
        f" and {len(words) - most} more" if len(words) > most else ""
    )


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns to the left, and escape characters of names that control a terminal."""
    plain = [
        [cell.encode("unicode_escape").decode() for cell in row] for row in rows
    ]
    widths = [
        max((len(row[column]) for row in plain), default=0)
        for column in range(len(rows[0]) if rows else 0)
    ]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in plain
    ]


def _to_json(outcome: OperatorOutcome) -> dict[str, Any]:
    return {
        "name": outcome.operator.name,
        "operator": outcome.operator.kind,
        "outcome": outcome.what,
        "into": list(outcome.into),
        "rewritten_as": [operator.kind for operator in outcome.places],
        "instructions": dict(outcome.instructions),
        "operators_together": outcome.together,
        "done_with": outcome.taken_up_by or None,
    }
