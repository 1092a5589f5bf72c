"""Compares our and the peers' 8-bit models on the same images.

`python -m benchmarks.accuracy` (make accuracy) writes docs/accuracy.md. Each row is
measured in a process of its own, one after another. Its figures are kept in
build/accuracy, so that an interrupted run continues where it stopped; --kept uses them
even where the converter has changed since.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from benchmarks.accuracy_figures import Figures
from benchmarks.accuracy_page import page
from benchmarks.bench import choice
from benchmarks.cache import ROOT, converter, digest
from benchmarks.machine import describe
from benchmarks.variants import (
    OURS,
    SAMPLES,
    SUBJECTS,
    VARIANTS,
    YARDSTICK,
    Subject,
    Variant,
)

CACHE = ROOT / "build" / "accuracy"
FILE = click.Path(dir_okay=False, path_type=Path)
MEASURES = (
    "benchmarks/accuracy_figures.py",
    "benchmarks/engine_share.py",
    "benchmarks/quantizers.py",
)
MODELS = [item.name for item in SUBJECTS]
KEYS = [item.key for item in VARIANTS]


@click.command()
@click.option(
    "--models",
    default=",".join(MODELS),
    show_default=True,
    callback=choice(MODELS),
)
@click.option(
    "--variants",
    default=",".join(KEYS),
    show_default=True,
    callback=choice(KEYS),
)
@click.option(
    "--images",
    type=click.IntRange(1),
    help="Evaluate on fewer images, to try it out.",
)
@click.option(
    "--samples",
    default=SAMPLES,
    show_default=True,
    type=click.IntRange(1),
    help="Images to calibrate on.",
)
@click.option(
    "--kept",
    is_flag=True,
    help="Take kept figures, whatever the converter was when they were measured.",
)
@click.option(
    "--output",
    default=ROOT / "docs" / "accuracy.md",
    show_default="docs/accuracy.md",
    type=FILE,
)
def main(
    models: list[str],
    variants: list[str],
    images: int | None,
    samples: int,
    kept: bool,
    output: Path,
) -> None:
    """Quantize the models in every way, evaluate each beside float on the same images, and write the tables."""
    console = Console()
    rows = [
        (subject, variant)
        for subject in _present(models, console)
        for variant in VARIANTS
        if variant.key in variants and variant.is_for(subject.name)
    ]
    if not rows:
        console.print(
            f"{output} stays as it is: there is nothing to measure",
            highlight=False,
            soft_wrap=True,
        )
        return
    columns = (
        TextColumn("{task.description:<48}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    results: list[Figures] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(rows))
        for subject, variant in rows:
            progress.update(task, description=f"{subject.name}: {variant.key}")
            limit = min(subject.images, images or subject.images)
            results.append(
                figures_of(
                    subject, variant, samples=samples, images=limit, kept=kept
                )
            )
            progress.advance(task)
    text = page(results, describe(), samples)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _present(models: Sequence[str], console: Console) -> list[Subject]:
    """Return the models whose files exist; print the names of the others."""
    subjects = []
    for subject in (
        candidate for candidate in SUBJECTS if candidate.name in models
    ):
        if subject.absent is None:
            subjects.append(subject)
        else:
            console.print(
                f"left out: {subject.absent}", highlight=False, soft_wrap=True
            )
    return subjects


def figures_of(
    subject: Subject, variant: Variant, *, samples: int, images: int, kept: bool
) -> Figures:
    """Return kept figures if they are still valid, else new ones."""
    path = CACHE / f"{subject.name}-{variant.key}-{samples}-{images}.json"
    files = [
        subject.path,
        ROOT / "configs" / f"{subject.name}.toml",
        *(ROOT / name for name in MEASURES),
    ]
    key = [json.dumps(asdict(variant)), *map(digest, files)]
    made_by = converter() if variant.recipe == OURS else _peers()
    if path.exists():
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["key"] == key and (content["made_by"] == made_by or kept):
            return Figures(**content["figures"])
    figures = measured(subject, variant, samples=samples, images=images)
    if figures.failure is None:
        CACHE.mkdir(parents=True, exist_ok=True)
        content = {"key": key, "made_by": made_by, "figures": asdict(figures)}
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return figures


def measured(
    subject: Subject, variant: Variant, *, samples: int, images: int
) -> Figures:
    """Measure one row, and just before it the time that the yardstick takes for the same."""
    yardstick = _hear(Figures(subject.name, YARDSTICK), samples, 0)
    figures = _hear(Figures(subject.name, variant.key), samples, images)
    figures.yardstick_seconds = (
        figures.seconds if variant.key == YARDSTICK else yardstick.seconds
    )
    return figures


def _hear(figures: Figures, samples: int, images: int) -> Figures:
    """Return the figures that a process of its own prints; if it fails, its last line of errors."""
    words = [figures.model, figures.variant, str(samples), str(images)]
    module = [sys.executable, "-m", "benchmarks.accuracy_figures"]
    done = subprocess.run(
        [*module, *words], cwd=ROOT, text=True, capture_output=True
    )
    if done.returncode == 0:
        return Figures(**json.loads(done.stdout))
    figures.failure = (
        done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    )[-1]
    return figures


def _peers() -> list[str]:
    return [
        f"{name} {value}"
        for name, value in describe().items()
        if name in ("onnxruntime", "nncf")
    ]


if __name__ == "__main__":
    main()
