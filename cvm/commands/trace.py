"""`cvm trace diff`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cvm.commands.failures import NO, CvmCommands
from cvm.commands.options import (
    FILE,
    JSON,
    block,
)
from cvm.commands.output import print_json, print_lines


@click.group(cls=CvmCommands)
def trace() -> None:
    """Work with traces, which `cvm run --trace` writes."""


@trace.command(
    "diff", epilog=block("Example:", "cvm trace diff mine.json theirs.json")
)
@click.argument("one_path", metavar="A.json", type=FILE)
@click.argument("other_path", metavar="B.json", type=FILE)
@JSON
@click.pass_context
def trace_diff(
    ctx: click.Context, one_path: Path, other_path: Path, as_json: bool
) -> None:
    """Name the first sample and instruction in which two traces differ.

    Exit code 0 if they are the same, 1 if they differ. No program and no tensor is needed.
    """
    from cvm.file import disk as files
    from cvm.file import document
    from cvm.runtime import listing
    from cvm.runtime import trace as traces

    one_trace, other_trace = (
        traces.from_json(
            files.read_bounded(path, document.MAX_BYTES), str(path)
        )
        for path in (one_path, other_path)
    )
    difference = traces.first_difference(one_trace, other_trace)
    if as_json:
        facts = None if difference is None else asdict(difference)
        print_json(
            {
                "format": "cvm-trace-diff-1",
                "same": not facts,
                "difference": facts,
            }
        )
    elif difference:
        where = traces.describe(difference, one_trace.first_value)
        rows = [
            (f"  {one_path}", difference.expected),
            (f"  {other_path}", difference.found),
        ]
        print_lines([f"differs: {where}", *listing.columns(rows, left=2)])
    else:
        print_lines(
            [f"same: {listing.counted(len(one_trace.samples), 'sample')}"]
        )
    if difference:
        ctx.exit(NO)
