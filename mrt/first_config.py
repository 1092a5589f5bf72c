"""The first config of a model and its data: what can be found is written, and what only a person can answer is marked.

Arrays and their layout are found by trying: what fits the model's inputs is taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from mrt import frontend, project
from mrt.calibrate.presets import PRESETS
from mrt.calibrate.samples import Samples
from mrt.calibrate.session import model_inputs
from mrt.config import Config, DataSettings
from mrt.errors import BadData, MrtError
from mrt.frontend import LoadedModel
from mrt.table.stored_arrays import StoredArray, open_npz

TO_SAY = "TO BE SAID:"
"""Stands before everything that the file leaves open."""
LAYOUTS = ("as is", "NHWC", "NCHW", "HW")
LABELS = ("labels", "label", "targets", "target", "classes")


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration with its model and its samples; if no way to read the data fits the model, the problem."""

    config: Config
    loaded: LoadedModel
    samples: Samples | None
    problem: str = ""


def first_config(config: Config, destination: Path) -> str:
    """The TOML, for the folder of `destination`, of the model and the data that the configuration names."""
    chosen = _first_that_fits(config)
    folder = destination.parent
    document = tomlkit.document()
    document.add(
        tomlkit.comment(
            f"Convert with: mrt convert --config {destination.name} --bits auto"
        )
    )
    document.add(tomlkit.comment("configs/README.md lists every key."))
    for name, table in (
        ("model", _model_table(chosen, folder)),
        ("preprocessing", _preprocessing_table(chosen)),
        ("calibration", _calibration_table(chosen, folder)),
        ("evaluation", _evaluation_table()),
        ("quantization", _quantization_table()),
    ):
        document.add(name, table)
    return tomlkit.dumps(document)


def open_points(text: str) -> list[str]:
    """The points that a first config leaves to a person."""
    return [
        line.partition(TO_SAY)[2].strip()
        for line in text.splitlines()
        if TO_SAY in line
    ]


# -- finding -----------------------------------------------------------------------


def _first_that_fits(config: Config) -> LoadedConfig:
    """The first way to read the data that fits the model; without one, the data as they are, and why not."""
    refusals: list[MrtError] = []
    without_data = _load_without_data(config)
    for candidate in _candidates(config):
        try:
            loaded = without_data or project.load(candidate)
            samples = project.open_data(
                loaded.model, candidate, candidate.calibration_data
            )
            next(iter(samples))
        except MrtError as refusal:
            refusals.append(refusal)
            continue
        return LoadedConfig(candidate, loaded, samples)
    if without_data is None:
        # What the model itself lacks counts more than what does not fit it.
        raise min(refusals, key=lambda refusal: isinstance(refusal, BadData))
    return LoadedConfig(config, without_data, None, refusals[0].lines[0])


def _load_without_data(config: Config) -> LoadedModel | None:
    """The model, read once, if its file has every shape; None if the data must give one."""
    try:
        return project.load(replace(config, calibration_data=DataSettings()))
    except MrtError:
        return None


def _candidates(config: Config) -> Iterator[Config]:
    """The settings with each way to read the data, the plainest first."""
    data, step = config.calibration_data, config.preprocessing
    if data.path is not None and data.path.is_dir():
        step = replace(step, stated=True)  # not refused for what is marked
        yield replace(config, preprocessing=step)
        return
    for named in _ways_to_name(data):
        for layout in LAYOUTS:
            laid_out = replace(step, layout=layout)
            yield replace(
                config, preprocessing=laid_out, calibration_data=named
            )


def _ways_to_name(data: DataSettings) -> Iterator[DataSettings]:
    """The data by their own names, then with each array as that of the only input."""
    path = data.path
    assert path is not None
    stored = open_npz(path) if path.suffix == ".npz" else {}
    labels = next((name for name in LABELS if name in stored), None)
    data = replace(data, labels=labels)
    yield data
    for name, array in stored.items():
        if name != labels and isinstance(array, StoredArray):
            yield replace(data, arrays={"x": name})


# -- writing -----------------------------------------------------------------------


def _model_table(chosen: LoadedConfig, folder: Path) -> Table:
    settings = chosen.config.model
    assert settings.path is not None
    params = settings.params
    beside = frontend.parameters_beside(settings.path)
    if chosen.loaded.origin == "mxnet" and params is None and len(beside) == 1:
        params = beside[0]
    table = _table({"path": _relative(settings.path, folder)})
    if params is not None:
        table["params"] = _relative(params, folder)
    shapes = {
        str(value.name): list(value.shape.numpy())
        for value in model_inputs(chosen.loaded.model)
        if value.shape is not None and value.shape.is_static()
    }
    inline = tomlkit.inline_table()
    inline.update(shapes)
    table["shapes"] = inline
    return table


def _preprocessing_table(chosen: LoadedConfig) -> Table:
    step = chosen.config.preprocessing
    table = _table({} if step.layout == "as is" else {"layout": step.layout})
    if chosen.problem:
        _leave_open(table, f"how the data fit the model ({chosen.problem})")
    if _are_pictures(chosen):
        names = ", ".join(PRESETS)
        _leave_open(
            table,
            f"how training prepared pictures, one of {names}",
            'preset = "imagenet"',
        )
    return table


def _are_pictures(chosen: LoadedConfig) -> bool:
    """Whether the samples are pictures, or bytes that may be."""
    path = chosen.config.calibration_data.path
    assert path is not None
    notes = chosen.samples.notes if chosen.samples else ()
    return path.is_dir() or any("bytes" in note for note in notes)


def _calibration_table(chosen: LoadedConfig, folder: Path) -> Table:
    data = chosen.config.calibration_data
    assert data.path is not None
    table = _table({"data": _relative(data.path, folder)})
    if data.arrays:
        arrays = tomlkit.inline_table()
        arrays.update(data.arrays)
        table["arrays"] = arrays
        others = _others_of_its_shape(data)
        if others:
            listed = ", ".join(f"'{name}'" for name in others)
            _leave_open(
                table,
                f"whether '{data.arrays['x']}' is the model's input: {listed} of the file would fit, too",
            )
    if data.labels is not None:
        table["labels"] = data.labels
    if chosen.samples is not None and len(chosen.samples) > 1000:
        table["samples"] = 1000
    return table


def _others_of_its_shape(data: DataSettings) -> list[str]:
    """The other arrays of an .npz whose samples have the shape of those that were taken, and that are no labels."""
    assert data.path is not None
    shapes = {
        name: array.shape[1:]
        for name, array in open_npz(data.path).items()
        if isinstance(array, StoredArray) and name != data.labels
    }
    (taken,) = data.arrays.values()
    shape = shapes.pop(taken)
    return [name for name, other in shapes.items() if other == shape]


def _evaluation_table() -> Table:
    return _commented(
        "For mrt evaluate: samples that calibration does not see.",
        'data = "test.npz"',
    )


def _quantization_table() -> Table:
    return _commented(
        "8 unless given; --bits auto chooses more where 8 are not good.",
        "bits = 8",
    )


def _commented(*lines: str) -> Table:
    """Return a table of comments alone."""
    table = _table({})
    for line in lines:
        table.add(tomlkit.comment(line))
    return table


def _leave_open(table: Table, question: str, line: str | None = None) -> None:
    table.add(tomlkit.comment(f"{TO_SAY} {question}"))
    if line is not None:
        table.add(tomlkit.comment(line))


def _table(entries: dict[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in entries.items():
        table[key] = value
    return table


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
