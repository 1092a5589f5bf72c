"""Back ends against programs: what matched, as a table for people and as JSON for other machines."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.table import Table

from tests.determinism.programs import GROUPS, group_of
from tests.determinism.worker import Problems


@dataclass(frozen=True)
class Row:
    """One back end on one number of threads. `wrong` are the programs on which it failed, with why."""

    name: str
    programs: tuple[str, ...]
    wrong: dict[str, str]

    def count(self, group: str) -> tuple[int, int]:
        """How many programs of a group matched, and how many there were."""
        ran = [name for name in self.programs if group_of(name) == group]
        return sum(name not in self.wrong for name in ran), len(ran)


@dataclass
class Matrix:
    """All rows, and the back ends that this machine could not try, with why."""

    rows: list[Row] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, programs: Sequence[str], problems: Problems, threads: Iterable[int] = ()) -> None:
        """A row for each number of threads; one row without them. The first problem of a program is the one kept."""
        for count in threads or (1,):
            row = Row(f"{name}/{count}" if threads else name, tuple(programs), {})
            for program, on, sentence in problems:
                if on == count:
                    row.wrong.setdefault(program, sentence)
            self.rows.append(row)

    @property
    def agrees(self) -> bool:
        return not any(row.wrong for row in self.rows)

    def table(self) -> Table:
        """Matches out of programs tried."""
        table = Table("back end / threads", *GROUPS, title="programs that gave the recorded bytes")
        for row in self.rows:
            table.add_row(row.name, *(_cell(*row.count(group)) for group in GROUPS))
        return table

    def mismatches(self) -> list[str]:
        """One sentence for each program and difference, with the back ends that show it."""
        shown: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for program, sentence in row.wrong.items():
                shown.setdefault((program, sentence), []).append(row.name)
        return [f"{program}: {sentence} [{', '.join(names)}]" for (program, sentence), names in shown.items()]

    def as_json(self, found: dict[str, Any]) -> dict[str, Any]:
        """`found` is what the reference gave on this machine, for comparison with other machines."""
        return {
            "machine": {"system": platform.system(), "processor": platform.machine(), "byte order": sys.byteorder},
            "python": platform.python_version(),
            "numpy": np.__version__,
            "agrees": self.agrees,
            "rows": [
                {"name": row.name, "groups": {group: row.count(group) for group in GROUPS}, "wrong": row.wrong}
                for row in self.rows
            ],
            "skipped": self.skipped,
            "found": found,
        }


def _cell(matched: int, total: int) -> str:
    if not total:
        return "-"
    return f"[{'green' if matched == total else 'bold red'}]{matched}/{total}"
