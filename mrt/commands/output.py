"""The one way in which the commands of `mrt` print."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click


def say(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines; a name in one cannot end it, nor command the terminal."""
    from cvm.errors import printable

    click.echo("\n".join(map(printable, lines)), err=err)


def say_json(content: Any) -> None:
    """Print JSON for other programs."""
    click.echo(json.dumps(content, indent=2))
