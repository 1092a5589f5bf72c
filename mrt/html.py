"""The frame, the style sheet and the tables of the HTML reports: one file, no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #222; --faint: #999; --line: #ddd }
:root { --float: #8ab; --integer: #c60; --bad: #c33; --good: #173 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --faint: #888; --line: #444; --float: #579; --good: #7c9 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1100px }
body { margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
svg { max-width: 100%; height: auto }
svg text { font: 11px system-ui, sans-serif; fill: currentColor }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .15rem .6rem }
th, td { border-bottom: 1px solid var(--line) }
td { overflow-wrap: anywhere } td:first-child { white-space: nowrap }
.numbers th, .numbers td { text-align: right; overflow-wrap: normal }
.numbers th:last-child, .numbers td:last-child { text-align: left }
.numbers td:last-child { overflow-wrap: anywhere }
section { border-bottom: 1px solid var(--line); padding: .6rem 0 } a { color: inherit }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em }
.statement { border-left: 4px solid var(--good); padding: .3rem 1rem }
"""


def document(title: str, body: Iterable[str]) -> str:
    """Return a whole page in ASCII; `title` is text, `body` is HTML."""
    lines = [
        "<!doctype html>",
        '<html lang="en"><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        *body,
        "</html>",
    ]
    text = "\n".join(lines) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False
) -> str:
    """Return a table whose cells are HTML.

    Columns of `numbers`, except the last one, align right.
    """
    lines = [
        '<table class="numbers">' if numbers else "<table>",
        _row("th", head),
    ]
    lines.extend(_row("td", row) for row in rows)
    lines.append("</table>")
    return "\n".join(lines)


def _row(tag: str, cells: Sequence[str]) -> str:
    joined = "".join(f"<{tag}>{cell}</{tag}>" for cell in cells)
    return f"<tr>{joined}</tr>"
