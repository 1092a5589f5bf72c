"""`mrt.convert` for Python: a model and data at hand, where the command line takes files and options."""

from __future__ import annotations

import html
import shutil
import warnings
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
from mrt.api_files import (
    Data,
    GivenObjects,
    Model,
    data_file,
    inputs_of_file,
    model_file,
)
from mrt.api_frames import is_frame
from mrt.conversion import Conversion
from mrt.errors import BadOption, DoubtfulResult
from mrt.evaluate import evaluate
from mrt.quantize.options import AUTO
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
        project.check_program_destination(destination, config.files)
        write_all({destination: self.conversion.write})
        return destination

    def evaluate(
        self,
        x: Data,
        y: Sequence[float] | None = None,
        *,
        class_output: str | None = None,
        metric: Metric | None = None,
        threads: int | None = None,
    ) -> Evaluation:
        """Compare float and integer on samples `x` with classes `y`, as `mrt evaluate` does.

        `metric` is a function of (outputs, y): arrays by output name with samples
        along the first axis, and an array or None. Only beside a metric `y` may be targets of a
        regression. `threads` share the samples (default: one for each core, at most 8).
        """
        config = self.conversion.config
        loaded = project.load_to_run(config)
        inputs = list(project.input_shapes(loaded.model))
        with (
            TemporaryDirectory() as folder,
            GivenObjects(Path(folder), x).in_errors(),
        ):
            path = data_file(
                x,
                y,
                Path(folder),
                inputs,
                has_metric=metric is not None,
            )
            data = replace(config.evaluation_data, path=path)
            if not isinstance(x, (str, PathLike)):
                data = replace(data, arrays={}, labels=None)
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
    table = _table_of(table)
    if not callable(progress):
        raise BadOption(
            f"progress: expected a function of (what, done, total), found {type(progress).__name__}"
        )
    # Objects become files: what follows reads a stranger's file and ours by the same checks.
    folder = Path(mkdtemp(prefix="mrt-"))
    given = GivenObjects(folder, data)
    try:
        with given.in_errors():
            named = _with_files(model, data, labels, dict(options), folder)
            conversion = _conversion(named, table, progress)
        given.name_in_remarks(conversion.remarks)
        converted = Converted(conversion)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(converted, shutil.rmtree, folder, ignore_errors=True)
    for text in conversion.warnings:  # to the caller of `mrt.convert`
        warnings.warn(text, DoubtfulResult, stacklevel=3)
    return converted


def _table_of(table: Any) -> CalibrationTable | None:
    if isinstance(table, (str, PathLike)):
        return CalibrationTable.load(Path(table))
    if table is None or isinstance(table, CalibrationTable):
        return table
    raise BadOption(
        f"table: expected a CalibrationTable or the path of one, found {type(table).__name__}"
    )


def _with_files(
    model: Model | None,
    data: Data | None,
    labels: Sequence[int] | None,
    options: dict[str, Any],
    folder: Path,
) -> dict[str, Any]:
    """The options, with the files of the model, of the data and of the config in place of what was given."""
    config = options.get("config")
    if config is not None:
        if not isinstance(config, (str, PathLike)):
            raise BadOption(
                f"config: expected the path of a config file, found {type(config).__name__}"
            )
        options["config"] = Path(config)
    path = None if model is None else model_file(model, data, folder)
    if data is not None:
        is_made = path is not None and path.parent == folder
        has_columns = is_frame(data) or is_made
        inputs = inputs_of_file(path) if path and has_columns else []
        options["data"] = data_file(data, labels, folder, inputs)
    return {**options, "model": path}


def _conversion(
    options: dict[str, Any],
    table: CalibrationTable | None,
    progress: Progress,
) -> Conversion:
    path = options.pop("model")
    is_asked = options.get("bits") == AUTO
    is_free = automatic_bits.take_auto(options, table=table)
    config = settings_of(path, options)
    if automatic_bits.chooses_bits(
        config, is_asked=is_asked, is_free=is_free, table=table
    ):
        return automatic_bits.convert(config, progress=progress)
    return pipeline.convert(config, table=table, progress=progress)
