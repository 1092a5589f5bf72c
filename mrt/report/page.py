"""Writes the report of a conversion as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mrt.html import document, table
from mrt.report.outcomes import MEANINGS
from mrt.report.report import Report, became, by_kind, counted, instructions_of


def page(report: Report) -> str:
    """Return the whole file.

    Names from the model are escaped, and no other file is loaded.
    """
    statements = [
        f'<p class="statement">{escape(line)}</p>' for line in report.ending()
    ]
    meanings = [
        f"<b>{outcome}</b>: {escape(meaning)}"
        for outcome, meaning in MEANINGS.items()
    ]
    body = [
        f"<h1>{escape(report.heading())}</h1>",
        *statements,
        "<h2>By kind</h2>",
        table(("operator", "count", "became", "instructions"), _kinds(report)),
        f"<p>{'; '.join(meanings)}.</p>",
        "<h2>One by one</h2>",
        table(("operator", "node", "became", "instructions"), _nodes(report)),
    ]
    return document(report.model, body)


def _kinds(report: Report) -> list[list[str]]:
    """Return one row for each kind of operator."""
    rows = []
    for kind in by_kind(report.outcomes):
        instructions = ", ".join(kind.instructions)
        rows.append(
            _cells(
                (
                    kind.kind,
                    str(kind.count),
                    counted(kind.outcomes),
                    instructions,
                )
            )
        )
    return rows


def _nodes(report: Report) -> list[list[str]]:
    """Return one row for each operator."""
    rows = []
    for outcome in report.outcomes:
        node = outcome.operator
        rows.append(
            _cells(
                (
                    node.kind,
                    node.name,
                    became(outcome),
                    instructions_of(outcome),
                )
            )
        )
    return rows


def _cells(texts: Sequence[str]) -> list[str]:
    return [escape(text) for text in texts]
