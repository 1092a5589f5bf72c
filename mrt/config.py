"""Reads configs/*.toml as frozen dataclasses.

A config names the files to read, how to prepare and calibrate them, and the precision.
Its tables are those of `TABLES`, made from the declarations of their options. All
errors of a file are reported at once. Paths are relative to the folder of the config file.
Options on the command line take precedence over the file (`mrt/settings.py`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import PresetOption, check_presets, prepared
from mrt.errors import BadOption
from mrt.option_tables import (
    STRICT,
    KeyPath,
    Table,
    dotted,
    read,
    table_of,
)
from mrt.option_values import (
    File,
    HeldBackCount,
    Integer,
    Names,
    Number,
    SampleCount,
    Shape,
    Text,
    shown,
)
from mrt.options import option, options_of
from mrt.quantize.options import (
    AUTO,
    BothBits,
    BothLayerBits,
    LayerBits,
    QuantizeOptions,
    both_bits,
    check_both_bits,
)
from mrt.refine.options import RefineOptions
from mrt.table.table import CalibrationOptions
from mrt.toml_lines import line_of, lines_of_keys

MOST_BYTES = 2**20
WEIGHT_SOURCES = ("params", "epoch", "random_weights")
"""The sources of an MXNet model's weights; an option for one replaces those of a file."""


@dataclass(frozen=True)
class DataSettings:
    """The file of samples, and the names of its arrays."""

    path: File | None = option(
        None,
        help="Samples: .npz, .npy, or a folder of images.",
        keys=("data",),
    )
    samples: SampleCount | None = option(
        None, help="At most so many, at equal distances; all unless given."
    )
    arrays: Mapping[str, Text] = option(
        dict,
        help="The arrays of an .npz by input, or by x for the only input.",
    )
    labels: Text | None = option(
        None, help="The array of classes of an .npz; y unless given."
    )
    held_back: HeldBackCount | None = option(
        None,
        help="So many, at equal distances, are judged on, not calibrated on; unless given, a quarter of 32 or more, at most 32.",
    )


@dataclass(frozen=True)
class ModelSettings:
    """The model's files, and the details that these leave open."""

    path: File | None = option(
        None, help="The model: .onnx, or MXNet symbol JSON."
    )
    params: File | None = option(
        None, help="MXNet parameters, if not found beside the JSON."
    )
    shapes: Mapping[str, Shape] = option(
        dict, help="Shapes of inputs that neither the file nor the data says."
    )
    labels: File | None = option(
        None, help="The names of the classes, one a line."
    )
    epoch: Integer | None = option(
        None, help="MXNet parameters of this epoch: PREFIX-000N.params."
    )
    random_weights: Integer | None = option(
        None, help="A seed of invented weights for an MXNet symbol."
    )
    outputs: Names = option(
        (), help="End in these nodes or values instead of the outputs."
    )
    values: Mapping[str, Number] = option(
        dict, help="Constants in place of ONNX inputs that are no data."
    )
    states: Mapping[str, Text] = option(
        dict,
        help="Outputs that are inputs of the next step, by input; past.* and present.* are found by name.",
    )


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
    automatic_bits: bool = False  # `bits = "auto"`
    # The file that was read, and what it says of the model, for errors.
    file: Path | None = field(default=None, compare=False)
    model_of_file: ModelSettings = field(
        default_factory=ModelSettings, compare=False
    )
    # Of no file: the shapes that a program made from the model has for each input.
    program_shapes: Mapping[str, tuple[Shape, ...]] = field(
        default_factory=dict
    )
    # Of no file either: the shapes with which a calibration table was made.
    table_shapes: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """The files and folders that are read: the model's, its class names, and the samples."""
        data = [self.calibration_data.path, self.evaluation_data.path]
        model = self.model
        named = [model.path, model.params, model.labels, *data]
        return [path for path in named if path is not None]

    def preprocessing_of(self, names: list[str]) -> dict[str, Preprocessing]:
        """Return the preprocessing of each of the model's inputs.

        Raise BadOption if the file prepares an input that the model lacks.
        """
        unknown = sorted(set(self.inputs) - set(names))
        if unknown:
            raise BadOption(
                f"{self.file or 'config'}: [inputs.{unknown[0]}] is for no input of the model; it has {', '.join(names)}"
            )
        return {
            name: self.inputs.get(name, self.preprocessing) for name in names
        }


# -- the tables of a file ----------------------------------------------------------

