"""`cvm bench`."""

from __future__ import annotations

from pathlib import Path

import click

from cvm.commands.options import (
    JSON,
    PROGRAM,
    block,
)
from cvm.commands.output import print_json, print_lines


@click.command(epilog=block("Example:", "cvm bench model.cvm --threads 2"))
@PROGRAM
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Threads that share a sample.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(1),
    metavar="R",
    help="Runs to time; else as many as fit in 2 seconds.",
)
@JSON
def bench(
    program_path: Path, threads: int, repetitions: int | None, as_json: bool
) -> None:
    """Measure how fast the native engine runs a program here.

    One sample of seeded random integers runs again and again: the median and the 90th percentile of its times,
    multiply-accumulates (MACs) per second, what share that is of all that the processor could do, and the
    slowest steps of the plan. CVM_ISA chooses the instruction set.
    """
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime import bench, listing, machine

    machine.require("native", checked=False)
    measured = bench.measure(
        validate(file_format.read(program_path)),
        threads=threads,
        repetitions=repetitions,
    )
    if as_json:
        print_json({"format": "cvm-bench-1", **bench.as_json(measured)})
    else:
        print_lines(listing.measurement(measured))
