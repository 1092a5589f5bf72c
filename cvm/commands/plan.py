"""`cvm plan`."""

from __future__ import annotations

from pathlib import Path

import click

from cvm.commands.options import FILE, JSON, PROGRAM, block
from cvm.commands.output import print_json, print_lines


@click.command(
    short_help="Write a plan file, for libcvm.",
    epilog=block(
        "Example:",
        "cvm plan model.cvm -o model.plan",
        "cvm plan model.cvm -o model.plan --fast-on avx2",
        "cvm show --plan model.cvm     what the plan is",
    ),
)
@PROGRAM
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="P.plan",
    help="The file to write.",
)
@click.option(
    "--fast-on",
    type=click.Choice(["avx2"]),
    help="Let channels lie in the order in which processors with AVX2 and no VNNI multiply fastest. The answers stay the same, "
    "on every processor.",
)
@JSON
def plan(
    program_path: Path, output: Path, fast_on: str | None, as_json: bool
) -> None:
    """Write how the native engine runs a proven program, for libcvm: the engine as a library without Python.

    C, and every language that calls C, opens the file and runs it, with the same answers to the byte
    (docs/how_to/libcvm.md). It serves the version of libcvm that is the version of this command.
    """
    from cvm import __version__
    from cvm.file import disk
    from cvm.file import format as file_format
    from cvm.file.suffixes import require_suffix
    from cvm.plan import file as plan_file
    from cvm.proof.validate import validate
    from cvm.runtime import native

    disk.require_writable([output], inputs=[program_path])
    require_suffix(output, ".plan")
    form = validate(file_format.read(program_path))
    program_id = file_format.program_id(form.program)
    if fast_on is not None:
        form = native.ordered_for(form, fast_on)
    parts = [
        *plan_file.encode(form, program_id=program_id, version=__version__)
    ]
    disk.write_all({output: lambda file: file.writelines(parts)})
    size = sum(map(len, parts))
    if as_json:
        print_json(
            {
                "format": "cvm-plan-file-1",
                "program": program_id,
                "version": __version__,
                "bytes": size,
                "written": str(output),
            }
        )
    else:
        print_lines(
            [f"wrote {output}: {size:,} bytes, for libcvm {__version__}"]
        )
