"""The export to the web as a back end: programs as WebAssembly, a few of them in one module, run by several machines."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cvm.errors import BadInput
from cvm.export.web.compiler import Compiler
from cvm.program import Program
from cvm.proof.validate import validate
from tests.determinism import compare
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import Problems
from tests.support import firefox, wasmtime_programs
from tests.support.c_programs import merged, prefixed
from tests.support.web_programs import Tab, WebProgram

TOGETHER = 16  # programs
KINDS = {"web": False, "web-simd128": True}
Run = Callable[[WebProgram, compare.Sample], compare.Sample]


@dataclass(frozen=True)
class Machine:
    """What runs modules, or what of it is missing here; it starts once, with a folder of its own."""

    start: Callable[[Path], AbstractContextManager[Run]]
    missing: str | None


def _by(run: Run) -> Callable[[Path], AbstractContextManager[Run]]:
    return lambda _: nullcontext(run)


def _on_wasmtime(written: WebProgram, sample: compare.Sample) -> compare.Sample:
    form, module = written.form, written.module
    return wasmtime_programs.outputs_of(form, module, sample)


def _in(
    browser: Callable[[Path], AbstractContextManager[Tab]],
) -> Callable[[Path], AbstractContextManager[Run]]:
    """A browser, which opens a program's page for each run."""

    @contextmanager
    def start(profile: Path) -> Iterator[Run]:
        with browser(profile) as tab:
            yield lambda written, sample: written.shown(tab, sample)

    return start


def _unless(found: object, name: str) -> str | None:
    return None if found else name


# Chromium's machine is node's; besides, it starts by a fork, which must not follow threads of jax.
MACHINES = {
    "node": Machine(
        _by(WebProgram.answer), _unless(shutil.which("node"), "node")
    ),
    "wasmtime": Machine(
        _by(_on_wasmtime), _unless(wasmtime_programs.wasmtime, "wasmtime")
    ),
    "firefox": Machine(
        _in(firefox.browser), _unless(firefox.FIREFOX, "firefox")
    ),
}


def check(
    matrix: Matrix, items: Sequence[Item], known: Mapping[str, Record]
) -> None:
    """Rows for WebAssembly without vectors, and with them, on each machine that is here."""
    try:
        Compiler.find()
    except BadInput as problem:
        matrix.skipped["web"] = str(problem)
        return
    with ExitStack() as stack:
        runs = {}
        for name, machine in MACHINES.items():
            if machine.missing:
                matrix.skipped[f"web/{name}"] = (
                    f"this machine has no {machine.missing}"
                )
                continue
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            runs[name] = stack.enter_context(machine.start(Path(folder)))
        names = [item.name for item in items]
        for kind, vectors in KINDS.items():
            found = problems(items, known, runs, vectors=vectors)
            for name, wrong in found.items():
                matrix.add(f"{kind}/{name}", names, wrong)


def problems(
    items: Sequence[Item],
    known: Mapping[str, Record],
    runs: Mapping[str, Run],
    *,
    vectors: bool,
) -> dict[str, Problems]:
    """For each machine, every program that does not give what is recorded."""
    found: dict[str, Problems] = {name: [] for name in runs}
    starts = range(0, len(items), TOGETHER)
    batches = [items[start : start + TOGETHER] for start in starts]
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        write = partial(_written, Path(folder), vectors)
        made = [
            pool.submit(write, merged([item.program for item in some]))
            for some in batches
        ]
        for some, job in zip(batches, made, strict=True):
            for name, run in runs.items():
                again = _alone(run, write)
                given = _outputs(run, job.result(), some)
                found[name] += _wrong(some, given, again, known)
    return found


def _written(folder: Path, vectors: bool, program: Program) -> WebProgram:
    own = Path(tempfile.mkdtemp(dir=folder))
    return WebProgram.write(validate(program), own, vectors=vectors)


def _alone(run: Run, write: Callable[[Program], WebProgram]) -> compare.Run:
    return lambda program, sample: run(write(program), sample)


def _outputs(
    run: Run, written: WebProgram, items: Sequence[Item]
) -> list[compare.Sample] | str:
    """What each program of a module gives, or why nothing is given."""
    try:
        found = run(written, prefixed([item.sample for item in items]))
    except (AssertionError, OSError) as problem:
        return str(problem)[:300]
    return [
        {port.name: found[f"{k}.{port.name}"] for port in item.program.outputs}
        for k, item in enumerate(items)
    ]


def _wrong(
    items: Sequence[Item],
    given: list[compare.Sample] | str,
    again: compare.Run,
    known: Mapping[str, Record],
) -> Problems:
    if isinstance(given, str):
        return [(item.name, 0, given) for item in items]
    found: Problems = []
    for item, outputs in zip(items, given, strict=True):
        problem = compare.explained(
            "exported WebAssembly", outputs, again, item, known[item.name]
        )
        if problem is not None:
            found.append((item.name, 0, problem))
    return found
