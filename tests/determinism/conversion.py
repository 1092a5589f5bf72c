"""From table to program: the models' programs made anew in other processes, whose settings and Pythons differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

from numpy._core import _multiarray_umath

from cvm.file import format as file_format
from cvm.program import Instruction, Program
from tests.determinism.builds import Absent
from tests.determinism.matrix import Matrix
from tests.determinism.programs import ROOT, Item, words_of
from tests.determinism.pythons import Environment
from tests.determinism.records import Record
from tests.determinism.worker import Problems

AT_ONCE = os.cpu_count() or 1
CORES = ("Haswell", "Prescott", "SkylakeX")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
SETTINGS: dict[str, dict[str, str]] = {
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 4242": {"PYTHONHASHSEED": "4242"},
    **{f"OpenBLAS {core}": {"OPENBLAS_CORETYPE": core} for core in CORES},
    "numpy without vectors": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(_multiarray_umath.__cpu_dispatch__)
    },
    "1 thread": dict.fromkeys(THREADS, "1"),
    "4 threads": dict.fromkeys(THREADS, "4"),
    "portable kernels": {"CVM_ISA": "portable"},
    "locale C, ASCII": ASCII,
    "time zone": {"TZ": "Pacific/Kiritimati"},
}


def check(
    matrix: Matrix,
    items: Sequence[Item],
    known: Mapping[str, Record],
    environments: Sequence[Environment],
) -> None:
    """A row for each setting and for each environment that can be had, of the programs that are converted."""
    models = [item for item in items if item.group == "models"]
    if not models:
        return
    rows = [(name, None, variables) for name, variables in SETTINGS.items()]
    rows += [(other.name, other, {}) for other in environments]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [
            (name, pool.submit(_row, models, known, environment, variables))
            for name, environment, variables in rows
        ]
    for name, job in jobs:
        try:
            problems = job.result()
        except Absent as what:
            matrix.skipped[f"conversion/{name}"] = f"this machine has no {what}"
            continue
        names = [item.name for item in models]
        matrix.add(f"conversion/{name}", names, problems)


def _row(
    items: Sequence[Item],
    known: Mapping[str, Record],
    environment: Environment | None,
    variables: Mapping[str, str],
) -> Problems:
    python = environment.interpreter() if environment else sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        why = converted(items, folder, python, variables)
        if why is not None:
            return [(item.name, 0, why) for item in items]
        return [
            (item.name, 0, problem)
            for number, item in enumerate(items)
            if (
                problem := problem_of(
                    folder / f"{number}.cvm", item, known[item.name]
                )
            )
        ]


def converted(
    items: Sequence[Item],
    folder: Path,
    python: str | Path,
    variables: Mapping[str, str],
) -> str | None:
    """Make 0.cvm, 1.cvm, ... in a process of its own. Gives why it could not."""
    jobs = [
        [*words_of(item.name), "-o", str(folder / f"{number}.cvm")]
        for number, item in enumerate(items)
    ]
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs), encoding="utf-8")
    script = ROOT / "tests" / "determinism" / "converter.py"
    done = subprocess.run(
        [python, str(script), str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(variables),
        capture_output=True,
        check=False,
    )
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    return None if done.returncode == 0 else f"conversion: {said[-500:]}"


def problem_of(path: Path, item: Item, expected: Record) -> str | None:
    """What of a written file is not what is recorded, or not, byte for byte, the file that this process made."""
    program = file_format.read(path)
    if file_format.program_id(program) != expected.program:
        return f"conversion: {first_difference(item.program, program)}"
    if path.read_bytes() != file_format.encode(item.program):
        return (
            "conversion: the program is the recorded one, its metadata is not"
        )
    return None


def first_difference(right: Program, found: Program) -> str:
    """The first instruction that is another, or reads another constant."""
    pairs = zip_longest(right.instructions, found.instructions)
    for place, (one, other) in enumerate(pairs):
        if _meaning(right, one) != _meaning(found, other):
            number = right.first_instruction + place
            name = (one or other).name
            return f"instruction {place}, %{number} = {name}, is the first that differs"
    return "the inputs or the outputs differ"


def _meaning(program: Program, step: Instruction | None) -> Any:
    """The instruction without the numbers of values."""
    if step is None:
        return None
    return (
        step.name,
        step.attributes,
        [_operand(program, n) for n in step.operands],
    )


def _operand(program: Program, value: int) -> Any:
    if value < program.first_constant:
        return "input", value
    if value >= program.first_instruction:
        return "value", value - program.first_instruction
    array = program.constants[value - program.first_constant]
    return array.dtype.name, array.shape, array.tobytes()