_PREPARING = table_of(Preprocessing, PresetOption, check=check_presets)
_LAYER = table_of(BothLayerBits, LayerBits, check=check_both_bits)
_TABLES: dict[str, tuple[Any, str]] = {
    "model": (table_of(ModelSettings), "The model's files."),
    "preprocessing": (_PREPARING, "How every input is prepared."),
    "inputs": (dict[str, _PREPARING], "One input, starting from that."),  # type: ignore[valid-type]
    "calibration": (
        table_of(DataSettings, CalibrationOptions),
        "Samples and observer for the ranges.",
    ),
    "evaluation": (
        table_of(DataSettings, without=frozenset({"held_back"})),
        "Samples to evaluate on.",
    ),
    "quantization": (
        table_of(BothBits, QuantizeOptions, check=check_both_bits),
        "The precision.",
    ),
    "layers": (dict[str, _LAYER], "One layer, by the name of its output."),  # type: ignore[valid-type]
    "refinement": (table_of(RefineOptions), "Decisions besides ranges."),
}
NESTED = ("inputs", "layers")
"""Tables of tables."""
_FIELDS: dict[str, Any] = {
    name: (kind, Field(default_factory=dict, description=help))
    for name, (kind, help) in _TABLES.items()
}
TABLES: Table = create_model("Config", __config__=STRICT, **_FIELDS)


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_text() -> str:
    """The JSON Schema of config files, for editors (docs/schemas/config.json)."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A config file of mrt",
        **TABLES.model_json_schema(schema_generator=_WithoutTitles),
    }
    return json.dumps(schema, indent=2) + "\n"


def load_config(path: Path) -> Config:
    """Read a config file.

    Raise BadOption, with the file, the line and the key, for all that cannot be used.
    """
    text, content = _read_toml(path)

    @cache  # read again only if something is wrong
    def lines() -> dict[KeyPath, int]:
        return lines_of_keys(text)

    def line(keys: KeyPath) -> int:
        return line_of(keys, lines())

    def name_of(keys: KeyPath, value: Any) -> str:
        return f"line {line(keys)}: {_as_toml(keys, value)}"

    try:
        entries = read(TABLES, content, name_of, line, f"{path}: ")
    except RecursionError:
        raise BadOption(f"{path}: has tables in tables too deep") from None
    try:
        config = with_entries(Config(), _in_folder(entries, path.parent))
    except BadOption as problem:
        raise BadOption(f"{path}: {problem}") from None
    return replace(config, file=path, model_of_file=config.model)


def _read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BadOption(f"{path}: has more than {MOST_BYTES} bytes")
        text = data.decode("utf-8-sig")  # which Notepad writes
        return text, tomllib.loads(text)
    except OSError as problem:
        raise BadOption(
            f"{path}: cannot be read ({problem.strerror})"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise BadOption(f"{path}: is not TOML ({problem})") from None


def _as_toml(keys: KeyPath, value: Any) -> str:
    """`[table] key = value`."""
    depth = 2 if keys[0] in NESTED else 1
    table, inner = dotted(keys[:depth]), dotted(keys[depth:])
    if not inner:
        is_table = isinstance(value, Mapping)
        return f"[{table}]" if is_table else f"{table} = {shown(value)}"
    return f"[{table}] {inner} = {shown(value)}"


def _in_folder(entries: Any, folder: Path) -> Any:
    """The entries with all paths relative to a folder."""
    if isinstance(entries, Mapping):
        return {
            key: _in_folder(value, folder) for key, value in entries.items()
        }
    return folder / entries if isinstance(entries, Path) else entries


# -- from entries to settings ------------------------------------------------------


def with_entries(config: Config, given: Mapping[str, Any]) -> Config:
    """The settings with entries of the tables, as `read` gives them, over them."""
    preparing = given.get("preprocessing", {})
    preprocessing = prepared(config.preprocessing, preparing)
    inputs = {
        name: prepared(settings, preparing)
        for name, settings in config.inputs.items()
    } | {
        name: prepared(preprocessing, settings)
        for name, settings in given.get("inputs", {}).items()
    }
    quantization = given.get("quantization", {})
    bits = both_bits(quantization)
    layers = {
        name: LayerBits(**both_bits(settings))
        for name, settings in given.get("layers", {}).items()
    }
    if layers:
        bits["layers"] = layers
    data, observer = _calibration(given.get("calibration", {}), bits)
    return replace(
        config,
        model=_model(config.model, given.get("model", {})),
        preprocessing=preprocessing,
        inputs=inputs,
        calibration_data=replace(config.calibration_data, **data),
        calibration=replace(config.calibration, **observer),
        evaluation_data=replace(
            config.evaluation_data, **given.get("evaluation", {})
        ),
        quantization=replace(config.quantization, **bits),
        automatic_bits=_is_automatic(config, quantization),
        refinement=replace(config.refinement, **given.get("refinement", {})),
    )


def _is_automatic(config: Config, quantization: Mapping[str, Any]) -> bool:
    """Whether bits are to be chosen: by the last that says how many there are."""
    if any(name.endswith("bits") for name in quantization):
        return quantization.get("bits") == AUTO
    return config.automatic_bits


def _model(former: ModelSettings, given: Mapping[str, Any]) -> ModelSettings:
    """The settings of the model with entries over them.

    Weights and outputs are those of their own model, so another model does not have
    them. Shapes and values are added to.
    """
    reset: dict[str, Any] = {}
    if "path" in given and former.path is not None:
        reset = {**dict.fromkeys(WEIGHT_SOURCES), "outputs": ()}
    elif given.keys() & set(WEIGHT_SOURCES):
        reset = dict.fromkeys(WEIGHT_SOURCES)
    added = {
        name: {**getattr(former, name), **given.get(name, {})}
        for name in ("shapes", "values", "states")
    }
    return replace(former, **{**reset, **given, **added})


def _calibration(
    given: Mapping[str, Any], bits: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries that are of the data, and those of the observer, which fits the precision of the activations."""
    of_data = {declared.name for declared in options_of(DataSettings)}
    data = {name: value for name, value in given.items() if name in of_data}
    observer = {
        name: value for name, value in given.items() if name not in of_data
    }
    precisions = [
        bits[name]
        for name in ("activation_bits", "product_bits")
        if name in bits
    ]
    if precisions:
        observer = {"bits": min(precisions), **observer}
    return data, observer
