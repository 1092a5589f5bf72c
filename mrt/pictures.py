"""Programs that take the bytes of pictures: which preprocessing they contain.

Scale, mean, std and colour order become part of the model, because they are computed
from a byte. Resizing, cropping and the layout of arrays in a file stay outside, because
they select the bytes. The program's provenance records the preprocessing that it
contains.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from cvm.program import Program
from cvm.program.decoder import states_of
from mrt.calibrate.preprocessing import Preprocessing, channel_axis
from mrt.calibrate.session import model_inputs
from mrt.config import Config
from mrt.errors import BadData, BadOption
from mrt.graph.notes import picture_layout_of
from mrt.graph.values import shape_of
from mrt.input_shapes import program_shapes
from mrt.rewrite.image.picture_inputs import Pixels, take_pictures

PROVENANCE = "picture_inputs"  # {input: {color, scale, mean, std}} as JSON
_CHANNELS = (1, 3, 4)
_INSIDE = ("color", "scale", "mean", "std")


def take_bytes(model: ir.Model, config: Config) -> None:
    """Make every input with input_dtype "u8" take bytes.

    Its preprocessing becomes the beginning of the graph.
    """
    for name, preparation in _of_pictures(model, config).items():
        value = next(
            value for value in model_inputs(model) if value.name == name
        )
        shape = _picture_shape(value)
        axis = channel_axis(shape)
        assert axis is not None
        per_channel = (
            _per_channel(getattr(preparation, key), shape[axis], name)
            for key in ("scale", "mean", "std")
        )
        scale, mean, std = per_channel
        if preparation.color == "BGR" and shape[axis] != 3:
            raise BadOption(
                f"input '{name}': color = 'BGR' needs 3 channels, the model has {shape[axis]}"
            )
        factors, shifts = (
            tuple(numbers.tolist())
            for numbers in (scale / std, 0.0 - mean / std)
        )
        take_pictures(
            model,
            name,
            Pixels(factors, shifts, preparation.color == "BGR", axis == 3),
        )


def outside(
    model: ir.Model, preprocessing: Mapping[str, Preprocessing]
) -> dict[str, Preprocessing]:
    """Return the remaining preprocessing of each input of a model, which may take bytes."""
    values = {str(value.name): value for value in model_inputs(model)}
    return {
        name: _as_it_is(values[name], preparation)
        if (layout := picture_layout_of(values[name])) is None
        else preparation.outside(layout)
        for name, preparation in preprocessing.items()
    }


def _as_it_is(value: ir.Value, preparation: Preprocessing) -> Preprocessing:
    """The preprocessing of an input that takes no bytes; only floats can be declared whole."""
    integral = value.dtype is not None and not value.dtype.is_floating_point()
    if preparation.input_dtype == "u8" or (
        preparation.input_dtype == "whole" and integral
    ):
        return replace(preparation, input_dtype="real")
    return preparation


def provenance(model: ir.Model, config: Config) -> dict[str, str]:
    """Return the entry with the inputs that take bytes and their preprocessing in the program.

    There is none if no input takes bytes.
    """
    inside = {
        name: {key: getattr(preparation, key) for key in _INSIDE}
        for name, preparation in _of_pictures(model, config).items()
    }
    return {PROVENANCE: json.dumps(inside, sort_keys=True)} if inside else {}


def table_key(sha256: str, model: ir.Model, config: Config) -> str:
    """Return the hash that binds a calibration table to a model.

    It is the model's hash, or that of the model with its preprocessing of pictures.
    """
    inside = provenance(model, config)
    return (
        hashlib.sha256(f"{sha256} {inside[PROVENANCE]}".encode()).hexdigest()
        if inside
        else sha256
    )


def notes_of_floats(
    model: ir.Model, config: Config, names: Collection[str]
) -> list[str]:
    """Return a note for each of these values that is an input of prepared pictures, and might be their bytes."""
    values = {str(value.name): value for value in model_inputs(model)}
    return [
        f"the input '{name}' got 16 bits for its prepared pictures: --input-dtype u8 takes their bytes instead, which are exact "
        "and cost no more than 8 bits"
        for name, preparation in config.preprocessing_of(list(values)).items()
        if name in names
        and preparation.input_dtype == "real"
        and not preparation.is_identity()
        and _is_picture(values[name])
    ]


def as_floats(config: Config) -> Config:
    """The configuration with everything that is done to samples outside of the model."""
    return replace(
        config,
        preprocessing=replace(config.preprocessing, input_dtype="real"),
        inputs={
            name: replace(preparation, input_dtype="real")
            for name, preparation in config.inputs.items()
        },
    )


def config_for(program: Program, config: Config) -> Config:
    """Return the configuration with which the float model takes the inputs of the program.

    The program records the shapes of its inputs, which of them are states, which are bytes and what it does to these;
    BadOption if the file states something else.
    """
    floats = as_floats(config)
    inputs, shared = dict(floats.inputs), floats.preprocessing
    for name, inside in _read_provenance(program).items():
        configured = inputs.get(name, shared)
        for key, value in inside.items():
            setting = getattr(configured, key)
            # A default is a statement only among numbers that somebody stated.
            is_stated = configured.stated and key != "color"
            defaults = () if is_stated else (getattr(Preprocessing(), key),)
            if setting not in (value, *defaults):
                raise BadOption(
                    f"input '{name}': {key} = {setting} is given, but the program computes with {value}; "
                    "leave it out, or convert again with it"
                )
        inputs[name] = replace(
            configured, input_dtype="u8", stated=True, **inside
        )
    states = {**states_of(program), **config.model.states}
    return replace(
        config,
        model=replace(config.model, states=states),
        preprocessing=shared,
        inputs=inputs,
        program_shapes=shapes_of(program),
    )


def shapes_of(program: Program) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The shapes that each input may have in the model from which the program was made."""
    return program_shapes(program, frozenset(_read_provenance(program)))


