"""`make determinism`: every back end of this machine against what is written down.

python -m tests.determinism [--record] [--json FILE] [--compilers gcc,clang,emulated,libcvm] [--pythons 3.12:2.0] [--only NAME]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.runtime import native
from tests.determinism import (
    builds,
    c,
    compare,
    conversion,
    exports,
    library,
    records,
    web,
    worker,
)
from tests.determinism.builds import Build
from tests.determinism.matrix import Matrix
from tests.determinism.programs import ROOT, Item, all_items
from tests.determinism.pythons import DEFAULT, Environment
from tests.determinism.records import Record

# By the instruction sets that can be emulated and are not run otherwise.
MAKERS: dict[str, Callable[[list[str]], Build]] = {
    "gcc": lambda _: builds.compiled("gcc"),
    "clang": lambda _: builds.compiled("clang"),
    builds.EMULATED: builds.emulated,
}
LIBRARY = "libcvm"
COMPILERS = ",".join((*MAKERS, LIBRARY)) if sys.platform == "linux" else ""
AT_ONCE = 2  # checks, or processes of one, each with up to four threads
Check = Callable[[Matrix, list[Item], dict[str, Record]], None]


WIDTH = 140  # characters of a line of the table


@click.command()
@click.option(
    "--record",
    is_flag=True,
    help="Write down programs that are not yet; what is written stays as it is.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all results there.",
)
@click.option(
    "--page",
    "page_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A page of the documents: put the table where it has one.",
)
@click.option(
    "--compilers",
    default=COMPILERS,
    show_default=True,
    help="What to build the engine with, besides pip's; libcvm: the engine as a library.",
)
@click.option(
    "--pythons",
    default=DEFAULT,
    show_default=True,
    callback=lambda context, parameter, text: _environments(text),
    help="Pythons, each with a numpy, that convert the models once more.",
)
@click.option(
    "--only",
    default="",
    metavar="TEXT",
    help="Only programs with this in their names.",
)
def main(
    record: bool,
    json_path: Path | None,
    page_path: Path | None,
    compilers: str,
    pythons: list[Environment],
    only: str,
) -> None:
    """Compare the reference and every engine with the recorded digests. Exit code 1: something differs."""
    # Wide enough for every column, also where the terminal is not.
    width = max(Console().width, WIDTH)
    console = Console(soft_wrap=True, highlight=False, width=width)
    items = all_items(only)
    if record:
        console.print(
            f"recorded {records.add_missing(items)} programs in {records.DIGESTS.relative_to(ROOT)}"
        )
    matrix, known = Matrix(), records.load()
    found = check_reference(matrix, items, known)
    right = [item for item in items if item.name not in matrix.rows[0].wrong]
    with console.status("building engines"):
        found_builds = _builds(matrix, compilers.split(","))
    checks: list[Check] = [
        partial(check_engines, found=found_builds),
        exports.check_onnx,
        exports.check_xla,
        exports.check_iree,
        exports.check_tosa,
        exports.check_cortex,
        c.check,
        web.check,
        partial(conversion.check, environments=pythons),
    ]
    if LIBRARY in compilers.split(","):
        checks.append(check_library)
    with console.status("running programs"):
        _run_all(checks, matrix, right, known)
    _show(console, matrix)
    if json_path is not None:
        json_path.write_text(
            json.dumps(matrix.as_json(found), indent=1) + "\n", encoding="utf-8"
        )
    if page_path is not None:
        _write_table(page_path, matrix)
    sys.exit(0 if matrix.agrees else 1)


def _run_all(
    checks: Sequence[Check],
    matrix: Matrix,
    items: list[Item],
    known: dict[str, Record],
) -> None:
    """Several at once, for most of their work is that of other processes. Rows stand in the order of the checks."""

    def run(check: Check) -> Matrix:
        own = Matrix()
        check(own, items, known)
        return own

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for own in pool.map(run, checks):
            matrix.rows += own.rows
            matrix.skipped |= own.skipped


def _environments(text: str) -> list[Environment]:
    try:
        return [Environment.parsed(one) for one in text.split(",") if one]
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from None


def _write_table(page: Path, matrix: Matrix) -> None:
    """Replace the page's only table of back ends."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(r"^\| back end .*\n(\|.*\n)*", re.M)
    written, count = pattern.subn(lambda _: matrix.markdown(), text)
    if count != 1:
        raise click.ClickException(f"{page} has {count} tables of back ends")
    page.write_text(written, encoding="utf-8")


