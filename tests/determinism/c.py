"""Exported C as a back end: programs compiled by every compiler here, and run by this processor or an emulated one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cvm.program import IntArray
from cvm.proof.validate import validate
from tests.determinism import compare
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import Problems
from tests.support import golden
from tests.support.c_programs import CProgram, merged, prefixed

TOGETHER = 16  # programs in one source
Outputs = dict[str, IntArray]


@dataclass(frozen=True)
class Kind:
    """A compiler with its flags, what launches what it builds, and the byte order of that machine."""

    compiler: str
    flags: tuple[str, ...]
    launcher: tuple[str, ...] = ()
    byte_order: str = "="
    every: int = 1  # only one source of so many: the first, which holds the models, and others

    @property
    def missing(self) -> str | None:
        """What this machine lacks of it."""
        for name in (self.compiler, *self.launcher):
            if shutil.which(name) is None:
                return name
        return None


def emulated(machine: str, compiler: str, byte_order: str = "<") -> Kind:
    """A processor under qemu's user mode."""
    flags = ("-O2", "-static")
    launcher = (f"qemu-{machine}-static",)
    return Kind(compiler, flags, launcher, byte_order, every=4)


KINDS = {
    "c/gcc -O0": Kind("gcc", ("-O0",)),
    "c/gcc -O2": Kind("gcc", ("-O2",)),
    "c/gcc -O3": Kind("gcc", ("-O3",)),
    "c/clang -O0": Kind("clang", ("-O0",)),
    "c/clang -O3": Kind("clang", ("-O3",), every=8),
    "c/aarch64": emulated("aarch64", "aarch64-linux-gnu-gcc"),
    "c/arm": emulated("arm", "arm-linux-gnueabihf-gcc"),
    "c/riscv64": emulated("riscv64", "riscv64-linux-gnu-gcc"),
    "c/s390x, big-endian": emulated("s390x", "s390x-linux-gnu-gcc", ">"),
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
    found: dict[str, Problems] = {name: [] for name in kinds}
    tried: dict[str, list[str]] = {name: [] for name in kinds}
    for source, start in enumerate(range(0, len(items), TOGETHER)):
        some = items[start : start + TOGETHER]
        now = {n: kind for n, kind in kinds.items() if source % kind.every == 0}
        for name, problems in _batch(some, known, now).items():
            found[name] += problems
            tried[name] += [item.name for item in some]
    for name, problems in found.items():
        matrix.add(name, tried[name], problems)


def _batch(
    items: Sequence[Item], known: dict[str, Record], kinds: dict[str, Kind]
) -> dict[str, Problems]:
    """The programs as one source, built and run by each kind."""
    form = validate(merged([item.program for item in items]))
    sample = prefixed([item.sample for item in items])
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        written = CProgram.write(form, Path(folder))
        jobs = {
            name: pool.submit(_run, written, kind, sample)
            for name, kind in kinds.items()
        }
        return {
            name: list(_problems(items, known, kinds[name], job.result()))
            for name, job in jobs.items()
        }


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
    outputs: Outputs | str,
) -> Iterator[tuple[str, int, str]]:
    for place, item in enumerate(items):
        if isinstance(outputs, str):
            yield item.name, 0, outputs
            continue
        for name, digest in known[item.name].outputs.items():
            if golden.digest(outputs[f"{place}.{name}"]).hex() != digest:
                yield item.name, 0, why(item, known[item.name], kind, name)
                break


def why(item: Item, expected: Record, kind: Kind, output: str) -> str:
    """The first instruction that differs where every value is an output; else the output alone."""
    form = validate(compare.shown(item.program))
    with tempfile.TemporaryDirectory() as folder:
        found = _run(CProgram.write(form, Path(folder)), kind, item.sample)
    if isinstance(found, str):
        return found
    problem = compare.shown_problem(item.program, found, expected)
    return f"exported C: {problem or f'output {output} differs'}"
