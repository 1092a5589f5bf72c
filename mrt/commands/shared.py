"""What several commands do before and after their work: settings, programs, progress bars, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrt.commands.output import say
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
    """With a config that names the model, the only argument is the program."""
    if program is None and options["config"] is not None:
        model, program = None, model
    if program is None:
        raise BadOption(f"no program is given: {usage}")
    return model, program


def warn_of_another_model(path: Path, program: Proven, sha256: str) -> bool:
    """Warn if the program was made from another model than the one given; true if so."""
    made_from = program.program.provenance_of("model_sha256")
    if made_from in (None, sha256):
        return False
    warning = f"{path} was made from another model (SHA-256 {made_from})"
    say([f"mrt: warning: {warning}"], err=True)
    return True


def print_notes(notes: Iterable[str]) -> None:
    """Print what the front end noted about a model, on stderr."""
    for note in notes:
        say([f"mrt: note: {note}"], err=True)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what makes a result doubtful, on stderr."""
    for warning in warnings:
        say([f"mrt: warning: {warning}"], err=True)


def read_settings(model: Path | None, options: dict[str, Any]) -> Config:
    """The config file, if any, with the options of the command over it."""
    from mrt.commands.option_texts import values_of
    from mrt.settings import settings_of

    def say(name: str, value: str) -> str:
        text = options.get(name)
        return f"--{name.replace('_', '-')} {value if text is None else text}"

    return settings_of(model, values_of(options), say)


def settings_with_shapes(config: Config, options: Mapping[str, Any]) -> Config:
    """The settings, with the shapes of inputs from the samples or the program that `shapes_from` names."""
    path = options["shapes_from"]
    if path is None:
        return config
    if path.suffix == ".cvm":
        from cvm.file import format as cvm_format
        from mrt.pictures import shapes_of

        return replace(config, program_shapes=shapes_of(cvm_format.read(path)))
    data = replace(config.calibration_data, path=path)
    return replace(config, calibration_data=data)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A bar on stderr if it is a terminal, else nothing."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    with Bars(
        console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report
