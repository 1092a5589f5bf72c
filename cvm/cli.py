"""The `cvm` command: parses arguments, prints, sets the exit code (`cvm/SPEC.md` section 8). Its texts teach."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cvm.errors import BadInput, CvmError, Trap, Unproven

if TYPE_CHECKING:
    from cvm.runtime.execution import Result
    from cvm.runtime.record import Job

FILE = click.Path(
    path_type=Path, readable=False
)  # unreadable files are refused in our own words
NO, BAD, TRAPPED, INTERRUPTED, CLOSED_PIPE = 1, 2, 3, 130, 141


class Commands(click.Group):
    """Turns every failure into one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except CvmError as problem:
            _fail(
                ctx,
                "; ".join([str(problem), *getattr(problem, "__notes__", ())]),
                _exit_code(problem),
            )
        except MemoryError:
            _fail(ctx, "not enough memory for this program and these inputs", BAD)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)
        except OSError as problem:
            _fail(ctx, f"{problem.filename or 'output'}: {problem.strerror}", BAD)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)


def _exit_code(problem: CvmError) -> int:
    if isinstance(problem, Unproven):
        return NO
    return TRAPPED if isinstance(problem, Trap) else BAD


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    from cvm.runtime.listing import printable

    click.echo(f"cvm: {printable(message)}", err=True)
    ctx.exit(code)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a name may hold what the terminal's encoding lacks
    cli(prog_name="cvm")


def _block(title: str, *lines: str) -> str:
    """A part of a help text whose lines stay as they are."""
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


_OVERVIEW = (
    _block(
        "Start with:",
        "cvm show model.cvm            what the program is",
        "cvm verify model.cvm          whether it is proven never to overflow",
        "cvm run model.cvm --input x.npz --real",
        "                              run it on real numbers",
    ),
    _block(
        "Exit codes:",
        "0  yes, done",
        "1  a negative answer: not proven, no match, differs",
        "2  bad input or usage",
        "3  a trap in checked mode",
    ),
)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n\n".join(_OVERVIEW),
)
@click.version_option(package_name="mrt-cvm")
def cli() -> None:
    """Prove and run integer programs (.cvm files): the same bytes on every machine."""


_PROGRAM = click.argument("program_path", metavar="P.cvm", type=FILE)
_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for other programs to read."
)
_INPUT_HELP = (
    "An .npz with one array per input, by name (`x` will do for an only input; other arrays are left alone), "
    "or an .npy for an only input. Many samples lie along the first axis. For a program that takes a picture's bytes, "
    "also a picture of its size, or a folder of them."
)
_RUNNING = (
    click.option(
        "--input",
        "input_path",
        type=FILE,
        required=True,
        metavar="X.npz",
        help=_INPUT_HELP,
    ),
    click.option(
        "--real",
        is_flag=True,
        help="Real numbers, by the scales in the program's metadata.",
    ),
    click.option(
        "--checked",
        is_flag=True,
        help="Do without a proof; trap (exit code 3) at the first overflow.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        help="Samples run at once, or if fewer, threads that share one; results are the same for any number.",
    ),
    click.option(
        "--max-cost",
        type=click.IntRange(1),
        metavar="N",
        help="Refuse a program that costs more a sample.",
    ),
    click.option(
        "--max-memory",
        type=click.IntRange(1),
        metavar="BYTES",
        help="Refuse a program whose values hold more at once (see `cvm cost`).",
    ),
    click.option(
        "--engine",
        type=click.Choice(["auto", "reference", "native"]),
        default="auto",
        show_default=True,
        help="native: the C++ engine; reference: numpy; auto: native if it is installed and the program is proven.",
    ),
)


def _running_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `run` and `replay` share."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


