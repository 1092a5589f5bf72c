"""One engine on many programs, in a process of its own: `CVM_ENGINE` and `CVM_ISA` say which.

python -m tests.determinism.worker FOLDER EVERY, where FOLDER was written by `write_items`. Prints the problems as JSON:
[program, threads, sentence].
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cvm.file import format as file_format
from cvm.proof.validate import Proven, validate
from cvm.runtime.native import Engine
from tests.determinism import compare, records
from tests.determinism.programs import ROOT, Item

THREADS = (1, 2, 3, 4)
Problems = list[tuple[str, int, str]]


def write_items(
    items: list[Item], known: dict[str, records.Record], folder: Path
) -> None:
    """What workers read: programs, samples and records."""
    for number, item in enumerate(items):
        file_format.write(item.program, folder / f"{number}.cvm")
        np.savez(folder / f"{number}.npz", allow_pickle=False, **item.sample)
    records.save(
        {item.name: known[item.name] for item in items}, folder / "records.json"
    )


def chosen(count: int, every: int) -> range:
    """The places of the programs that a worker runs."""
    return range(0, count, every)


def start(folder: Path, engine: Path | None, isa: str, every: int) -> Problems:
    """Run a worker; one that dies has every program wrong."""
    named = {"CVM_ISA": isa} | (
        {} if engine is None else {"CVM_ENGINE": str(engine)}
    )
    words = [
        sys.executable,
        "-m",
        "tests.determinism.worker",
        str(folder),
        str(every),
    ]
    done = subprocess.run(
        words,
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | named,
    )
    if done.returncode == 0:
        return [
            (name, threads, sentence)
            for name, threads, sentence in json.loads(done.stdout)
        ]
    why = f"the process ended with {done.returncode}: {done.stderr.strip()[-500:]}"
    return [
        (name, threads, why)
        for name in records.load(folder / "records.json")
        for threads in THREADS
    ]


def main(folder: Path, every: int) -> Problems:
    """Every problem of this engine."""
    problems: Problems = []
    known = list(records.load(folder / "records.json").items())
    for number in chosen(len(known), every):
        name, expected = known[number]
        form = validate(file_format.read(folder / f"{number}.cvm"))
        with np.load(folder / f"{number}.npz") as stored:
            sample = dict(stored)
        problems += [
            (name, threads, sentence)
            for threads, sentence in _problems(form, sample, expected)
        ]
    return problems


def _problems(
    form: Proven, sample: compare.Sample, expected: records.Record
) -> Iterator[tuple[int, str]]:
    try:
        traced, fused = Engine(form, traceable=True), Engine(form)
    except ValueError as refusal:
        yield from ((threads, str(refusal)) for threads in THREADS)
        return
    for threads in THREADS:
        found = compare.run_traced(traced, sample, threads)
        problems = (
            compare.trace_problem(form, found, expected),
            compare.fused_problem(fused, sample, expected, threads),
        )
        yield from (
            (threads, problem.sentence)
            for problem in problems
            if problem is not None
        )


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
