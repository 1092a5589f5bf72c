"""Combines the options of a command with its config file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import parse_preset, prepared
from mrt.config import Config, ModelSettings, load_config
from mrt.errors import BadOption
from mrt.option_values import Form
from mrt.options import options_of
from mrt.quantize.options import QuantizeOptions
from mrt.refine.options import STAGES, RefineOptions
from mrt.tune.settings_file import PATHS, settings_text

WEIGHT_SOURCES = ("params", "epoch", "random_weights")
"""The sources of an MXNet model's weights; at most one of them may be given."""
QUANTIZE_OPTIONS = tuple(
    declared.name for declared in options_of(QuantizeOptions)
)

PREPROCESSING_OPTIONS = tuple(
    declared.name for declared in options_of(Preprocessing)
)
OPTIONS = frozenset(
    {
        *WEIGHT_SOURCES,
        *QUANTIZE_OPTIONS,
        *PREPROCESSING_OPTIONS,
        "preset",
        "bits",
        "config",
        "input_dtype",
        "observer",
        "outputs",
        "refine",
        "samples",
        "shapes",
        "values",
    }
)
"""The options of a conversion by the names of `settings_of`; the model and the data aside."""


def settings_of(model: Path | None, options: Mapping[str, Any]) -> Config:
    """Return the config file's settings, if any, with the command line's options over them."""
    config = (
        load_config(options["config"]) if options.get("config") else Config()
    )
    config = replace(
        config, model=_model_settings(config.model, model, options)
    )
    config = _prepared(config, options)
    if config.model.path is None:
        raise BadOption(
            "no model is given: name its file, or a --config whose [model] has a path"
        )
    data = _given(
        {"path": options.get("data"), "samples": options.get("samples")}
    )
    which = (
        "evaluation_data" if options.get("evaluation") else "calibration_data"
    )
    config = replace(config, **{which: replace(getattr(config, which), **data)})
    given = _given({name: options.get(name) for name in QUANTIZE_OPTIONS})
    if (bits := options.get("bits")) is not None:
        given = {"weight_bits": bits, "activation_bits": bits, **given}
    quantization = replace(config.quantization, **given)
    fitted_bits = given.get("activation_bits")
    observer = _given(
        {"observer": options.get("observer"), "bits": fitted_bits}
    )
    if (stages := options.get("refine")) is not None:
        config = replace(config, refinement=_parse_stages(stages))
    return replace(
        config,
        quantization=quantization,
        calibration=replace(config.calibration, **observer),
    )


def _prepared(config: Config, options: Mapping[str, Any]) -> Config:
    """The settings with the command line's preparation of data, which is of every input."""
    given: dict[str, Any] = {}
    for declared in options_of(Preprocessing):
        value = options.get(declared.name)
        if value is not None and declared.form is not None:
            value = _read_form(declared.flag, declared.form, value)
        given[declared.name] = value
    if (preset := options.get("preset")) is not None:
        given |= parse_preset(preset)
    return replace(
        config,
        preprocessing=prepared(config.preprocessing, given),
        inputs={
            name: prepared(item, given) for name, item in config.inputs.items()
        },
    )


def _read_form(flag: str, form: Form, text: str) -> Any:
    try:
        return form.read(form.parse(text))
    except BadOption as problem:
        raise BadOption(f"{flag} {text}: {problem}") from None


def _parse_stages(text: str) -> RefineOptions:
    if text in ("all", "none"):
        return RefineOptions.of(STAGES if text == "all" else ())
    return RefineOptions.of([stage.strip() for stage in text.split(",")])


def _model_settings(
    file: ModelSettings, model: Path | None, options: Mapping[str, Any]
) -> ModelSettings:
    """Return the settings of the model.

    Weights and outputs in the file are those of its own model, so another model does
    not have them. At most one source of weights is used.
    """
    named = _given(
        {name: options.get(name) for name in (*WEIGHT_SOURCES, "outputs")}
    )
    if "outputs" in named:
        named["outputs"] = _parse_outputs(named["outputs"])
    if named.keys() & set(WEIGHT_SOURCES):
        named = {**dict.fromkeys(WEIGHT_SOURCES), **named}
    if model is not None:
        other = (
            {}
            if file.path is None
            else {**dict.fromkeys(WEIGHT_SOURCES), "outputs": ()}
        )
        named = {**other, **named, "path": model}
    shapes = {
        **file.shapes,
        **dict(map(_parse_shape, options.get("shapes") or ())),
    }
    values = {
        **file.values,
        **dict(map(_parse_value, options.get("values") or ())),
    }
    return replace(file, **{"shapes": shapes, "values": values, **named})