@cli.command(
    epilog=_block(
        "Example:",
        "cvm run model.cvm --input digits.npz --real",
        "cvm run model.cvm --input x.npy -o out.npz --receipt r.json",
    )
)
@_PROGRAM
@_running_options
@click.option(
    "-o",
    "output_path",
    type=FILE,
    metavar="OUT.npz",
    help="Write the outputs; else a summary is printed.",
)
@click.option(
    "--receipt",
    "receipt_path",
    type=FILE,
    metavar="R.json",
    help="Write digests of inputs and outputs.",
)
@click.option(
    "--trace",
    "trace_path",
    type=FILE,
    metavar="T.json",
    help="Write digests of every instruction's value.",
)
def run(
    program_path: Path,
    input_path: Path,
    output_path: Path | None,
    receipt_path: Path | None,
    trace_path: Path | None,
    **how: Any,
) -> None:
    """Run a program on one sample or many.

    Inputs are integers inside the program's intervals (see `cvm show`), or with --real any real numbers.
    With an input of shape [1,28,28], an array of shape [N,28,28] holds N samples.
    """
    from cvm.file import disk as files
    from cvm.runtime import arrays, listing, receipt, trace
    from cvm.runtime import record as running

    written = [path for path in (output_path, receipt_path, trace_path) if path]
    files.require_writable(written, inputs=[program_path, input_path])
    job = _prepare(program_path, input_path, **how)
    made = running.record(
        job, receipt=receipt_path is not None, trace=trace_path is not None
    )
    writers: dict[Path, files.WriteFunction] = {}
    if output_path:
        writers[output_path] = lambda file: arrays.write_npz(file, made.outputs)
    if receipt_path and made.receipt:
        writers[receipt_path] = files.text_writer(receipt.to_json(made.receipt))
    if trace_path and made.trace:
        writers[trace_path] = files.text_writer(trace.to_json(made.trace))
    files.write_all(writers)
    summary = (
        [] if output_path else listing.outputs_summary(made.outputs, len(job.samples))
    )
    _say([*summary, *(f"wrote {path}" for path in written)])


def _prepare(
    program_path: Path,
    input_path: Path,
    *,
    max_cost: int | None,
    max_memory: int | None,
    **how: Any,
) -> Job:
    from cvm.proof import cost
    from cvm.runtime import machine
    from cvm.runtime import record as running

    allowance = cost.Allowance(max_cost, max_memory)
    try:
        job = running.prepare(
            program_path,
            input_path,
            allowance=allowance,
            progress=_with_progress,
            **how,
        )
    except Unproven as problem:
        problem.add_note("--checked runs it without a proof")
        raise
    if how["engine"] == "auto" and machine.lacks_engine(job.machine):
        click.echo(
            f"cvm: no native engine, running on the reference; {machine.HOW_TO_GET_THE_ENGINE}",
            err=True,
        )
    return job


