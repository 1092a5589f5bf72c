"""`cvm verify`, `show`, `digest` and `cost`: a program, without running it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cvm.commands.failures import NO
from cvm.commands.options import (
    FILE,
    JSON,
    PROGRAM,
    block,
)
from cvm.commands.output import print_json, print_lines
from cvm.errors import BadInput, Unproven

if TYPE_CHECKING:
    from cvm.program import Program


def _program_id(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | None:
    if text is not None and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise click.BadParameter(
            f"{text!r} is no program id: 64 digits of 0-9 and a-f, as `cvm digest` prints them"
        )
    return text


@click.command(epilog=block("Example:", "cvm verify model.cvm --all"))
@PROGRAM
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="List every value's interval and slack.",
)
@click.option(
    "--expect",
    "expected",
    metavar="ID",
    callback=_program_id,
    help="Exit with 1 unless the program has this id (see `cvm digest`): then no bit has changed.",
)
@JSON
@click.pass_context
def verify(
    ctx: click.Context,
    program_path: Path,
    every: bool,
    expected: str | None,
    as_json: bool,
) -> None:
    """Prove that no allowed input can make any value overflow.

    Inputs are allowed anything inside their intervals (see `cvm show`). Exit code 0 if it is proven; else 1,
    with the instruction, the interval found and the limit.

    Slack is the room that a value's interval leaves in its type, in bits: log2 of the largest factor by which
    both of its ends could grow. The tightest slack is that of the i32 sums,
    products and shifts; what only moves, selects or saturates cannot overflow.
    """
    from cvm.file import format as file_format
    from cvm.proof import cost
    from cvm.proof import slack as proof
    from cvm.proof.validate import validate
    from cvm.runtime import listing

    program = file_format.read(program_path)
    try:
        form = validate(program)
    except Unproven as problem:
        if not as_json:
            raise
        print_json({"format": "cvm-verify-1", **proof.refusal(problem)})
        ctx.exit(NO)
    total, program_id = cost.cost(form).total, file_format.program_id(program)
    differs = expected is not None and expected != program_id
    if as_json:
        facts = proof.as_json(form, total, program_id, every=every)
        stated = {} if expected is None else {"expected": expected}
        print_json({"format": "cvm-verify-1", **facts, **stated})
    elif differs:
        print_lines(
            [
                "not the program that is expected, though proven:",
                f"  expected {expected}",
                f"  found    {program_id}",
            ]
        )
    else:
        print_lines(
            listing.proof_summary(form, total, program_id)
            + (["", *listing.intervals(form)] if every else [])
        )
    if differs:
        ctx.exit(NO)


@click.command(
    epilog=block(
        "Examples:",
        "cvm show model.cvm | less -S",
        "cvm show --plan model.cvm",
        "cvm show --secret model.cvm",
    )
)
@PROGRAM
@click.option(
    "--plan",
    "as_plan",
    is_flag=True,
    help="List the native engine's steps and where their values lie.",
)
@click.option(
    "--secret",
    "as_secret",
    is_flag=True,
    help="List what an engine computes whose integers are secret: look-ups and their widths, comparisons, products.",
)
@JSON
def show(
    program_path: Path, as_plan: bool, as_secret: bool, as_json: bool
) -> None:
    """List a program: inputs, constants, instructions, outputs.

    %N are values, numbered inputs first, then constants, then one per instruction. What stands after # is the
    tensor of the source model. The program need not be provable.

    With --plan: how the native engine runs it. A step computes one or more instructions and writes one value;
    all values share one block of memory, the arena.

    With --secret: what it costs under encryption, among parties or in a proof. A chain of element-wise instructions on
    one value is one look-up. `bits` are those of its argument; `index` those of what is stored of it, in units: integers
    that are all congruent r modulo g are stored as (x - r) / g, channel by channel. `needed` is without the low bits
    that cannot matter; 0 is a line, which takes no look-up.
    """
    from cvm.file import format as file_format
    from cvm.plan import fuse, summary
    from cvm.proof.validate import check
    from cvm.runtime import listing

    if as_plan and as_secret:
        raise BadInput("--plan and --secret list different things: give one")
    if as_json and not (as_plan or as_secret):
        raise BadInput("show prints JSON with --plan or --secret only")
    program = file_format.read(program_path)
    if as_secret:
        _show_secret(program, as_json)
        return
    form, program_id = check(program), file_format.program_id(program)
    if as_json:
        print_json(
            {
                "format": "cvm-plan-1",
                **summary.as_json(fuse.fused(form), program_id),
            }
        )
    else:
        print_lines(
            summary.show(fuse.fused(form), program_id)
            if as_plan
            else listing.show(form, program_id)
        )


def _show_secret(program: Program, as_json: bool) -> None:
    from cvm.file import format as file_format
    from cvm.lower import lower
    from cvm.lower.secret_cost import secret_cost
    from cvm.proof.validate import validate

    report = secret_cost(lower(validate(program)))
    if as_json:
        program_id = file_format.program_id(program)
        facts = report.as_json()
        print_json({"format": "cvm-secret-1", "program": program_id, **facts})
    else:
        print_lines(report.lines())


@click.command(epilog=block("Example:", "cvm digest model.cvm"))
@PROGRAM
@JSON
def digest(program_path: Path, as_json: bool) -> None:
    """Print the program id, and the SHA-256 of the metadata.

    The id is the SHA-256 of the file up to its metadata: programs of one id give the same outputs.
    """
    from cvm.file import format as file_format

    program = file_format.read(program_path)
    digests = {
        "program": file_format.program_id(program),
        "metadata": file_format.metadata_digest(program),
    }
    if as_json:
        print_json({"format": "cvm-digest-1", **digests})
    else:
        print_lines(
            [
                f"program   {digests['program']}",
                f"metadata  {digests['metadata'] or 'none'}",
            ]
        )


@click.command(epilog=block("Example:", "cvm cost model.cvm"))
@PROGRAM
@JSON
def cost(program_path: Path, as_json: bool) -> None:
    """Print what one sample costs, by instruction and in total.

    The cost is computed from shapes alone: multiply-accumulates, table reads, element operations and bytes
    moved, each times a published weight. It is the same on every machine.
    """
    from cvm.file import format as file_format
    from cvm.proof import cost
    from cvm.proof.validate import check
    from cvm.runtime import listing

    form = check(file_format.read(program_path))
    report = cost.cost(form)
    if as_json:
        print_json({"format": "cvm-cost-1", **cost.as_json(form, report)})
    else:
        print_lines(listing.cost_table(form, report))


@click.command(epilog=block("Example:", "cvm diff mine.cvm theirs.cvm"))
@click.argument("one_path", metavar="A.cvm", type=FILE)
@click.argument("other_path", metavar="B.cvm", type=FILE)
@JSON
@click.pass_context
def diff(
    ctx: click.Context, one_path: Path, other_path: Path, as_json: bool
) -> None:
    """Name what differs between two programs.

    Exit code 0 if they have one id, and so give the same outputs, even where their metadata differ; else 1, with the
    first input, constant, instruction and output that differs.
    """
    from cvm.file import format as file_format
    from cvm.runtime.difference import difference, show

    differences = difference(
        file_format.read(one_path), file_format.read(other_path)
    )
    if as_json:
        print_json({"format": "cvm-diff-1", **differences.as_json()})
    else:
        print_lines(show(differences, (str(one_path), str(other_path))))
    if not differences.same:
        ctx.exit(NO)
