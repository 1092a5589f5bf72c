"""`mrt.convert` for Python: a model and data at hand, where the command line takes files and options."""

from __future__ import annotations

import html
import shutil
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from cvm.file.disk import write_all
from cvm.runtime.executable import Executable
from mrt import automatic_bits, pipeline, project
from mrt.api_files import Data, Model, data_file, model_file
from mrt.conversion import Conversion
from mrt.evaluate import evaluate
from mrt.settings import OPTIONS, settings_of
from mrt.table.table import CalibrationTable

if TYPE_CHECKING:
    from mrt.evaluate import Evaluation
    from mrt.evaluate.metric import Metric
    from mrt.progress import Progress
    from mrt.report import Report


@dataclass(frozen=True, repr=False)
class Converted:
    """A model as a proven integer program, and what it was made from."""

    conversion: Conversion

    @cached_property
    def program(self) -> Executable:
        """The program, ready to run."""
        return Executable.of(self.conversion.proven)

    @property
    def report(self) -> Report:
        """The outcome of every operator of the model."""
        return self.conversion.report()

    @property
    def table(self) -> CalibrationTable:
        """The ranges that were measured, and the decisions of the refining stages."""
        return self.conversion.table

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the program's file, whole or not at all; returns its path."""
        destination = Path(path)
        config = self.conversion.config
        project.check_destination(
            destination, [config.model.path, config.model.params]
        )
        write_all({destination: self.conversion.write})
        return destination

    def evaluate(
        self,
        x: Data,
        y: Sequence[int] | None = None,
        *,
        class_output: str | None = None,
        metric: Metric | None = None,
        threads: int | None = None,
    ) -> Evaluation:
        """Compare float and integer on samples `x` with classes `y`, as `mrt evaluate` does.

        `metric` is a function of (outputs, labels): arrays by output name with samples
        along the first axis, and an array of classes or None. `threads` share the samples (default: one for each
        core, at most 8).
        """
        config = self.conversion.config
        with TemporaryDirectory() as folder:
            path = data_file(x, y, Path(folder))
            data = replace(config.evaluation_data, path=path)
            if not isinstance(x, (str, PathLike)):
                data = replace(data, arrays={}, labels=None)
            loaded = project.load_to_run(config)
            samples = project.open_data(loaded.model, config, data)
            return evaluate(
                loaded.model,
                self.conversion.proven,
                samples,
                threads=threads,
                class_output=class_output,
                metric=metric,
            )

    def __repr__(self) -> str:
        facts = self.conversion.summary()
        return (
            f"<mrt.Converted '{self.conversion.name}': {facts['instructions']} instructions, "
            f"{facts['size']}, id {facts['program id'][:12]}...>"
        )

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = {"model": self.conversion.name, **self.conversion.summary()}
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in rows.items()
        )
        return f"<table>{cells}</table>"


def convert(
    model: Model | None,
    data: Data | None,
    options: Mapping[str, Any],
    *,
    labels: Sequence[int] | None,
    table: CalibrationTable | str | PathLike[str] | None,
    progress: Progress,
) -> Converted:
    """See `mrt.convert`."""
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        raise TypeError(
            f"mrt.convert() has no option {unknown[0]!r}; it has {', '.join(sorted(OPTIONS))}"
        )
    if isinstance(table, (str, PathLike)):
        table = CalibrationTable.load(Path(table))
    # Objects become files: what follows reads a stranger's file and ours by the same checks.
    folder = Path(mkdtemp(prefix="mrt-"))
    try:
        named = dict(options)
        if named.get("config") is not None:
            named["config"] = Path(named["config"])
        if data is not None:
            named["data"] = data_file(data, labels, folder)
        path = None if model is None else model_file(model, data, folder)
        is_asked = named.get("bits") == automatic_bits.AUTO
        chooses_bits = automatic_bits.are_chosen(named, table=table)
        config = settings_of(path, named)
        if is_asked:
            automatic_bits.check(config)
        if chooses_bits:
            conversion = automatic_bits.convert(config, progress=progress)
        else:
            conversion = pipeline.convert(
                config, table=table, progress=progress
            )
        converted = Converted(conversion)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(converted, shutil.rmtree, folder, ignore_errors=True)
    return converted
