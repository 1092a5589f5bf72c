"""Back ends against programs: what matched, as a table for people and as JSON for other machines."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.table import Column, Table

from tests.determinism.programs import GROUPS, group_of
from tests.determinism.worker import Problems


@dataclass(frozen=True)
class Row:
    """One back end, an engine on so many threads. `wrong` are the programs on which it failed, with why."""

    backend: str
    threads: int
    programs: tuple[str, ...]
    wrong: dict[str, str]

    @property
    def name(self) -> str:
        return (
            f"{self.backend}/{self.threads}" if self.threads else self.backend
        )

    def count(self, group: str) -> tuple[int, int]:
        """How many programs of a group matched, and how many there were."""
        ran = [name for name in self.programs if group_of(name) == group]
        return sum(name not in self.wrong for name in ran), len(ran)


@dataclass
class Matrix:
    """All rows, and the back ends that this machine could not try, with why."""

    rows: list[Row] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        backend: str,
        programs: Sequence[str],
        problems: Problems,
        threads: Sequence[int] = (0,),
    ) -> None:
        """A row for each number of threads. The first problem of a program is the one kept."""
        for count in threads:
            wrong: dict[str, str] = {}
            for program, on, sentence in problems:
                if on == count:
                    wrong.setdefault(program, sentence)
            self.rows.append(Row(backend, count, tuple(programs), wrong))

    @property
    def agrees(self) -> bool:
        return not any(row.wrong for row in self.rows)

    def table(self) -> Table:
        """Matches out of programs tried."""
        table = Table(
            Column("back end / threads", no_wrap=True),
            *GROUPS,
            title="programs that gave the recorded bytes",
        )
        for row in self.rows:
            table.add_row(
                row.name, *(_cell(*row.count(group)) for group in GROUPS)
            )
        return table

    def markdown(self) -> str:
        """The table for a page: the same text wherever the same rows gave the same."""
        lines = [
            f"| back end / threads | {' | '.join(GROUPS)} |",
            f"|---|{'---:|' * len(GROUPS)}",
        ]
        for row in self.rows:
            cells = (_share(*row.count(group)) for group in GROUPS)
            lines.append(f"| {row.name} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def mismatches(self) -> list[str]:
        """One sentence for each program and difference, with the back ends that show it."""
        shown: dict[tuple[str, str], dict[str, list[int]]] = {}
        for row in self.rows:
            for program, sentence in row.wrong.items():
                shown.setdefault((program, sentence), {}).setdefault(
                    row.backend, []
                ).append(row.threads)
        return [
            f"{program}: {sentence} [{', '.join(_with_threads(*item) for item in backends.items())}]"
            for (program, sentence), backends in shown.items()
        ]

    def as_json(self, found: dict[str, Any]) -> dict[str, Any]:
        """`found` is what the reference gave on this machine, for comparison with other machines."""
        return {
            "machine": {
                "system": platform.system(),
                "processor": platform.machine(),
                "byte order": sys.byteorder,
            },
            "python": platform.python_version(),
            "numpy": np.__version__,
            "agrees": self.agrees,
            "rows": [
                {
                    "name": row.name,
                    "groups": {group: row.count(group) for group in GROUPS},
                    "wrong": row.wrong,
                }
                for row in self.rows
            ],
            "skipped": self.skipped,
            "found": found,
        }


def _with_threads(backend: str, threads: list[int]) -> str:
    return (
        f"{backend}/{','.join(map(str, threads))}" if any(threads) else backend
    )


def _share(matched: int, total: int) -> str:
    return f"{matched} of {total}" if total else "-"


def _cell(matched: int, total: int) -> str:
    if not total:
        return "-"
    return f"[{'green' if matched == total else 'bold red'}]{matched}/{total}"
