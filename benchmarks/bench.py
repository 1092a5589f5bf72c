"""Measures our engine and its peers in one process, alternating.

`make bench` runs it; benchmarks/README.md explains how to read it.

python -m benchmarks.bench --models resnet50_v1 --threads 1,2 --json figures.json --markdown table.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console

from benchmarks import older, report
from benchmarks.contenders import CONTENDERS, Contender, peak
from benchmarks.figures import (
    FAST,
    OURS,
    REFERENCE,
    Measured,
    Outcome,
    Row,
    as_json,
    snr_db,
)
from benchmarks.footprint import footprint
from benchmarks.machine import describe
from benchmarks.measure import WARM_UPS, Turn, alternate, busy, seconds, warmed
from benchmarks.models import SOURCES, Model, absent, prepare
from benchmarks.peers import Ready, Unavailable
from cvm.runtime import boundary

SLOW_ROUNDS = 3
EXACT = "onnxruntime-float32"

Seat = tuple[str, int]  # a contender, or PEAK, on so many threads
PEAK = "peak"


def choice(
    known: Sequence[str],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a reader of names separated by commas."""

    def read(
        context: click.Context, parameter: click.Parameter, value: str
    ) -> list[str]:
        names = value.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise click.BadParameter(
                f"'{unknown[0]}' is none of {', '.join(known)}"
            )
        return names

    return read


def counts(
    context: click.Context, parameter: click.Parameter, value: str
) -> list[int]:
    """Read numbers of threads separated by commas."""
    if not all(
        number.isascii() and number.isdigit() and int(number) > 0
        for number in value.split(",")
    ):
        raise click.BadParameter(
            f"'{value}': expected numbers of threads such as 1,2"
        )
    return sorted({int(number) for number in value.split(",")})


NAMES = [contender.name for contender in CONTENDERS]
USUAL = [name for name in NAMES if name != FAST or older.held() == "avx2"]
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--models",
    default=",".join(SOURCES),
    show_default=True,
    callback=choice(list(SOURCES)),
)
@click.option(
    "--contenders",
    default=",".join(USUAL),
    show_default=True,
    callback=choice(NAMES),
)
@click.option("--threads", default="1,2", show_default=True, callback=counts)
@older.option
@click.option(
    "--repetitions", default=30, show_default=True, type=click.IntRange(1)
)
@click.option("--json", "json_path", type=FILE, help="Write all figures there.")
@click.option(
    "--markdown",
    "markdown_path",
    type=FILE,
    help="Write a table for the README there.",
)
def main(
    models: list[str],
    contenders: list[str],
    threads: list[int],
    repetitions: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Measure the contenders on the models, alternating, and print medians, ratios and shares of the int8 peak."""
    console, machine = Console(), describe()
    outcomes: list[Outcome] = []
    for name, value in machine.items():
        console.print(f"{name}: {value}", highlight=False)
    chosen = [
        contender for contender in CONTENDERS if contender.name in contenders
    ]
    for model in _present(models, console):
        with console.status(f"measuring {model.name}"):
            outcomes.append(run_model(model, chosen, threads, repetitions))
        for measured in outcomes[-1].measured:
            console.print(report.part_table(model.name, measured))
    console.print(report.model_table(outcomes, threads))
    console.print(report.FOOT, highlight=False)
    console.print(report.disturbed(outcomes), style="bold red", highlight=False)
    if json_path is not None:
        json_path.write_text(
            json.dumps(as_json(machine, outcomes), indent=1) + "\n"
        )
    if markdown_path is not None:
        markdown_path.write_text(report.markdown(machine, outcomes, threads))


def _present(names: Iterable[str], console: Console) -> list[Model]:
    """Return the models whose files exist, prepared; print the names of the others."""
    present = []
    for name in names:
        reason = absent(name)
        if reason is not None:
            console.print(f"left out: {reason}", highlight=False)
            continue
        with console.status(f"preparing {name}"):
            present.append(prepare(name))
    if not present:
        raise click.ClickException(
            "none of the models is here, so there is nothing to measure"
        )
    return present


def run_model(
    model: Model,
    contenders: Sequence[Contender],
    threads: Sequence[int],
    repetitions: int,
) -> Outcome:
    """Run every contender on every number of threads, in the same rounds."""
    ready: dict[Seat, Ready] = {}
    rows: dict[Seat, Row] = {}
    turns: dict[Seat, Turn] = {}
    for seat, contender in [
        ((entrant.name, count), entrant)
        for count in threads
        for entrant in contenders
    ]:
        try:
            ready[seat] = contender.ready(model, seat[1])
            turns[seat] = _turn(ready[seat], contender, repetitions)
        except Exception as problem:  # one that cannot run must not cost the figures of the others
            ready.pop(seat, None)
            rows[seat] = Row(contender.name, note=_reason(problem))
    turns |= {
        (PEAK, count): Turn(read, repetitions)
        for count in threads
        if (read := peak(count)) is not None
    }
    readings = alternate(turns, repetitions)
    answers = {
        seat: entrant.answer(entrant.call()) for seat, entrant in ready.items()
    }
    rows |= {
        seat: _row(seat, entrant, readings[seat], answers)
        for seat, entrant in ready.items()
    }
    measurements = [
        Measured(
            count,
            model.multiply_accumulates,
            tuple(rows[contender.name, count] for contender in contenders),
            tuple(readings.get((PEAK, count), ())),
        )
        for count in threads
    ]
    integers = boundary.quantize(model.program.program, model.images[0])
    return Outcome(
        model.name, tuple(measurements), footprint(model.program_path, integers)
    )


def _turn(ready: Ready, contender: Contender, repetitions: int) -> Turn:
    if contender.slow:
        return Turn(lambda: seconds(ready.call), SLOW_ROUNDS)
    for _ in range(WARM_UPS):
        ready.call()
    older.check()
    return Turn(warmed(ready.call), repetitions)


def _reason(problem: Exception) -> str:
    if isinstance(problem, Unavailable):
        return str(problem)
    return f"fails: {type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"


def _row(
    seat: Seat,
    ready: Ready,
    readings: list[float],
    answers: dict[Seat, npt.NDArray[np.float64]],
) -> Row:
    """Return the times, with two checks that they are honest.

    The checks are how many cores the contender used, and how good its answer is.
    """
    name, count = seat
    reference_answer = answers.get((REFERENCE, 1))
    is_wrong = (
        name == OURS
        and reference_answer is not None
        and not np.array_equal(answers[seat], reference_answer)
    )
    exact = answers.get((EXACT, count))
    return Row(
        name,
        tuple(1e3 * reading for reading in readings),
        busy_cores=None if name == REFERENCE else busy(ready.call),
        snr_db=None
        if exact is None or name == EXACT
        else snr_db(exact.tolist(), answers[seat].tolist()),
        note="WRONG: its answer is not the reference's"
        if is_wrong
        else ready.note,
    )


if __name__ == "__main__":
    main()
