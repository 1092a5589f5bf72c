"""The process that has SPU: `python -m cvm.secure.process FOLDER`. Lines on its standard input name the samples.

The folder holds the program and the job. For each line with a sample's number it reads the arrays of `N.in.npz` and
writes `N.out.npz`, and answers with a line. As a party among others it runs when all others do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.secure import exchange, spu_link
from cvm.secure.compiled import compile_program
from cvm.secure.network import NetworkParty, agree
from cvm.secure.parties import SimulatedParties
from cvm.secure.protocols import protocol_of

Parties = SimulatedParties | NetworkParty


def main(folder: Path) -> None:
    """Answer until the other side closes the line, or something fails."""
    with _own_output() as answers:
        try:
            for answer in _answers(folder):
                answers.write(exchange.line_of(answer))
                answers.flush()
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            with suppress(BrokenPipeError):
                answers.write(exchange.line_of({"error": reason}))


def _own_output() -> BinaryIO:
    """Standard output for the answers; whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _answers(folder: Path) -> Iterator[dict[str, Any]]:
    spu_link.require_version()
    spu_link.keep_log(folder / exchange.LOG)
    job = exchange.read_job(folder)
    seat, protocol = job.seat, protocol_of(job.protocol)
    link: Any = None
    program = job.program
    if seat is not None:
        link = spu_link.network_link(seat.peers, seat.rank, seat.timeout)
        agree(link, job.terms)
        program = link.broadcast(program, seat.weights_from)
    form = validate(file_format.read(folder / exchange.PROGRAM))
    start = perf_counter()
    compiled = compile_program(form, hide_weights=job.hide_weights)
    seconds = perf_counter() - start
    if seat is not None:
        agree(link, {"executable": compiled.digest})
    log = folder / exchange.LOG
    if seat is None:
        yield {"compile_seconds": seconds, "program": program}
        simulated = SimulatedParties(compiled, protocol, log, job.carried)
        yield from _runs(simulated, folder, carries=bool(job.carried))
        return
    party = NetworkParty(compiled, protocol, seat, link, log, job.carried)
    yield {"compile_seconds": seconds, "program": program}
    if seat.rank == seat.client:
        yield from _runs(party, folder, carries=bool(job.carried))
        party.finish()
        link.stop_link()
    else:
        efforts = [asdict(effort) for effort in party.serve()]
        link.stop_link()
        yield {"samples": len(efforts), "efforts": efforts}


def _runs(
    parties: Parties, folder: Path, *, carries: bool
) -> Iterator[dict[str, Any]]:
    """An answer for each sample, as its line comes; where outputs are carried on, they are written when asked for."""
    for line in sys.stdin.buffer:
        if line == exchange.OPEN:
            exchange.write_arrays(folder / "open.out.npz", parties.open())
            yield {"opened": True}
            continue
        number = int(line)
        inputs = exchange.read_arrays(folder / f"{number}.in.npz")
        if carries:
            effort = parties.take(inputs)
        else:
            outputs, effort = parties.run(inputs)
            exchange.write_arrays(folder / f"{number}.out.npz", outputs)
        yield asdict(effort)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