def _of_pictures(model: ir.Model, config: Config) -> dict[str, Preprocessing]:
    names = [str(value.name) for value in model_inputs(model)]
    if config.preprocessing.input_dtype == "u8" and len(names) > 1:
        raise BadOption(
            f"input_dtype = 'u8' for a model of {len(names)} inputs ({', '.join(names)}): say which of them takes pictures, "
            "as input_dtype under [inputs.NAME] in a config"
        )
    return {
        name: preparation
        for name, preparation in config.preprocessing_of(names).items()
        if preparation.input_dtype == "u8"
    }


def _picture_shape(value: ir.Value) -> tuple[int, ...]:
    """Return the shape of an input, or raise BadOption if a picture does not fit it."""
    shape = shape_of(value) or ()
    if value.dtype != ir.DataType.FLOAT:
        raise BadOption(
            f"input '{value.name}': input_dtype = 'u8' is for floats, this holds {value.dtype} already"
        )
    if not _is_picture(value):
        raise BadOption(
            f"input '{value.name}' of shape {list(shape)} is no picture: input_dtype = 'u8' needs [1,C,H,W] or [1,H,W,C] with "
            "1, 3 or 4 channels and sides above 4"
        )
    return shape


def _is_picture(value: ir.Value) -> bool:
    shape = shape_of(value) or ()
    axis = channel_axis(shape)
    if len(shape) != 4 or shape[0] != 1 or axis is None:
        return False
    sides = [size for index, size in enumerate(shape) if index not in (0, axis)]
    return shape[axis] in _CHANNELS and min(sides) > max(_CHANNELS)


def _per_channel(
    numbers: float | tuple[float, ...], channels: int, name: str
) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.atleast_1d(np.asarray(numbers, np.float64))
    if array.size not in (1, channels):
        raise BadOption(
            f"input '{name}': mean or std has {array.size} numbers, but the model has {channels} channels"
        )
    return np.broadcast_to(array, channels)


def _read_provenance(program: Program) -> dict[str, dict[str, Any]]:
    """Read the entry of the program, and reject values that a configuration could not have."""
    text = program.provenance_of(PROVENANCE)
    if text is None:
        return {}
    try:
        content = json.loads(text)
        if set(content) != {
            entry.name for entry in program.inputs if entry.type.dtype == "u8"
        } & set(content):
            raise ValueError("it names what is no input of bytes")
        return {name: _read_inside(entry) for name, entry in content.items()}
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
        BadOption,
    ) as problem:
        raise BadData(
            f"the program's provenance '{PROVENANCE}' cannot be used: {problem}"
        ) from None


def _read_inside(entry: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {
        key: tuple(float(number) for number in entry[key])
        for key in ("mean", "std")
    }
    inside: dict[str, Any] = {
        "color": str(entry["color"]),
        "scale": float(entry["scale"]),
        **numbers,
    }
    if set(entry) != set(_INSIDE) or any(
        math.isnan(number) for number in numbers["mean"]
    ):
        raise ValueError(f"it holds {sorted(entry)}")
    Preprocessing(**inside)  # raises BadOption for impossible values
    return inside
