"""Typed notes that passes leave on values of the float graph, for later stages to read.

Notes are kept in `value.meta`, which no file can set. `mrt rewrite` writes them into the
file as text (`write_to_metadata`). Reading a file takes back only text that can be
parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

IntegerInterval = tuple[int, int]
Pairs = tuple[tuple[int, int], ...]
LAYOUTS = ("NHWC", "NCHW")
STEPS_OF_WEIGHTS = "mrt.steps_of_weights"
"""Key of the model's note: the scales at which its file stores weights, as arrays."""
WIDE_WEIGHTS = "mrt.wide_weights"
"""Key of the model's note: constants of the file with more bits than a program's, each by name and role."""
MOST_TEXT = 2**20  # characters of one note in a file


@dataclass(frozen=True)
class IntegerGrid:
    """The integers of a value: real = scale * (integer - zero_point), from least to most."""

    scale: float
    zero_point: int
    least: int
    most: int


def shared_range_of(value: ir.Value) -> str | None:
    """Return the name of the shared range of a value, such as a state of a recurrence.

    All values of one shared range have the same name.
    """
    name: str | None = _get(value, "mrt.one_range")
    return name


def set_shared_range(value: ir.Value, name: str) -> None:
    """Note that calibration measures this value as one with all others of the same name."""
    value.meta["mrt.one_range"] = name


def picture_layout_of(value: ir.Value) -> str | None:
    """Return the layout, NHWC or NCHW, of an input that takes an image's bytes.

    It is the layout that the model expects.
    """
    name: str | None = _get(value, "mrt.bytes")
    return name


def set_picture_layout(value: ir.Value, layout: str) -> None:
    """Note that an input takes an image's bytes in this layout."""
    assert layout in LAYOUTS
    value.meta["mrt.bytes"] = layout


def indices_of(value: ir.Value) -> IntegerInterval | None:
    """Return the interval of the axis that an input of indices selects from."""
    interval: IntegerInterval | None = _get(value, "mrt.indices")
    return interval


def set_indices(value: ir.Value, interval: IntegerInterval) -> None:
    """Note that an input holds indices from this interval."""
    value.meta["mrt.indices"] = interval


def compared_of(value: ir.Value) -> IntegerInterval | None:
    """Return the interval of the constants with which an input of integers is compared."""
    interval: IntegerInterval | None = _get(value, "mrt.compared")
    return interval


def set_compared(value: ir.Value, interval: IntegerInterval) -> None:
    """Note that an input of integers is compared with constants in this interval."""
    value.meta["mrt.compared"] = interval


def is_whole(value: ir.Value) -> bool:
    """Whether an input of floats is declared to hold integers."""
    return _get(value, "mrt.whole") is not None


def set_whole(value: ir.Value) -> None:
    """Note that an input of floats holds integers."""
    value.meta["mrt.whole"] = "declared"


def has_scaled_columns(value: ir.Value) -> bool:
    """Whether a value is an input table times a factor for each column, which the input's integers are taken for."""
    return _get(value, "mrt.scaled_columns") is not None


def note_scaled_columns(value: ir.Value) -> None:
    """Note that a value is an input table times a factor for each column."""
    value.meta["mrt.scaled_columns"] = "scaled"


def duplicates_of(value: ir.Value) -> Pairs:
    """Return the pairs (channel, equal channel) that are to be rounded half a step apart."""
    return _get(value, "mrt.twins") or ()


def set_duplicates(value: ir.Value, pairs: Pairs) -> None:
    """Note the pairs of equal channels of a value."""
    value.meta["mrt.twins"] = pairs


def write_to_metadata(model: ir.Model) -> None:
    """Write all notes as text into the values' metadata, which a file keeps."""
    for value in _values(model):
        for key, form in _FORMS.items():
            note = _get(value, key)
            if note is not None:
                value.metadata_props[key] = form.write(note)


def read_from_metadata(model: ir.Model) -> None:
    """Read notes from the metadata of a file that `write_to_metadata` may have written.

    The file may come from a stranger, so text that cannot be parsed is left out.
    """
    for value in _values(model):
        for key, form in _FORMS.items():
            text = value.metadata_props.pop(key, "")
            if text and len(text) <= MOST_TEXT and form.pattern.fullmatch(text):
                value.meta[key] = form.read(text)


def grid_of(value: ir.Value) -> IntegerGrid | None:
    """Return the grid to which the model itself rounds a value."""
    grid: IntegerGrid | None = _get(value, "mrt.grid")
    return grid


def set_grid(value: ir.Value, grid: IntegerGrid) -> None:
    """Note the grid to which the model itself rounds a value."""
    value.meta["mrt.grid"] = grid


@dataclass(frozen=True)
class _Form:
    """The form of a kind of note as text: what is accepted, and how it is read and written."""

    pattern: re.Pattern[str]
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _read_interval(text: str) -> IntegerInterval:
    low, high = text.split()
    return int(low), int(high)


def _write_interval(interval: IntegerInterval) -> str:
    return f"{interval[0]} {interval[1]}"


def _read_pairs(text: str) -> Pairs:
    words = [word.split(":") for word in text.split()]
    return tuple((int(first), int(second)) for first, second in words)


def _write_pairs(pairs: Pairs) -> str:
    return " ".join(f"{first}:{second}" for first, second in pairs)


_ANY_TEXT = _Form(re.compile(".+", re.DOTALL), str, str)
_INTERVAL = _Form(
    re.compile(r"-?\d{1,19} -?\d{1,19}", re.ASCII),
    _read_interval,
    _write_interval,
)
_FORMS = {
    "mrt.one_range": _ANY_TEXT,
    "mrt.bytes": _Form(re.compile("|".join(LAYOUTS)), str, str),
    "mrt.indices": _INTERVAL,
    "mrt.compared": _INTERVAL,
    "mrt.whole": _Form(re.compile("declared"), str, str),
    "mrt.scaled_columns": _Form(re.compile("scaled"), str, str),
    "mrt.twins": _Form(
        re.compile(r"\d{1,9}:\d{1,9}( \d{1,9}:\d{1,9})*", re.ASCII),
        _read_pairs,
        _write_pairs,
    ),
}


def _get(value: ir.Value, key: str) -> Any:
    return value.meta.get(key)


def _values(model: ir.Model) -> list[ir.Value]:
    computed = [value for node in model.graph for value in node.outputs]
    return [*model.graph.inputs, *computed]
