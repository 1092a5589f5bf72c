"""The state of every real model at hand beside what is written down in models.json.

python -m tests.regression [--update] [--only TEXT]
"""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

from tests.regression import table
from tests.regression.cases import cases
from tests.regression.run import states_of


@click.command()
@click.option(
    "--update",
    is_flag=True,
    help="Write down what was found. Models that are not here stay as they are.",
)
@click.option(
    "--only",
    default="",
    metavar="TEXT",
    help="Only models with this in their names.",
)
def main(update: bool, only: str) -> None:
    """Convert and run every model, and compare. Exit code 1: something is not as written down."""
    console = Console(soft_wrap=True, highlight=False, width=120)
    chosen = cases(only)
    if not chosen:
        console.print(
            "left out: none of the models is here (MRT_SHARED may name the folder that holds data/)"
        )
        return
    written = table.load() if table.FILE.exists() else {}
    found = {}
    shown = Table(
        "8 bits, dB",
        "16 bits, dB",
        "same class",
        "time",
        "memory",
        "bytes",
        "% of float",
        "model",
        box=None,
    )
    for name, state in states_of(chosen):
        found[name] = state
        shown.add_row(
            *(
                str(state.get(key, "-"))[:30]
                for key in (
                    "8 bits",
                    "16 bits",
                    "same class",
                    "time",
                    "memory",
                    "bytes",
                    "% of float",
                )
            ),
            name,
        )
    console.print(shown)
    sentences = table.differences(written, found)
    for sentence in sentences:
        console.print(sentence, markup=False)
    console.print(
        f"{len(found)} models, {len(sentences)} differences", markup=False
    )
    if update:
        table.FILE.write_text(
            table.text({**written, **found}), encoding="utf-8"
        )
        console.print(f"wrote {table.FILE.name}")
    sys.exit(1 if sentences and not update else 0)


if __name__ == "__main__":
    main()
