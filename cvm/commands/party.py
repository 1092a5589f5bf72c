"""`cvm party` and `cvm strip`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.accumulate import accumulate_to
from cvm.commands.options import FILE, INPUT_HELP, JSON, PROGRAM, block
from cvm.commands.output import print_lines
from cvm.commands.run import Written, run_and_write
from cvm.errors import BadInput

if TYPE_CHECKING:
    from cvm.proof.validate import Proven
    from cvm.runtime.machine import Machine
    from cvm.runtime.record import RecordingJob
    from cvm.secure.machine import SecureRun

RANK = click.IntRange(0, 15)
SEAT = (
    click.option(
        "--rank",
        type=RANK,
        required=True,
        metavar="N",
        help="The place of this party in --peers, from 0 on.",
    ),
    click.option(
        "--peers",
        required=True,
        metavar="HOST:PORT,...",
        help="Where each party is reached, in order; the same for all.",
    ),
    click.option(
        "--protocol",
        default="aby3",
        show_default=True,
        metavar="NAME",
        help="aby3 (three parties), semi2k (three, party 0 a trusted dealer), cheetah (two).",
    ),
    click.option(
        "--client",
        type=RANK,
        default=0,
        show_default=True,
        metavar="N",
        help="The party that has the inputs and learns the outputs.",
    ),
    click.option(
        "--secret-weights",
        is_flag=True,
        help="The weights are known to one party alone; the others have the program of `cvm strip`.",
    ),
    click.option(
        "--weights-from",
        type=RANK,
        default=0,
        show_default=True,
        metavar="N",
        help="With --secret-weights: the party that has them.",
    ),
    click.option(
        "--timeout",
        type=click.IntRange(1, 86400),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the others.",
    ),
)


def seat_options(command: Any) -> Any:
    """Where a party sits."""
    for option in reversed(SEAT):
        command = option(command)
    return command


@click.command(
    short_help="Take part in a run of which no party has the inputs of another.",
    epilog=block(
        "Example, in three places at once:",
        "cvm party model.cvm --rank 0 --peers a:9001,b:9001,c:9001 --input x.npy",
        "cvm party model.cvm --rank 1 --peers a:9001,b:9001,c:9001",
        "cvm party model.cvm --rank 2 --peers a:9001,b:9001,c:9001",
    ),
)
@PROGRAM
@seat_options
@click.option(
    "--input",
    "input_path",
    type=FILE,
    metavar="X.npz",
    help=f"Of the client: {INPUT_HELP}",
)
@click.option(
    "--real",
    is_flag=True,
    help="Real numbers, by the scales in the program's metadata.",
)
@click.option(
    "-o",
    "output_path",
    type=FILE,
    metavar="OUT.npz",
    help="Of the client: write the outputs; else a summary is printed.",
)
@click.option(
    "--receipt",
    "receipt_path",
    type=FILE,
    metavar="R.json",
    help="Of the client: write digests of inputs and outputs.",
)
@click.option(
    "--accumulate",
    "carries",
    is_flag=True,
    help="Outputs go on as inputs from sample to sample, as shares, and the last ones alone are opened: see cvm accumulate.",
)
@JSON
def party(
    program_path: Path,
    input_path: Path | None,
    real: bool,
    output_path: Path | None,
    receipt_path: Path | None,
    carries: bool,
    as_json: bool,
    **seat: Any,
) -> None:
    """Run a program together with other parties, each in a process or on a machine of its own.

    The client divides its inputs into shares, and a share alone is random numbers. It alone learns the outputs, and only it can
    write a receipt. All parties need the same program, protocol and seats; they compare these before anything runs.

    Parties are semi-honest: nothing is hidden from those that leave the protocol, and nothing is encrypted on the way, so that
    the parties need a network of their own, or a tunnel (docs/privacy.md).
    """
    secure_run = _secure_run(**seat)
    is_client = seat["rank"] == seat["client"]
    if is_client != (input_path is not None):
        requirement = "needs --input" if is_client else "has no --input"
        raise BadInput(
            f"party {seat['rank']} {requirement}: party {seat['client']} is the client (--client)"
        )
    if carries:
        secure_run = _carrying(secure_run, program_path)
    if input_path is not None and carries:
        if output_path is None or receipt_path or as_json:
            raise BadInput(
                "--accumulate needs -o, and writes no receipt and no JSON"
            )
        opener = partial(_machine, secure_run)
        accumulate_to(output_path, program_path, input_path, opener, real=real)
        return
    if input_path is not None:
        written = Written(output_path, receipt_path)
        written.require(inputs=[program_path, input_path])
        job = _client_job(secure_run, program_path, input_path, real=real)
        run_and_write(job, written, as_json=as_json)
        return
    for option, value in (
        ("--real", real),
        ("-o", output_path),
        ("--receipt", receipt_path),
        ("--json", as_json),
    ):
        if value:
            raise BadInput(f"{option} is the client's")
    _serve(secure_run, program_path)


def _carrying(secure_run: SecureRun, program_path: Path) -> SecureRun:
    """The same, with what goes on from sample to sample."""
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime.accumulation import Carried

    form = validate(file_format.read(program_path))
    return replace(secure_run, carried=Carried.of(form).places)


def _machine(secure_run: SecureRun, form: Proven) -> Machine:
    from cvm.secure.machine import open_run

    return open_run(secure_run, form)


def _secure_run(
    *,
    rank: int,
    peers: str,
    protocol: str,
    client: int,
    secret_weights: bool,
    weights_from: int,
    timeout: int,
) -> SecureRun:
    from cvm.runtime.backends import BackendOptions
    from cvm.secure.machine import SecureRun
    from cvm.secure.protocols import protocol_of
    from cvm.secure.seat import Seat

    places = tuple(peer.strip() for peer in peers.split(","))
    return SecureRun(
        protocol_of(protocol),
        BackendOptions(protocol, secret_weights),
        Seat(rank, places, client, weights_from, timeout),
    )


def _client_job(
    secure_run: SecureRun, program_path: Path, input_path: Path, *, real: bool
) -> RecordingJob:
    from cvm.proof.cost import Allowance
    from cvm.runtime import record as running
    from cvm.runtime.record import Backend
    from cvm.secure.machine import open_run

    return running.prepare(
        program_path,
        input_path,
        real=real,
        checked=False,
        engine="auto",
        threads=1,
        allowance=Allowance(None, None),
        progress=lambda results, count: results,
        backend=Backend("spu", partial(open_run, secure_run)),
    )


def _serve(secure_run: SecureRun, program_path: Path) -> None:
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime import listing
    from cvm.secure.machine import serve

    done = serve(secure_run, validate(file_format.read(program_path)))
    sent = sum(effort["sent_bytes"] for effort in done["efforts"])
    counted = listing.counted(done["samples"], "sample")
    print_lines([f"served {counted}; {sent:,} bytes sent"])


@click.command(
    short_help="Write a program with zeros for weights, for those who may not have them.",
    epilog=block("Example:", "cvm strip model.cvm -o shown.cvm"),
)
@PROGRAM
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="SHOWN.cvm",
    help="The file to write.",
)
def strip(program_path: Path, output: Path) -> None:
    """Write what may be shown of a program whose weights are secret: zeros in their place, and no metadata.

    Parties that help with `cvm party --secret-weights` need no more. Multipliers, shifts and tables stay.
    """
    from cvm.file import disk
    from cvm.file import format as file_format
    from cvm.file.suffixes import require_suffix
    from cvm.proof.validate import check
    from cvm.secure.weights import without_weights

    disk.require_writable([output], inputs=[program_path])
    require_suffix(output, ".cvm")
    form = check(file_format.read(program_path))
    file_format.write(without_weights(form.program), output)
    print_lines([f"wrote {output}"])
