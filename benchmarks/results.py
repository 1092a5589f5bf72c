"""Converts every published architecture.

`python -m benchmarks.results` (make results) writes docs/results.md. Each architecture
runs in a process of its own, one after another. Its figures are kept in build/results,
so that an interrupted run continues where it stopped; --kept uses them even where the
converter has changed since.
"""

from __future__ import annotations

import json
import subprocess
import sys
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

from benchmarks.cache import ROOT, converter, digest
from benchmarks.results_page import page
from benchmarks.zoo import Architecture, absent, architectures
from benchmarks.zoo_figures import Figures

CACHE = ROOT / "build" / "results"
FILE = click.Path(dir_okay=False, path_type=Path)
MEASURES = ("benchmarks/zoo.py", "benchmarks/zoo_figures.py")


@click.command()
@click.option(
    "--only",
    default="",
    help="Names divided by commas: the page is of these alone.",
)
@click.option(
    "--kept",
    is_flag=True,
    help="Take kept figures, whatever the converter was when they were measured.",
)
@click.option(
    "--output",
    default=ROOT / "docs" / "results.md",
    show_default="docs/results.md",
    type=FILE,
)
def main(only: str, kept: bool, output: Path) -> None:
    """Convert every architecture with seeded weights, run it in float and in integers, and write the tables."""
    console, present = Console(), architectures()
    missing = absent(len(present))
    if missing is not None:
        console.print(f"left out: {missing}", highlight=False)
    chosen = _chosen(present, only)
    if not chosen:
        console.print(
            f"{output} stays as it is: there is nothing to measure",
            highlight=False,
        )
        return
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    results: list[Figures] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(chosen))
        for architecture in chosen:
            progress.update(task, description=architecture.name)
            results.append(figures_of(architecture, kept=kept))
            progress.advance(task)
    for result in results:
        if result.failure is not None:
            console.print(
                f"{result.name}: {result.failure}",
                highlight=False,
                markup=False,
            )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(results), encoding="utf-8")
    converted = sum(result.failure is None for result in results)
    console.print(
        f"{converted} of {len(results)} architectures convert; {output} is written",
        highlight=False,
    )


def _chosen(present: list[Architecture], only: str) -> list[Architecture]:
    names = (
        only.split(",")
        if only
        else [architecture.name for architecture in present]
    )
    unknown = sorted(
        set(names) - {architecture.name for architecture in present}
    )
    if unknown:
        raise click.BadParameter(
            f"'{unknown[0]}' is none of {', '.join(architecture.name for architecture in present)}"
        )
    return [
        architecture for architecture in present if architecture.name in names
    ]


def figures_of(item: Architecture, *, kept: bool) -> Figures:
    """Return kept figures if they are still valid, else new ones."""
    path = CACHE / f"{item.name}.json"
    key = [
        digest(item.path),
        converter(),
        *(digest(ROOT / name) for name in MEASURES),
    ]
    if path.exists():
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["key"] == key or (kept and content["key"][0] == key[0]):
            return Figures(**content["figures"])
    figures = measured(item)
    if figures.failure is None:
        CACHE.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"key": key, "figures": asdict(figures)}, indent=1),
            encoding="utf-8",
        )
    return figures


def measured(item: Architecture) -> Figures:
    """Return the figures that a process of its own prints; if it fails, its last line of errors."""
    words = [sys.executable, "-m", "benchmarks.zoo_figures", item.name]
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True)
    if done.returncode == 0:
        return Figures(**json.loads(done.stdout))
    reason = (
        done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    )[-1]
    return Figures(item.name, item.shapes["data"][2], failure=reason)


if __name__ == "__main__":
    main()
