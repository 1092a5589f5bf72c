"""What the command and the process that has SPU exchange: lines of JSON, and arrays in files of one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvm.file import npy
from cvm.program import IntArray
from cvm.secure.seat import Seat

PROGRAM, JOB, LOG = "program.cvm", "job.json", "spu.log"
OPEN = b"open\n"  # the line that requests the outputs of a run that carries
Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Job:
    """What the process is to run. `seat` is None where it plays all parties; else `terms` are what all must share.

    `program` is the id of this party's own program, with weights that others may not have. `carried` are places of
    inputs and of outputs whose shares go on as these; then outputs are opened once, at the end.
    """

    protocol: str
    hide_weights: bool
    seat: Seat | None
    terms: dict[str, Any]
    program: str
    carried: Places = ()


def write_job(folder: Path, job: Job) -> None:
    """Write it to its file."""
    (folder / JOB).write_bytes(line_of(asdict(job)))


def read_job(folder: Path) -> Job:
    """What `write_job` wrote."""
    fields = json.loads((folder / JOB).read_bytes())
    seat = fields.pop("seat")
    fields["carried"] = tuple((a, b) for a, b in fields["carried"])
    if seat is None:
        return Job(seat=None, **fields)
    peers = tuple(seat.pop("peers"))
    return Job(seat=Seat(peers=peers, **seat), **fields)


def line_of(content: Mapping[str, Any]) -> bytes:
    """One message."""
    return json.dumps(content).encode() + b"\n"


def content_of(line: bytes) -> dict[str, Any]:
    """The fields of a message; empty for a line that is none."""
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def write_arrays(path: Path, arrays: list[IntArray]) -> None:
    """Arrays by place."""
    named = {str(place): array for place, array in enumerate(arrays)}
    with path.open("wb") as file:
        npy.write_npz(file, named)


def read_arrays(path: Path) -> list[IntArray]:
    """What `write_arrays` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        return [archive[str(place)] for place in range(len(archive.files))]
