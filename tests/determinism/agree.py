"""What several machines found, side by side: python -m tests.determinism.agree FILE.json ... Needs nothing but Python.

Exit code 1: a machine disagrees with its own records, or two machines with each other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def differences(reports: dict[str, Any]) -> list[str]:
    """Every program whose id, trace or outputs are not the same everywhere, and every machine with a row that failed."""
    said = [
        f"{name}: a back end differs from what is recorded"
        for name, one in reports.items()
        if not one["agrees"]
    ]
    first, *others = reports
    for other in others:
        mine, theirs = reports[first]["found"], reports[other]["found"]
        said += [
            f"{program}: {other} is not {first}: {theirs.get(program)}, not {mine.get(program)}"
            for program in sorted(mine.keys() | theirs.keys())
            if mine.get(program) != theirs.get(program)
        ]
    return said


def main(paths: Sequence[str]) -> int:
    """Print a line for each machine and for each difference."""
    if not paths:
        print("no report to compare")
        return 1
    reports = {
        path: json.loads(Path(path).read_text(encoding="utf-8"))
        for path in paths
    }
    for path, report in reports.items():
        rows = len(report["rows"])
        machine = ", ".join(report["machine"].values())
        print(
            f"{path}: {machine}, Python {report['python']}: {len(report['found'])} programs, {rows} back ends"
        )
    said = differences(reports)
    print("\n".join(said) or "all agree")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
