"""`make test-mxnet`: what real mxnet says to each case, and what `mrt` makes of it.

python -m tests.mxnet_judge --mxnet PYTHON [--only TEXT] [--seed N] [--keep]
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from tests.mxnet_judge import convert, generate, regressions, report
from tests.mxnet_judge.ask import NoJudgeError, ask
from tests.mxnet_judge.case import Answer, Case
from tests.mxnet_judge.compare import judge

DEFAULT = Path(".venv-mxnet/bin/python")
WIDTH = 120  # of the table where there is no terminal


@click.command()
@click.option(
    "--mxnet",
    "python",
    default=DEFAULT,
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="PYTHON",
)
@click.option(
    "--only",
    default="",
    metavar="TEXT",
    help="Only cases whose id or operators contain it.",
)
@click.option(
    "--seed",
    default=generate.SEED,
    show_default=True,
    help="Other cases of the same kinds.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Add the cases that fail to those that every run of the tests repeats.",
)
def main(python: Path, only: str, seed: int, keep: bool) -> None:
    """Exit code 1: a difference that nothing explains, or an operator that was not tested."""
    console = Console(soft_wrap=True, highlight=False)
    console.width = max(console.width, WIDTH)
    begun = time.monotonic()
    cases = [
        case
        for case in generate.cases(seed)
        if only in case.id or only in case.operators
    ]
    if not cases:
        raise click.BadParameter(
            f"no case contains {only!r}", param_hint="--only"
        )
    try:
        theirs, ours = _both(cases, python, console)
    except (NoJudgeError, OSError) as problem:
        raise click.ClickException(
            f"mxnet cannot be asked: {problem}"
        ) from None
    answers = zip(cases, theirs, ours, strict=True)
    verdicts = [
        judge(case, mxnet, mrt, broken)
        for case, mxnet, (mrt, broken) in answers
    ]
    report.show(console, verdicts, time.monotonic() - begun)
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    if keep:
        console.print(
            f"kept {regressions.keep(wrong, dict(zip((c.id for c in cases), theirs, strict=True)))} cases"
        )
    sys.exit(1 if wrong or report.untested(verdicts) else 0)


def _both(
    cases: Sequence[Case], python: Path, console: Console
) -> tuple[list[Answer], list[tuple[Answer, str]]]:
    """mxnet answers in a process of its own while the front end converts."""
    with (
        tempfile.TemporaryDirectory() as name,
        Progress(console=console) as progress,
        ThreadPoolExecutor(1) as pool,
    ):
        folder = Path(name)
        theirs, ours = (
            progress.add_task(side, total=len(cases))
            for side in ("mxnet", "mrt")
        )
        asked = pool.submit(
            ask,
            cases,
            python,
            folder,
            lambda number: progress.update(theirs, completed=number),
        )
        found = [
            _ours(case, folder, lambda: progress.advance(ours))
            for case in cases
        ]
        return asked.result(), found


def _ours(
    case: Case, folder: Path, tell: Callable[[], None]
) -> tuple[Answer, str]:
    """An answer, or what broke: whatever it is, the other cases go on."""
    try:
        return convert.run(case, folder), ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        first = (str(error).splitlines() or [""])[0][:300]
        return (
            Answer(),
            f"{type(error).__name__}: {first} ({Path(place.filename).name}:{place.lineno})",
        )
    finally:
        tell()


if __name__ == "__main__":
    main()
