"""`cvm run` and `cvm replay`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.failures import NO
from cvm.commands.options import (
    FILE,
    JSON,
    PROGRAM,
    backend_options,
    block,
    running_options,
)
from cvm.commands.output import is_quiet, is_verbose, print_json, print_lines
from cvm.errors import BadInput, Unproven

DEFAULT_PROTOCOLS = {"spu": "aby3"}

if TYPE_CHECKING:
    from cvm.runtime.backends import BackendOptions
    from cvm.runtime.execution import Result
    from cvm.runtime.record import Backend, RecordingJob


@click.command(
    epilog=block(
        "Example:",
        "cvm run model.cvm --input digits.npz --real",
        "cvm run model.cvm --input x.npy -o out.npz --receipt r.json",
        "cvm run model.cvm --input x.npy --backend spu --protocol aby3",
        "cvm run narrow.cvm --input x.npy --backend concrete",
    )
)
@PROGRAM
@running_options
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
@backend_options
@JSON
def run(
    program_path: Path,
    input_path: Path,
    output_path: Path | None,
    receipt_path: Path | None,
    trace_path: Path | None,
    backend: str | None,
    protocol: str | None,
    secret_weights: bool,
    simulate: bool,
    as_json: bool,
    cluster: str | None,
    **how: Any,
) -> None:
    """Run a program on one sample or many.

    Inputs are integers inside the program's intervals (see `cvm show`), or with --real any real numbers.
    With an input of shape [1,28,28], an array of shape [N,28,28] holds N samples. Pictures are samples in the order of
    their files' names, by which their answers are printed. --json prints the outputs, all
    their values with them unless -o writes these.
    """
    from cvm.cluster import connected

    chosen = _backend(backend, protocol, secret_weights, simulate)
    if chosen and trace_path:
        raise BadInput(
            f"a trace shows every value, which the back end {backend} hides; leave --trace away"
        )
    if chosen and cluster:
        raise BadInput(
            f"the cluster {cluster} or the back end {backend}: choose one"
        )
    written = Written(output_path, receipt_path, trace_path)
    written.require(inputs=[program_path, input_path])
    with connected(cluster) as workers:
        job = _prepare(
            program_path, input_path, cluster=workers, backend=chosen, **how
        )
        run_and_write(job, written, as_json=as_json)


@dataclass(frozen=True)
class Written:
    """The files that a run writes, if they are named."""

    output: Path | None = None
    receipt: Path | None = None
    trace: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """Those that are named."""
        candidates = (self.output, self.receipt, self.trace)
        return [path for path in candidates if path]

    def require(self, *, inputs: list[Path]) -> None:
        """BadInput unless they can be written."""
        from cvm.file import disk
        from cvm.file.suffixes import require_suffix

        disk.require_writable(self.paths, inputs=inputs)
        for path in filter(None, (self.receipt, self.trace)):
            require_suffix(path, ".json")
        if self.output and self.output.suffix not in ("", ".npz"):
            raise BadInput(
                f"{self.output}: outputs are written as .npz; name it so, or print them with --json"
            )


def run_and_write(
    job: RecordingJob, written: Written, *, as_json: bool
) -> None:
    """Run all samples; write what was asked for, and print the rest."""
    from cvm.file import disk as files
    from cvm.file import npy
    from cvm.runtime import listing, receipt, trace
    from cvm.runtime import record as running

    record = running.record(
        job,
        receipt=written.receipt is not None,
        trace=written.trace is not None,
    )
    writers: dict[Path, files.WriteFunction] = {}
    if written.output:
        writers[written.output] = lambda file: npy.write_npz(
            file, record.outputs
        )
    if written.receipt and record.receipt:
        text = receipt.to_json(record.receipt)
        writers[written.receipt] = files.text_writer(text)
    if written.trace and record.trace:
        writers[written.trace] = files.text_writer(trace.to_json(record.trace))
    files.write_all(writers)
    if as_json:
        facts = running.as_json(job, record, values=written.output is None)
        names = list(map(str, written.paths))
        print_json({"format": "cvm-run-1", **facts, "written": names})
        return
    summary = (
        []
        if written.output
        else listing.outputs_summary(
            record.outputs, len(job.samples), job.pictures
        )
    )
    effort = listing.backend_summary(job.backend) if job.backend else []
    wrote = [f"wrote {path}" for path in written.paths]
    print_lines([*summary, *effort, *wrote])


def _backend(
    name: str | None,
    protocol: str | None,
    secret_weights: bool,
    simulate: bool,
) -> Backend | None:
    from cvm.runtime.backends import open_backend
    from cvm.runtime.record import Backend

    options = chosen_options(name, protocol, secret_weights, simulate)
    if name is None or options is None:
        return None
    return Backend(name, partial(open_backend, name, options))


def chosen_options(
    name: str | None,
    protocol: str | None,
    secret_weights: bool,
    simulate: bool,
) -> BackendOptions | None:
    """The options of the back end that was chosen; BadInput for such an option without a back end."""
    from cvm.runtime.backends import BackendOptions

    if name:
        chosen = protocol or DEFAULT_PROTOCOLS.get(name, "")
        if simulate and name != "concrete":
            raise BadInput(
                f"--simulate is of the back end concrete: leave it away with {name}"
            )
        return BackendOptions(chosen, secret_weights, simulate)
    for option, value, backend in (
        ("--protocol", protocol, "spu"),
        ("--secret-weights", secret_weights, "spu"),
        ("--simulate", simulate, "concrete"),
    ):
        if value:
            raise BadInput(
                f"{option} is of a back end: add --backend {backend}"
            )
    return None


def _prepare(
    program_path: Path,
    input_path: Path,
    *,
    max_cost: int | None,
    max_memory: int | None,
    **how: Any,
) -> RecordingJob:
    from cvm.proof import cost
    from cvm.runtime import listing, machine
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
    lacks_engine = how["engine"] == "auto" and machine.lacks_engine(job.machine)
    if lacks_engine and not is_quiet():
        hint = machine.HOW_TO_GET_THE_ENGINE
        print_lines(
            [f"cvm: no native engine, running on the reference; {hint}"],
            err=True,
        )
    if is_verbose():
        counted = listing.counted(len(job.samples), "sample")
        print_lines([f"cvm: {job.machine.name}, {counted}"], err=True)
    if not is_quiet():
        for note in job.notes:
            print_lines([f"cvm: note: {note}"], err=True)
    for clipping in job.clipping:
        if clipping.count:
            print_lines(
                [f"cvm: warning: {clipping}; --strict refuses them"], err=True
            )
    return job


@contextmanager
def _noting_another_program(path: Path, stated: str) -> Iterator[None]:
    """Note in an error that a receipt is of another program than the one to run."""
    from cvm.file import format as file_format

    try:
        yield
    except BadInput as problem:
        own = file_format.program_id(file_format.read(path))
        if own != stated:
            problem.add_note(
                f"the receipt is of another program: {stated}, and {path} is {own}"
            )
        raise


def _with_progress(results: Iterable[Result], count: int) -> Iterable[Result]:
    """The results, with a bar on stderr if that is open, and a terminal."""
    if is_quiet() or sys.stderr is None or not sys.stderr.isatty():
        return results
    from rich.console import Console
    from rich.progress import track

    return track(
        results, "samples", count, console=Console(stderr=True), transient=True
    )


@click.command(
    epilog=block(
        "Example:",
        "cvm run model.cvm --input x.npz --receipt r.json",
        "cvm replay model.cvm r.json --input x.npz",
    )
)
@PROGRAM
@click.argument("receipt_path", metavar="R.json", type=FILE)
@running_options
@click.option(
    "--trace",
    "trace_path",
    type=FILE,
    metavar="T.json",
    help="Compare every instruction's value, too.",
)
@JSON
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    program_path: Path,
    receipt_path: Path,
    input_path: Path,
    trace_path: Path | None,
    as_json: bool,
    cluster: str | None,
    **how: Any,
) -> None:
    """Run again and compare with a receipt.

    Exit code 0 if everything matches; else 1, naming the first input or output that differs, or with --trace
    the first instruction. What the receipt states and no replay can compare is named: which back end it was, and,
    without --real, how many values were clipped.
    """
    from cvm.cluster import connected
    from cvm.file import disk as files
    from cvm.file import document
    from cvm.file import format as file_format
    from cvm.runtime import listing, receipt, replay, trace

    if file_format.is_program(receipt_path):
        raise BadInput(
            f"{receipt_path}: is a program, not a receipt; the program comes first: cvm replay P.cvm R.json"
        )
    stated = receipt.load(receipt_path)
    followed = None
    if trace_path:
        followed = trace.from_json(
            files.read_bounded(trace_path, document.MAX_BYTES), str(trace_path)
        )
    with connected(cluster) as workers:
        with _noting_another_program(program_path, stated.program_id):
            job = _prepare(program_path, input_path, cluster=workers, **how)
        mismatch = replay.first_mismatch(job, stated, followed)
    remarks = [f"not compared: {x}" for x in replay.not_compared(job, stated)]
    if as_json:
        print_json(
            {"format": "cvm-replay-1", **replay.as_json(job, stated, mismatch)}
        )
        print_lines(remarks, err=True)
    else:
        print_lines([*listing.replay_summary(stated, mismatch), *remarks])
    if mismatch:
        ctx.exit(NO)
