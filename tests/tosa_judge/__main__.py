"""`make tosa`: Arm's generated tests of the integer profile, and what we make of each.

python -m tests.tosa_judge [--tosa PYTHON] [--tests FOLDER] [--only TEXT] [--every N]
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from rich.console import Console

from tests.support import tosa_programs
from tests.tosa_judge import report
from tests.tosa_judge.generate import (
    NoTestsError,
    folders_of,
    generate,
    not_written,
)
from tests.tosa_judge.verdict import (
    Verdict,
    inputs_of,
    judge_negative,
    judge_positive,
)

AT_ONCE = 100  # tests of one process of the reference model
WORKERS = 2
WIDTH = 120


@click.command()
@click.option(
    "--tests",
    "folder",
    default=Path("build/tosa_tests"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the generated tests are, or go.",
)
@click.option(
    "--only", default="", metavar="TEXT", help="Only tests whose name has it."
)
@click.option(
    "--every", default=1, metavar="N", help="One test of N, for a quick look."
)
def main(folder: Path, only: str, every: int) -> None:
    """Exit code 1: a test that must run differs or is refused without a reason, or one that must be rejected is not."""
    console = Console(soft_wrap=True, highlight=False)
    console.width = max(console.width, WIDTH)
    begun = time.monotonic()
    try:
        generate(tosa_programs.PYTHON, folder)
    except (NoTestsError, OSError) as problem:
        raise click.ClickException(f"no tests: {problem}") from None
    chosen = list(folders_of(folder, "positive", only))[::every]
    parts = [chosen[i : i + AT_ONCE] for i in range(0, len(chosen), AT_ONCE)]
    rejects = list(folders_of(folder, "negative", only))[::every]
    with ProcessPoolExecutor(WORKERS) as pool:
        positive = [item for part in pool.map(_judged, parts) for item in part]
        negative = list(pool.map(judge_negative, rejects, chunksize=200))
    report.show(console, positive, negative)
    console.print(f"Arm's generator failed to write {not_written(folder)}")
    console.print(f"{time.monotonic() - begun:.0f} s")
    sys.exit(any(item.wrong for item in [*positive, *negative]))


def _judged(folders: list[Path]) -> list[Verdict]:
    """Ask the reference model for all, then our machines."""
    jobs = [
        ((folder / "test.tosa").read_bytes(), inputs_of(folder))
        for folder in folders
    ]
    answers = tosa_programs.answers_of(jobs)
    return [
        judge_positive(folder, answer)
        for folder, answer in zip(folders, answers, strict=True)
    ]


if __name__ == "__main__":
    main()
