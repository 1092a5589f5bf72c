"""`cvm import`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from cvm.commands.options import FILE, JSON, block
from cvm.commands.output import print_json, print_lines
from cvm.errors import BadInput, Malformed, Unproven, brief

INTERVAL = re.compile(r"(.+)=(-?\d{1,12})\.\.(-?\d{1,12})", re.DOTALL)


@click.command(
    "import",
    short_help="Read a TOSA file as a program.",
    epilog=block(
        "Examples:",
        "cvm import model.tosa -o model.cvm",
        "cvm import model.tosa -o model.cvm --interval x=-100..100",
    ),
)
@click.argument("model_path", metavar="MODEL.tosa", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="P.cvm",
    help="The program to write.",
)
@click.option(
    "--interval",
    "intervals",
    multiple=True,
    metavar="NAME=LOW..HIGH",
    help="The least and the greatest integer of an input; else all of its type. May be given for each input.",
)
@JSON
def import_model(
    model_path: Path,
    output: Path,
    intervals: tuple[str, ...],
    as_json: bool,
) -> None:
    """Read a TOSA file as a program with the same answers, and prove it.

    Operators of the integer profile become instructions with the same meaning; one message names every operator that
    none has. What TOSA leaves unpredictable, such as an addition that overflows, must be proven not to happen: narrower
    intervals of the inputs may be needed.
    """
    from cvm.file import disk
    from cvm.file import format as file_format
    from cvm.file.suffixes import require_suffix
    from cvm.proof.validate import validate
    from cvm.tosa import graph as tosa_file
    from cvm.tosa.importing import program_of

    disk.require_writable([output], inputs=[model_path])
    require_suffix(output, ".cvm")
    data = disk.read_bounded(model_path, tosa_file.MAX_BYTES)
    try:
        graph = tosa_file.from_bytes(data)
    except Malformed as problem:
        raise Malformed(f"{model_path}: {problem}") from None
    program = program_of(graph, dict(map(_interval, intervals)))
    try:
        validate(program)
    except Unproven as problem:
        problem.add_note("--interval NAME=LOW..HIGH narrows an input")
        raise
    file_format.write(program, output)
    count, operators = len(program.instructions), len(graph.operators)
    if as_json:
        print_json(
            {
                "format": "cvm-import-1",
                "written": str(output),
                "program": file_format.program_id(program),
                "instructions": count,
                "operators": operators,
            }
        )
    else:
        print_lines(
            [f"wrote {output}: {count} instructions of {operators} operators"]
        )


def _interval(text: str) -> tuple[str, tuple[int, int]]:
    """A name with its least and its greatest integer."""
    match = INTERVAL.fullmatch(text)
    if match is None:
        raise BadInput(f"--interval {brief(text)}; expected NAME=LOW..HIGH")
    name, low, high = match.groups()
    return name, (int(low), int(high))
