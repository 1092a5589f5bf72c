"""Combines the options of a command with its config file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cvm.file.disk import NOT_REGULAR, is_special
from mrt.calibrate.preprocessing import Preprocessing
from mrt.config import (
    TABLES,
    WEIGHT_SOURCES,
    Config,
    load_config,
    with_entries,
)
from mrt.errors import BadOption
from mrt.option_tables import KeyPath, dotted, read
from mrt.option_values import shown
from mrt.options import options_of
from mrt.quantize.options import QuantizeOptions
from mrt.refine.options import STAGES, RefineOptions
from mrt.tune.settings_file import PATHS, settings_text

QUANTIZE_OPTIONS = tuple(
    declared.name for declared in options_of(QuantizeOptions)
)
PLACES: Mapping[str, tuple[str, ...]] = {
    "model": (*WEIGHT_SOURCES, "outputs", "shapes", "values", "states"),
    "preprocessing": (
        "preset",
        *(declared.name for declared in options_of(Preprocessing)),
    ),
    "quantization": ("bits", *QUANTIZE_OPTIONS),
    "calibration": ("observer",),
    "refinement": ("extra_products",),
}
"""The options that are entries of a config file, by their tables."""
OPTIONS = frozenset(
    {
        *(name for names in PLACES.values() for name in names),
        "config",
        "held_back",
        "refine",
        "samples",
    }
)
"""The options of a conversion by the names of `settings_of`; the model and the data aside."""


def settings_of(
    model: Path | None,
    options: Mapping[str, Any],
    name_of: Callable[[str, Any], str] = "{} = {}".format,
) -> Config:
    """Return the config file's settings, if any, with the options over them.

    An option has a value such as its entry of the file has. `name_of` names an option and
    its value in the message of BadOption.
    """

    def name_of_option(keys: KeyPath, value: Any) -> str:
        return name_of(dotted(keys[1:]), shown(value))

    config = (
        load_config(options["config"]) if options.get("config") else Config()
    )
    entries = read(TABLES, _tables(model, options), name_of_option)
    config = with_entries(_with_stages(config, options), entries)
    _require_duplicates(config.refinement)
    data = (config.calibration_data.path, config.evaluation_data.path)
    require_regular(*filter(None, (config.model.path, *data)))
    if config.model.path is None:
        raise BadOption(
            "no model is given: name its file, or a --config whose [model] has a path"
        )
    return config


def require_regular(*paths: Path) -> None:
    """Raise BadOption for a pipe or a device: reading one may wait for ever, and what was read is gone."""
    for path in filter(is_special, paths):
        raise BadOption(f"{path}: {NOT_REGULAR}")


def with_options(config: Config, options: Mapping[str, Any]) -> Config:
    """Return the settings with options of quantization and `refine` over them, as `settings_of` takes these."""
    names = PLACES["quantization"]
    bits = _given({name: options.get(name) for name in names})
    return with_entries(_with_stages(config, options), {"quantization": bits})


def _tables(
    model: Path | None, options: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options as entries of the tables of a config file."""
    tables = {
        table: _given({name: options.get(name) for name in names})
        for table, names in PLACES.items()
    }
    tables["model"] |= _given({"path": model})
    data = {name: options.get(name) for name in ("data", "samples")}
    data_table = "evaluation" if options.get("evaluation") else "calibration"
    tables[data_table] = {**tables.get(data_table, {}), **_given(data)}
    tables["calibration"] |= _given({"held_back": options.get("held_back")})
    preset = tables["preprocessing"].get("preset")
    if str(preset).endswith(".json"):
        del tables["preprocessing"]["preset"]
        tables["preprocessing"]["preprocessor"] = preset
    return tables


def _with_stages(config: Config, options: Mapping[str, Any]) -> Config:
    stages = options.get("refine")
    if stages is None:
        return config
    chosen = _stages(stages)
    extra_products = config.refinement.extra_products
    return replace(
        config, refinement=replace(chosen, extra_products=extra_products)
    )


def _require_duplicates(refinement: RefineOptions) -> None:
    """Raise BadOption where products may be added, but not by what adds them."""
    if not refinement.extra_products or refinement.duplicates:
        return
    raise BadOption(
        f"extra_products = {refinement.extra_products:g} adds copies of channels, which the stage 'duplicates' makes: "
        "choose it with --refine, or leave --extra-products away"
    )


def _stages(chosen: str | Collection[str]) -> RefineOptions:
    if not isinstance(chosen, (str, Collection)):
        raise BadOption(
            f"refine = {chosen!r}: expected 'all', 'none' or names of stages: {', '.join(STAGES)}"
        )
    if chosen in ("all", "none"):
        return RefineOptions.of(STAGES if chosen == "all" else ())
    return RefineOptions.of([chosen] if isinstance(chosen, str) else chosen)


def written_settings(
    file: Path | None, config: Config, folder: Path, *, with_table: bool
) -> str:
    """Return the TOML, for `folder`, of the settings that this conversion used.

    A config file keeps its comments and its other settings.
    """
    former = "" if file is None else file.read_text(encoding="utf-8-sig")
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
    content["refinement"] = _given(asdict(config.refinement))
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
        "states": dict(model.states) or None,
    }


def _used_of_preprocessing(
    file: Path | None, config: Config, content: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables of preprocessing: the file's, or the numbers where the command line or another file gave them."""
    former = Config() if file is None else load_config(file)
    written = content.get("preprocessing", {})
    tables: dict[str, Any] = {}
    if _is_new(former.preprocessing, config.preprocessing, written):
        tables["preprocessing"] = _stated_keys(config.preprocessing)
    inputs = content.get("inputs", {})
    used_inputs = {
        name: _stated_keys(config.inputs[name])
        if _is_new(former.inputs[name], config.inputs[name], entries)
        else entries
        for name, entries in inputs.items()
    }
    return {**tables, "inputs": used_inputs} if used_inputs else tables


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
        "held_back": data.held_back,
        "observer": config.calibration.observer,
        "bits": config.calibration.bits,
    }


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
