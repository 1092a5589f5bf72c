"""Writes the report in the form that a file's name selects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from mrt.errors import BadOption
from mrt.report.report import Report

WRITERS: dict[str, Callable[[Report], str]] = {
    ".json": lambda report: json.dumps(report.to_json(), indent=1) + "\n",
    ".txt": Report.text,
}


def writer_for(path: Path) -> Callable[[Report], str]:
    """Return the function that writes a file of this name, before any work.

    Raise BadOption if there is none.
    """
    try:
        return WRITERS[path.suffix.lower()]
    except KeyError:
        raise BadOption(
            f"--report {path}: expected a name that ends in {', '.join(WRITERS)}; "
            "mrt report MODEL P.cvm --data D -o F.html writes a page about the program"
        ) from None