def _parse_outputs(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise BadOption(
            f"--outputs {text}: expected names with commas between them"
        )
    return names


def written_settings(
    file: Path | None, config: Config, folder: Path, *, with_table: bool
) -> str:
    """Return the TOML, for `folder`, of the settings that this conversion used.

    A config file keeps its comments and its other settings.
    """
    former = "" if file is None else file.read_text(encoding="utf-8")
    content = tomllib.loads(former)
    base = Path() if file is None else file.parent
    for table, key in PATHS:
        if key in content.get(table, {}):
            content[table][key] = str(base / content[table][key])
    model = _used_of_model(config)
    content["model"] = {**content.get("model", {}), **_given(model)}
    for name in (*WEIGHT_SOURCES, "outputs"):
        if model[name] is None:
            content["model"].pop(name, None)
    calibration = _given(_used_of_calibration(config))
    content["calibration"] = {**content.get("calibration", {}), **calibration}
    content |= _used_of_preprocessing(file, config, content)
    content["refinement"] = asdict(config.refinement)
    how = "by this file and the same --table" if with_table else "by this file"
    return settings_text(
        content,
        config.quantization,
        folder=folder,
        title=f"Converting {how} gives the same program without a search.",
        former=former,
    )


def _used_of_model(config: Config) -> dict[str, Any]:
    model = config.model
    sources = {name: getattr(model, name) for name in WEIGHT_SOURCES}
    if model.params is not None:
        sources["params"] = str(model.params)
    return {
        **sources,
        "path": None if model.path is None else str(model.path),
        "outputs": model.outputs or None,
        "shapes": dict(model.shapes) or None,
        "values": dict(model.values) or None,
    }


def _used_of_preprocessing(
    file: Path | None, config: Config, content: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables of preprocessing: the file's, or the numbers where the command line or another file said them."""
    former = Config() if file is None else load_config(file)
    written = content.get("preprocessing", {})
    tables: dict[str, Any] = {}
    if _is_new(former.preprocessing, config.preprocessing, written):
        tables["preprocessing"] = _stated_keys(config.preprocessing)
    inputs = content.get("inputs", {})
    found = {
        name: _stated_keys(config.inputs[name])
        if _is_new(former.inputs[name], config.inputs[name], item)
        else item
        for name, item in inputs.items()
    }
    return {**tables, "inputs": found} if found else tables


def _is_new(
    former: Preprocessing, used: Preprocessing, written: Mapping[str, Any]
) -> bool:
    same = former == used and former.stated == used.stated
    return not same or "preprocessor" in written


def _stated_keys(used: Preprocessing) -> dict[str, Any]:
    """What differs from the defaults and, where anyone stated what is done to numbers, the scale."""
    values = {
        declared.name: getattr(used, declared.name)
        for declared in options_of(Preprocessing)
        if getattr(used, declared.name) != declared.default
        or (declared.name == "scale" and used.stated)
    }
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _used_of_calibration(config: Config) -> dict[str, Any]:
    data = config.calibration_data
    return {
        "data": None if data.path is None else str(data.path),
        "samples": data.samples,
        "held_back": data.held_back or None,
        "observer": config.calibration.observer,
        "bits": config.calibration.bits,
    }


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    try:
        shape = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        shape = ()
    if not (
        equals and name and shape and all(0 < size < 2**31 for size in shape)
    ):
        raise BadOption(
            f"--shape {text}: expected NAME=1,3,224,224 with dimensions of 1 or more"
        )
    return name, shape


def _parse_value(text: str) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (equals and name and math.isfinite(value)):
        raise BadOption(f"--value {text}: expected NAME=NUMBER")
    return name, value
