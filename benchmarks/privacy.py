"""What secrets cost: seconds, bytes and messages of each network among parties and encrypted, each answer compared.

`python -m benchmarks.privacy` (make privacy) prints a table. Every answer is compared with the reference machine's; a
difference ends it with exit code 1. What is refused, or cannot run here, is named with the reason, and counted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

import cvm
from benchmarks.private_models import ENCRYPTED, MODELS, PrivateModel
from cvm.errors import BadInput
from cvm.program import IntArray
from cvm.proof.validate import Proven
from cvm.runtime.backends import BackendEffort, BackendOptions, open_backend
from cvm.runtime.bench import random_sample
from cvm.secure.environment import spu_python

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "privacy"
SETTINGS = {
    "aby3": ("spu", BackendOptions("aby3")),
    "aby3, secret weights": ("spu", BackendOptions("aby3", hide_weights=True)),
    "semi2k": ("spu", BackendOptions("semi2k")),
    "cheetah": ("spu", BackendOptions("cheetah")),
    ENCRYPTED: ("concrete", BackendOptions()),
}
TITLE = ("network", "protocol", "equal", "seconds", "kB sent", "messages", "compiled, s")  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """One network under one protocol; without an effort, why it did not run."""

    model: str
    setting: str
    equal: bool
    effort: BackendEffort | None
    reason: str = ""

    def row(self) -> tuple[str, ...]:
        """As the table has it: medians of the samples."""
        if self.effort is None:
            return (self.model, self.setting, self.reason, "", "", "", "")
        seconds, sent, sends = (
            float(np.median(numbers))
            for numbers in (
                self.effort.seconds,
                self.effort.sent_bytes,
                self.effort.sends,
            )
        )
        return (
            self.model,
            self.setting,
            "yes" if self.equal else "NO",
            f"{seconds:.2f}",
            f"{sent / 1e3:,.1f}",
            f"{sends:,.0f}",
            f"{self.effort.compile_seconds:.1f}",
        )


@click.command()
@click.option(
    "--models", default="", help="Names divided by commas; all if left out."
)
@click.option(
    "--settings",
    default="",
    help="Of the protocols, divided by semicolons; all if left out.",
)
@click.option("--samples", default=1, show_default=True)
def main(models: str, settings: str, samples: int) -> None:
    """Run each network under each protocol."""
    console = Console(soft_wrap=True, highlight=False)
    try:
        spu_python()
    except BadInput as problem:
        raise click.ClickException(str(problem)) from None
    chosen = [m for m in MODELS if not models or m.name in models.split(",")]
    protocols = settings.split(";") if settings else [*SETTINGS]
    readings = _readings(console, chosen, protocols, samples)
    for line in table([TITLE, *(reading.row() for reading in readings)]):
        console.print(line)
    skipped = [result for result in readings if result.effort is None]
    if skipped:
        named = ", ".join(
            f"{result.model} ({result.setting})" for result in skipped
        )
        console.print(f"privacy: {len(skipped)} refused or not run: {named}")
    if not all(
        result.equal for result in readings if result.effort is not None
    ):
        sys.exit("privacy: an answer differs from the reference machine's")


def _readings(
    console: Console,
    models: Sequence[PrivateModel],
    settings: Sequence[str],
    samples: int,
) -> list[Reading]:
    readings = []
    with Progress(console=console, transient=True) as progress:
        for model in progress.track(models, description="networks"):
            missing = model.missing()
            if missing:
                readings.append(
                    Reading(model.name, "all", False, None, missing)
                )
                continue
            readings += [
                reading(model, setting, samples)
                for setting in settings
                if model.runs(setting)
            ]
    return readings


def reading(model: PrivateModel, setting: str, samples: int) -> Reading:
    """Run a few samples, each compared with the reference."""
    program = model.converted(FOLDER, *model.options(setting))
    reference = cvm.load(program, engine="reference")
    backend, options = SETTINGS[setting]
    try:
        machine = open_backend(backend, options, reference)
        machine.prepare(traced=False)
        equal = True
        for number in range(model.samples or samples):
            sample = random_integers(reference, number)
            answer = machine.run(sample)
            equal &= _same(answer, reference.run(sample))
    except BadInput as problem:
        return Reading(model.name, setting, False, None, str(problem))
    return Reading(model.name, setting, equal, machine.effort)


def random_integers(form: Proven, seed: int) -> dict[str, IntArray]:
    """Of the declared intervals: what is sent does not depend on what is computed."""
    if seed == 0:
        return random_sample(form.program)
    random = np.random.default_rng(seed)
    return {
        name: random.permuted(array.reshape(-1)).reshape(array.shape)
        for name, array in random_sample(form.program).items()
    }


def _same(answers: dict[str, IntArray], expected: dict[str, IntArray]) -> bool:
    return all(
        np.array_equal(answers[name].reshape(array.shape), array)
        for name, array in expected.items()
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|---|---|---|---:|---:|---:|---:|", *body]


if __name__ == "__main__":
    main()
