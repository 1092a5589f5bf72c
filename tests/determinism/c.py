"""Exported C and CUDA: programs compiled by every compiler here, and run by this processor, an emulated one, or a GPU."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cvm.errors import BadInput
from cvm.program import IntArray, Program
from cvm.proof.validate import validate
from tests.determinism import compare
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import Problems
from tests.support.c_programs import CProgram, merged, prefixed
from tests.support.cuda_programs import CudaProgram

TOGETHER = 4  # programs in one source: in one of 16 clang -O3 compiles some for minutes
TURNS = 2  # emulated machines share the sources
ALWAYS = ("models", "vectors")  # every machine runs these
Outputs = dict[str, IntArray]


@dataclass(frozen=True)
class Kind:
    """A compiler with its flags, what launches what it builds, and the byte order of that machine."""

    compiler: str
    flags: tuple[str, ...]
    launcher: tuple[str, ...] = ()
    byte_order: str = "="
    turn: int | None = (
        None  # of TURNS: the sources that are its, besides those of ALWAYS
    )
    language: type[CProgram] = CProgram
    beside: str | None = None
    """A program that shows that the machine has what else is needed."""

    @property
    def missing(self) -> str | None:
        """What this machine lacks of it."""
        for name in (self.compiler, *self.launcher, self.beside):
            if name and shutil.which(name) is None:
                return name
        return None

    def takes(self, source: int, items: Sequence[Item]) -> bool:
        """Whether it runs the source of this number."""
        always = any(item.group in ALWAYS for item in items)
        return self.turn is None or always or source % TURNS == self.turn


def emulated(
    machine: str, compiler: str, turn: int, byte_order: str = "<"
) -> Kind:
    """A processor under qemu's user mode."""
    flags = ("-O2", "-static")
    launcher = (f"qemu-{machine}-static",)
    return Kind(compiler, flags, launcher, byte_order, turn)


KINDS = {
    "c/gcc -O0": Kind("gcc", ("-O0",)),
    "c/gcc -O2": Kind("gcc", ("-O2",)),
    "c/gcc -O3": Kind("gcc", ("-O3",)),
    "c/clang -O0": Kind("clang", ("-O0",)),
    "c/clang -O3": Kind("clang", ("-O3",)),
    "c/aarch64": emulated("aarch64", "aarch64-linux-gnu-gcc", 0),
    "c/arm": emulated("arm", "arm-linux-gnueabihf-gcc", 1),
    "c/riscv64": emulated("riscv64", "riscv64-linux-gnu-gcc", 0),
    "c/s390x, big-endian": emulated("s390x", "s390x-linux-gnu-gcc", 1, ">"),
    "cuda/g++": Kind("g++", ("-O1",), language=CudaProgram),
    "cuda/nvcc": Kind(
        "nvcc",
        ("-O3", "-arch=native"),
        language=CudaProgram,
        beside="nvidia-smi",
    ),
}


def check(
    matrix: Matrix, items: Sequence[Item], known: dict[str, Record]
) -> None:
    """A row for each kind that this machine has all of."""
    kinds = {}
    for name, kind in KINDS.items():
        if kind.missing is None:
            kinds[name] = kind
        else:
            matrix.skipped[name] = f"this machine has no {kind.missing}"
    starts = range(0, len(items), TOGETHER)
    batches = [items[start : start + TOGETHER] for start in starts]
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        jobs: list[tuple[str, Sequence[Item], Future[Problems]]] = []
        for source, some in enumerate(batches):
            form = validate(merged([item.program for item in some]))
            taken = {
                n: kind for n, kind in kinds.items() if kind.takes(source, some)
            }
            written = {
                language: language.write(
                    form, Path(folder) / f"{language.__name__}{source}"
                )
                for language in {kind.language for kind in taken.values()}
            }
            for name, kind in taken.items():
                own = written[kind.language]
                job = pool.submit(_problems, some, known, kind, own)
                jobs.append((name, some, job))
        for name in kinds:
            mine = [(some, job) for own, some, job in jobs if own == name]
            names = [item.name for some, _ in mine for item in some]
            found = [one for _, job in mine for one in job.result()]
            matrix.add(name, names, found)


def _run(written: CProgram, kind: Kind, sample: Outputs) -> Outputs | str:
    """The outputs, or why there are none."""
    program = replace(written, byte_order=kind.byte_order)
    try:
        binary = program.build(kind.compiler, *kind.flags)
        (found,) = program.run(binary, launcher=kind.launcher, samples=[sample])
    except AssertionError as problem:
        return str(problem)[:300]
    return found


def _problems(
    items: Sequence[Item],
    known: dict[str, Record],
    kind: Kind,
    written: CProgram,
) -> Problems:
    """Every program of a source that does not give what is recorded."""
    sample = prefixed([item.sample for item in items])
    outputs = _run(written, kind, sample)
    if isinstance(outputs, str):
        return [(item.name, 0, outputs) for item in items]
    found = []
    for place, item in enumerate(items):
        ports = [port.name for port in item.program.outputs]
        own = {name: outputs[f"{place}.{name}"] for name in ports}
        problem = compare.explained(
            "exported source", own, _alone(kind), item, known[item.name]
        )
        if problem is not None:
            found.append((item.name, 0, problem))
    return found


def _alone(kind: Kind) -> compare.Run:
    """One program in a source of its own."""

    def run(program: Program, sample: Outputs) -> Outputs:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "alone"
            written = kind.language.write(validate(program), place)
            found = _run(written, kind, sample)
        if isinstance(found, str):
            raise BadInput(found)
        return found

    return run
