"""What several commands do before and after their work: settings, programs, progress bars, notes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvm.commands.output import is_quiet, is_verbose, print_lines
from cvm.file.format import is_program
from mrt.commands.named_files import check_files, check_order
from mrt.errors import BadOption

if TYPE_CHECKING:
    from cvm.proof.validate import Proven
    from mrt.config import Config
    from mrt.progress import Progress


def model_and_program(
    model: Path | None,
    program: Path | None,
    options: dict[str, Any],
    usage: str,
) -> tuple[Path | None, Path]:
    """The files of a command on both, which are looked at; with a config that names the model, the only one is the program."""
    if program is None and options["config"] is not None:
        model, program = None, model
    if program is None:
        lacking = (
            "program" if model is None or not is_program(model) else "model"
        )
        raise BadOption(f"no {lacking} is given: {usage}")
    check_order(model, program, usage)
    check_files(model, options)
    return model, program


def warn_of_another_model(path: Path, program: Proven, sha256: str) -> bool:
    """Warn if the program was made from another model than the one given; true if so."""
    made_from = program.program.provenance_of("model_sha256")
    if made_from in (None, sha256):
        return False
    print_warnings(
        [f"{path} was made from another model (SHA-256 {made_from})"]
    )
    return True


def print_notes(notes: Iterable[str]) -> None:
    """Print what the front end noted about a model, on stderr; not with -q."""
    if not is_quiet():
        _print_each("note", notes)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what makes a result doubtful, on stderr."""
    _print_each("warning", warnings)


def _print_each(kind: str, texts: Iterable[str]) -> None:
    for text in texts:
        print_lines([f"mrt: {kind}: {text}"], err=True)


def read_settings(model: Path | None, options: dict[str, Any]) -> Config:
    """The config file, if any, with the options of the command over it."""
    check_files(model, options)  # before what is slow to import
    from mrt.commands.option_texts import values_of
    from mrt.settings import settings_of

    def as_given(name: str, value: str) -> str:
        text = options.get(name)
        return f"--{name.replace('_', '-')} {value if text is None else text}"

    return settings_of(model, values_of(options), as_given)


def settings_with_shapes(config: Config, options: Mapping[str, Any]) -> Config:
    """The settings, with the shapes of inputs from the samples, the program or the table that `shapes_from` names."""
    from mrt.settings import require_regular

    path = options["shapes_from"]
    if path is None:
        return config
    require_regular(path)
    if path.suffix == ".cvm":
        from cvm.file import format as cvm_format
        from mrt.pictures import shapes_of

        return replace(config, program_shapes=shapes_of(cvm_format.read(path)))
    if path.suffix == ".json":
        from mrt.table.table import CalibrationTable

        shapes = CalibrationTable.load(path).input_shapes
        return replace(config, table_shapes=shapes)
    data = replace(config.calibration_data, path=path)
    return replace(config, calibration_data=data)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A bar on stderr if it is a terminal, else nothing; with -v, a line for each thing that is done."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    with Bars(
        console=console,
        transient=True,
        disable=not console.is_terminal or is_quiet(),
    ) as bars:
        tasks: dict[str, Any] = {}
        started = time.monotonic()

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                if is_verbose():
                    seconds = time.monotonic() - started
                    print_lines([f"mrt: {seconds:.1f} s: {what}"], err=True)
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report
