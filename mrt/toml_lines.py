"""Finds the line on which a key of a TOML text stands, which `tomllib` does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str | int, ...]
DEPTH = 4  # of a config's deepest key; what lies deeper has the line of the table around it
# All that may hide the end of a statement, then what opens and closes, then the end itself.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\])*"|' + r"'[^']*'|#[^\n]*|[\[{]|[\]}]|\n",
    re.DOTALL,
)


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """Return the line on which each key of a valid TOML text is first named, by its path.

    Tables are keys, too, and the text itself is the empty path.
    """
    lines: dict[KeyPath, int] = {(): 1}
    header: KeyPath = ()
    for line, statement in _statements(text):
        is_header = statement.lstrip().startswith("[")
        outer = () if is_header else header
        for path in _paths(tomllib.loads(statement), outer):
            lines.setdefault(path, line)
            if is_header:
                header = path
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of its first line; blank lines and comments are of none."""
    start, depth, line = 0, 0, 1
    for token in _TOKEN.finditer(f"{text}\n"):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] == "\n" and depth == 0:
            yield line, text[start : token.end()]
            line += text.count("\n", start, token.end())
            start = token.end()


def _paths(content: Any, outer: KeyPath) -> Iterator[KeyPath]:
    """The path of every value, those of tables before what is in them."""
    if isinstance(content, Mapping) and len(outer) < DEPTH:
        for key, value in content.items():
            yield (*outer, key)
            yield from _paths(value, (*outer, key))


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Return the line of a path: its own, or that of what it is in."""
    while path not in lines:
        path = path[:-1]
    return lines[path]