def _with_progress(results: Iterable[Result], count: int) -> Iterable[Result]:
    """The results, with a bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        return results
    from rich.console import Console
    from rich.progress import track

    return track(
        results, "samples", count, console=Console(stderr=True), transient=True
    )


@cli.command(
    epilog=_block(
        "Example:",
        "cvm run model.cvm --input x.npz --receipt r.json",
        "cvm replay model.cvm r.json --input x.npz",
    )
)
@_PROGRAM
@click.argument("receipt_path", metavar="R.json", type=FILE)
@_running_options
@click.option(
    "--trace",
    "trace_path",
    type=FILE,
    metavar="T.json",
    help="Compare every instruction's value, too.",
)
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    program_path: Path,
    receipt_path: Path,
    input_path: Path,
    trace_path: Path | None,
    **how: Any,
) -> None:
    """Run again and compare with a receipt.

    Exit code 0 if everything matches; else 1, naming the first input or output that differs, or with --trace
    the first instruction.
    """
    from cvm.file import disk as files
    from cvm.file import document
    from cvm.runtime import listing, receipt, replay, trace

    stated = receipt.from_json(
        files.read_bounded(receipt_path, document.MAX_BYTES), str(receipt_path)
    )
    followed = None
    if trace_path:
        followed = trace.from_json(
            files.read_bounded(trace_path, document.MAX_BYTES), str(trace_path)
        )
    job = _prepare(program_path, input_path, **how)
    mismatch = replay.first_mismatch(job, stated, followed)
    if mismatch:
        _say(
            [
                f"no match: {mismatch.what}",
                f"  expected {mismatch.expected}",
                f"  found    {mismatch.found}",
            ]
        )
        ctx.exit(NO)
    _say(
        [
            f"match: {listing.counted(len(job.samples), 'sample')}, root {stated.root.hex()}"
        ]
    )


@cli.group()
def trace() -> None:
    """Work with traces, which `cvm run --trace` writes."""


@trace.command(
    "diff", epilog=_block("Example:", "cvm trace diff mine.json theirs.json")
)
@click.argument("one_path", metavar="A.json", type=FILE)
@click.argument("other_path", metavar="B.json", type=FILE)
@click.pass_context
def trace_diff(ctx: click.Context, one_path: Path, other_path: Path) -> None:
    """Name the first sample and instruction in which two traces differ.

    Exit code 0 if they are the same, 1 if they differ. No program and no tensor is needed.
    """
    from cvm.file import disk as files
    from cvm.file import document
    from cvm.runtime import listing
    from cvm.runtime import trace as traces

    one, other = (
        traces.from_json(files.read_bounded(path, document.MAX_BYTES), str(path))
        for path in (one_path, other_path)
    )
    difference = traces.first_difference(one, other)
    if difference:
        where = traces.describe(difference, one.first_value)
        rows = [
            (f"  {one_path}", difference.expected),
            (f"  {other_path}", difference.found),
        ]
        _say([f"differs: {where}", *listing.columns(rows, left=2)])
        ctx.exit(NO)
    _say([f"same: {listing.counted(len(one.samples), 'sample')}"])


@cli.command(epilog=_block("Example:", "cvm verify model.cvm --all"))
@_PROGRAM
@click.option(
    "--all", "every", is_flag=True, help="List every value's interval and slack."
)
@_JSON
@click.pass_context
def verify(ctx: click.Context, program_path: Path, every: bool, as_json: bool) -> None:
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
        _say_json(proof.refusal(problem))
        ctx.exit(NO)
    total, program_id = cost.cost(form).total, file_format.program_id(program)
    if as_json:
        _say_json(proof.as_json(form, total, program_id, every=every))
    else:
        _say(
            listing.proof_summary(form, total, program_id)
            + (["", *listing.intervals(form)] if every else [])
        )


@cli.command(
    epilog=_block(
        "Example:", "cvm show model.cvm | less -S", "cvm show --plan model.cvm"
    )
)
@_PROGRAM
@click.option(
    "--plan",
    "as_plan",
    is_flag=True,
    help="List the native engine's steps and where their values lie.",
)
@_JSON
def show(program_path: Path, as_plan: bool, as_json: bool) -> None:
    """List a program: inputs, constants, instructions, outputs.

    %N are values, numbered inputs first, then constants, then one per instruction. What stands after # is the
    tensor of the source model. The program need not be provable.

    With --plan: how the native engine runs it. A step computes one or more instructions and writes one value;
    all values share one block of memory, the arena.
    """
    from cvm.file import format as file_format
    from cvm.plan import fuse, summary
    from cvm.proof.validate import check
    from cvm.runtime import listing

    if as_json and not as_plan:
        raise BadInput("show prints JSON of a plan only: add --plan")
    program = file_format.read(program_path)
    form, program_id = check(program), file_format.program_id(program)
    if as_json:
        _say_json(summary.as_json(fuse.fused(form), program_id))
    else:
        _say(
            summary.show(fuse.fused(form), program_id)
            if as_plan
            else listing.show(form, program_id)
        )


@cli.command(epilog=_block("Example:", "cvm digest model.cvm"))
@_PROGRAM
@_JSON
def digest(program_path: Path, as_json: bool) -> None:
    """Print the program id, and the SHA-256 of the metadata.

    The id is the SHA-256 of the file up to its metadata: programs of one id give the same outputs.
    """
    from cvm.file import format as file_format

    program = file_format.read(program_path)
    found = {
        "program": file_format.program_id(program),
        "metadata": file_format.metadata_digest(program),
    }
    if as_json:
        _say_json(found)
    else:
        _say(
            [
                f"program   {found['program']}",
                f"metadata  {found['metadata'] or 'none'}",
            ]
        )


@cli.command(epilog=_block("Example:", "cvm cost model.cvm"))
@_PROGRAM
@_JSON
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
        _say_json(cost.as_json(form, report))
    else:
        _say(listing.cost_table(form, report))


@cli.command(epilog=_block("Example:", "cvm bench model.cvm --threads 2"))
@_PROGRAM
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
@_JSON
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
        _say_json(bench.as_json(measured))
    else:
        _say(listing.measurement(measured))


def _say(lines: Sequence[str]) -> None:
    click.echo("\n".join(lines))


def _say_json(content: Any) -> None:
    click.echo(json.dumps(content, indent=1))
