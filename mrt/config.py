"""Reads configs/*.toml as frozen dataclasses.

A config names the files to read, how to prepare and calibrate them, and the precision.
Unknown keys are refused by name and every value is checked. Paths are relative to the
folder of the config file. Options on the command line take precedence over the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import PresetOption, prepared
from mrt.errors import BadOption
from mrt.option_values import (
    bits_reader,
    mapping_reader,
    path_reader,
    read_flag,
    read_integer,
    read_names,
    read_number,
    read_sample_count,
    read_shape,
    read_text,
    word_reader,
)
from mrt.options import Option, options_of
from mrt.quantize.options import (
    ACTIVATION_BITS,
    WEIGHT_BITS,
    LayerBits,
    QuantizeOptions,
)
from mrt.refine.options import FORMER_NAMES, STAGES, RefineOptions
from mrt.table.table import OBSERVERS, CalibrationOptions

Shape = tuple[int, ...]


@dataclass(frozen=True)
class DataSettings:
    """The file of samples, and the names of its arrays.

    Arrays of an .npz are named by input, or by `x` for the only input. `held_back` of
    the samples, at equal distances, are left out of calibration.
    """

    path: Path | None = None
    # At most so many, at equal distances; None for all.
    samples: int | None = None
    arrays: Mapping[str, str] = field(default_factory=dict)
    labels: str | None = None
    held_back: int = 0


@dataclass(frozen=True)
class ModelSettings:
    """The model's files, and the details that these leave open.

    These are the shapes of inputs, and the names of the model's classes, one a line.
    The parameters of an MXNet model are those of `params` or of the `epoch`, or random
    from the seed `random_weights`. `outputs` are values that replace the model's own
    outputs; `values` make constants of inputs.
    """

    path: Path | None = None
    params: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    labels: Path | None = None
    epoch: int | None = None
    random_weights: int | None = None
    outputs: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """All settings of a config file; without a file, the defaults."""

    model: ModelSettings = field(default_factory=ModelSettings)
    # For every input without settings of its own.
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    inputs: Mapping[str, Preprocessing] = field(default_factory=dict)
    calibration_data: DataSettings = field(default_factory=DataSettings)
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    evaluation_data: DataSettings = field(default_factory=DataSettings)
    quantization: QuantizeOptions = field(default_factory=QuantizeOptions)
    refinement: RefineOptions = field(default_factory=RefineOptions)
    # Of no file: the shapes that a program made from the model has for each input.
    program_shapes: Mapping[str, tuple[Shape, ...]] = field(
        default_factory=dict
    )

    def preprocessing_of(self, names: list[str]) -> dict[str, Preprocessing]:
        """Return the preprocessing of each of the model's inputs.

        Raise BadOption if the file prepares an input that the model lacks.
        """
        unknown = sorted(set(self.inputs) - set(names))
        if unknown:
            raise BadOption(
                f"config: [inputs.{unknown[0]}] is for no input of the model; it has {', '.join(names)}"
            )
        return {
            name: self.inputs.get(name, self.preprocessing) for name in names
        }


def load_config(path: Path) -> Config:
    """Read a config file.

    Raise BadOption, with the file and the key, for anything that cannot be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadOption(
            f"{path}: cannot be read ({problem.strerror})"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise BadOption(f"{path}: is not TOML ({problem})") from None
    try:
        return _read_config(_Table(content, ""), path.parent)
    except BadOption as problem:
        raise BadOption(f"{path}: {problem}") from None


class _Table:
    """One table of the file.

    Keys are taken out as they are read; the others are unknown.
    """

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        self._unread = dict(content)
        self._known: list[str] = []
        self.name = name

    def take(
        self, key: str, read: Callable[[Any], Any], default: Any = None
    ) -> Any:
        """Return `read` of the value of `key`, or the default.

        Raise BadOption, naming the key, if `read` refuses the value.
        """
        self._known.append(key)
        if key not in self._unread:
            return default
        value = self._unread.pop(key)
        try:
            return read(value)
        except BadOption as problem:
            raise BadOption(
                f"[{self.name}] {key} = {value!r}: {problem}"
            ) from None

    def table(self, key: str) -> _Table:
        """Return the table under `key`, empty if absent."""
        self._known.append(key)
        value = self._unread.pop(key, {})
        name = f"{self.name}.{key}" if self.name else key
        if not isinstance(value, dict):
            raise BadOption(f"{name} = {value!r}: expected a table, [{name}]")
        return _Table(value, name)

    def tables(self, key: str) -> dict[str, _Table]:
        """Return the tables under `key` by name."""
        outer = self.table(key)
        return {name: outer.table(name) for name in list(outer._unread)}

    def options(self, declarations: type, **defaults: Any) -> dict[str, Any]:
        """Return the values of all options that a dataclass declares, by name."""
        return {
            declared.name: self.take(
                declared.name,
                _reader_of(declared),
                defaults.get(declared.name, declared.default),
            )
            for declared in options_of(declarations)
        }

    def given(self, declarations: type) -> dict[str, Any]:
        """The values of those options of a dataclass that the table has, by name."""
        found = {
            declared.name: self.take(declared.name, _reader_of(declared))
            for declared in options_of(declarations)
        }
        return {
            name: value for name, value in found.items() if value is not None
        }

    def finish(self) -> None:
        """Raise BadOption, naming the key, if a key has not been read."""
        for key in self._unread:
            where = f" in [{self.name}]" if self.name else ""
            known = ", ".join(self._known)
            raise BadOption(f"unknown key '{key}'{where}; known are {known}")


def _read_config(top: _Table, folder: Path) -> Config:
    model = _read_model(top.table("model"), folder)
    preprocessing = _read_preprocessing(
        top.table("preprocessing"), Preprocessing(), folder
    )
    inputs = {
        name: _read_preprocessing(table, preprocessing, folder)
        for name, table in top.tables("inputs").items()
    }
    calibration_table = top.table("calibration")
    evaluation_table = top.table("evaluation")
    quantization = _read_quantization(
        top.table("quantization"), top.tables("layers")
    )
    calibration_data, calibration = _read_calibration(
        calibration_table, folder, quantization.activation_bits
    )
    evaluation_data = _read_data(evaluation_table, folder)
    evaluation_table.finish()
    refinement = _read_refinement(top.table("refinement"))
    top.finish()
    return Config(
        model,
        preprocessing,
        inputs,
        calibration_data,
        calibration,
        evaluation_data,
        quantization,
        refinement,
    )


def _read_model(table: _Table, folder: Path) -> ModelSettings:
    settings = ModelSettings(
        path=table.take("path", path_reader(folder)),
        params=table.take("params", path_reader(folder)),
        epoch=table.take("epoch", read_integer),
        random_weights=table.take("random_weights", read_integer),
        outputs=table.take("outputs", read_names, ()),
        shapes=table.take("shapes", mapping_reader(read_shape), {}),
        values=table.take("values", mapping_reader(read_number), {}),
        labels=table.take("labels", path_reader(folder)),
    )
    table.finish()
    return settings


def _read_preprocessing(
    table: _Table, base: Preprocessing, folder: Path
) -> Preprocessing:
    given = {
        **table.given(Preprocessing),
        **table.given(PresetOption),
        "preprocessor": table.take("preprocessor", path_reader(folder)),
    }
    table.finish()
    try:
        return prepared(base, given)
    except BadOption as problem:
        raise BadOption(f"[{table.name}] {problem}") from None


def _read_calibration(
    table: _Table, folder: Path, bits: int
) -> tuple[DataSettings, CalibrationOptions]:
    """Return the data and the options.

    By default, the observer fits the precision of the activations.
    """
    data = replace(
        _read_data(table, folder),
        held_back=table.take("held_back", read_sample_count, 0),
    )
    taken = {
        "observer": table.take("observer", word_reader(OBSERVERS)),
        "percentile": table.take("percentile", read_number),
        "bits": table.take("bits", read_integer, bits),
    }
    table.finish()
    try:
        return data, CalibrationOptions(
            **{
                name: value
                for name, value in taken.items()
                if value is not None
            }
        )
    except BadOption as problem:
        raise BadOption(f"[{table.name}] {problem}") from None


def _read_data(table: _Table, folder: Path) -> DataSettings:
    return DataSettings(
        path=table.take("data", path_reader(folder)),
        samples=table.take("samples", read_sample_count),
        arrays=table.take("arrays", mapping_reader(read_text), {}),
        labels=table.take("labels", read_text),
    )


def _read_refinement(table: _Table) -> RefineOptions:
    stages = {stage: table.take(stage, read_flag, True) for stage in STAGES}
    for former, stage in FORMER_NAMES.items():
        stages[stage] = table.take(former, read_flag, stages[stage])
    table.finish()
    return RefineOptions(**stages)


def _read_quantization(
    table: _Table, layers: Mapping[str, _Table]
) -> QuantizeOptions:
    both = table.take("bits", bits_reader(WEIGHT_BITS), 8)
    options = table.options(
        QuantizeOptions, weight_bits=both, activation_bits=both
    )
    table.finish()
    layer_bits = {name: _read_layer(item) for name, item in layers.items()}
    return QuantizeOptions(**options, layers=layer_bits)


def _read_layer(table: _Table) -> LayerBits:
    both = table.take("bits", bits_reader(WEIGHT_BITS))
    settings = LayerBits(
        weight_bits=table.take("weight_bits", bits_reader(WEIGHT_BITS), both),
        activation_bits=table.take(
            "activation_bits", bits_reader(ACTIVATION_BITS), both
        ),
    )
    table.finish()
    return settings


def _reader_of(declared: Option) -> Callable[[Any], Any]:
    """Reads a value of an option: a flag, a number of bits or a word among those allowed."""
    if declared.form is not None:
        return declared.form.read
    kind = type(declared.allowed[0])
    if kind is bool:
        return read_flag
    return (
        bits_reader(declared.allowed)
        if kind is int
        else word_reader(declared.allowed)
    )
