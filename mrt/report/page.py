"""The report of a conversion as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mrt.report.outcomes import MEANINGS
from mrt.report.report import Report, became, by_kind, instructions_of, spelled

STYLE = """
:root { color-scheme: light dark; --ink: #222; --line: #ddd; --good: #173 }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --line: #444; --good: #7c9 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1100px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .15rem .6rem; border-bottom: 1px solid var(--line) }
td { overflow-wrap: anywhere } td:first-child { white-space: nowrap }
.statement { border-left: 4px solid var(--good); padding: .3rem 1rem }
"""


def page(report: Report) -> str:
    """The whole file. Names from the model are escaped; nothing is loaded from elsewhere."""
    kinds = [
        (
            item.kind,
            str(item.count),
            spelled(item.outcomes),
            ", ".join(item.instructions),
        )
        for item in by_kind(report.outcomes)
    ]
    nodes = [
        (
            outcome.operator.kind,
            outcome.operator.name,
            became(outcome),
            instructions_of(outcome),
        )
        for outcome in report.outcomes
    ]
    parts = [
        "<!doctype html>",
        f'<html lang="en"><meta charset="utf-8"><title>{escape(report.model)}</title><style>{STYLE}</style>',
        f"<h1>{escape(report.heading())}</h1>",
        *(f'<p class="statement">{escape(line)}</p>' for line in report.ending()),
        "<h2>By kind</h2>",
        *_table(("operator", "count", "became", "instructions"), kinds),
        f"<p>{'; '.join(f'<b>{what}</b>: {escape(meaning)}' for what, meaning in MEANINGS.items())}.</p>",
        "<h2>One by one</h2>",
        *_table(("operator", "node", "became", "instructions"), nodes),
        "</html>",
    ]
    return "\n".join(parts).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += [
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    ]
    return ["<table>", *lines, "</table>"]
