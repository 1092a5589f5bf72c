"""How the commands of `cvm` and `mrt` print: facts on stdout, remarks on stderr, more or less of them by -v and -q."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from cvm.errors import printable

QUIET, VERBOSE = "cvm.quiet", "cvm.verbose"  # keys of the context


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines; a name in one cannot end it, nor command the terminal. With -q, only on stderr."""
    if err or not is_quiet():
        click.echo("\n".join(map(printable, lines)), err=err)


def print_json(content: dict[str, Any]) -> None:
    """Print JSON for other programs, -q or not; `docs/json.md` describes each format."""
    click.echo(json.dumps(content, indent=1))


def is_quiet() -> bool:
    """Whether -q was given."""
    return _is_set(QUIET)


def is_verbose() -> bool:
    """Whether -v was given."""
    return _is_set(VERBOSE)


def _is_set(key: str) -> bool:
    try:
        return bool(click.get_current_context().meta.get(key))
    except RuntimeError:  # no command runs
        return False