def check_reference(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> dict[str, Any]:
    """The first row: the programs are the recorded ones, and the reference gives what is recorded. Gives what it gave."""
    problems, found = [], {}
    for item in items:
        form = validate(item.program)
        program = file_format.program_id(item.program)
        run = compare.run_reference(form, item.sample)
        found[item.name] = {
            "program": program,
            "trace": run.trace,
            "outputs": run.outputs,
        }
        if item.name not in known:
            problems.append(
                (
                    item.name,
                    0,
                    "not recorded yet: python -m tests.determinism --record",
                )
            )
        elif known[item.name].program != program:
            problems.append(
                (
                    item.name,
                    0,
                    f"the program itself: id {program} is not {known[item.name].program}",
                )
            )
        elif problem := compare.trace_problem(form, run, known[item.name]):
            problems.append((item.name, 0, problem.sentence))
    matrix.add("reference", [item.name for item in items], problems)
    return found


def check_engines(
    matrix: Matrix,
    items: list[Item],
    known: dict[str, Record],
    found: list[Build],
) -> None:
    """A row for each build, instruction set and number of threads."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        worker.write_items(items, known, Path(folder))
        jobs = [
            (
                build,
                isa,
                pool.submit(
                    worker.start, Path(folder), build.path, isa, build.every
                ),
            )
            for build in found
            for isa in build.isas
        ]
        for build, isa, job in jobs:
            names = [
                items[place].name
                for place in worker.chosen(len(items), build.every)
            ]
            matrix.add(
                f"{build.name}/{isa}", names, job.result(), worker.THREADS
            )


def check_library(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for each number of threads of libcvm, which is built if it is not yet."""
    try:
        folder = builds.library()
    except builds.Absent as what:
        matrix.skipped[LIBRARY] = f"this machine has no {what}"
        return
    except builds.Failed as problem:
        raise click.ClickException(str(problem)) from None
    problems = library.problems(folder, items, known)
    names = [item.name for item in items]
    matrix.add(LIBRARY, names, problems, worker.THREADS)


def _builds(matrix: Matrix, names: list[str]) -> list[Build]:
    """The engine that is installed, and those that compilers make."""
    made = []
    if native.available():
        made.append(builds.present())
    else:
        matrix.skipped["installed"] = (
            "the engine was not built when this was installed"
        )
    for name in filter(None, names):
        if name == LIBRARY:
            continue
        if name not in MAKERS:
            raise click.BadParameter(
                f"'{name}' is none of {', '.join((*MAKERS, LIBRARY))}",
                param_hint="--compilers",
            )
        run_here = {isa for build in made for isa in build.isas}
        lacking = [isa for isa in builds.EMULATED_BY if isa not in run_here]
        if name == builds.EMULATED and not lacking:
            listed = " and ".join(builds.EMULATED_BY)
            matrix.skipped[name] = f"{listed} run here as they are"
            continue
        try:
            made.append(MAKERS[name](lacking))
        except builds.Absent as what:
            matrix.skipped[name] = f"this machine has no {what}"
        except builds.Failed as problem:
            raise click.ClickException(str(problem)) from None
    return made


def _show(console: Console, matrix: Matrix) -> None:
    console.print(matrix.table())
    for name, reason in matrix.skipped.items():
        console.print(f"not tried: {name}: {reason}")
    for sentence in matrix.mismatches():
        console.print(sentence, markup=False)


if __name__ == "__main__":
    main()
