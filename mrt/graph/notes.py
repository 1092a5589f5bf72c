"""Typed notes that passes leave on values of the float graph, for later rooms to read.

Notes live in `value.meta`, which no file can set. `mrt rewrite` writes them into the file as
text (`write_to_metadata`), and reading a file takes back only what can be parsed.
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
MOST_TEXT = 2**20  # characters of one note in a file


def shared_range_of(value: ir.Value) -> str | None:
    """The name that all values of one shared range have, such as the states of a recurrence."""
    name: str | None = _get(value, "mrt.one_range")
    return name


def set_shared_range(value: ir.Value, name: str) -> None:
    """Let calibration measure this value as one with all others of the same name."""
    value.meta["mrt.one_range"] = name


def picture_layout_of(value: ir.Value) -> str | None:
    """NHWC or NCHW, the layout that the model expects, of an input that takes a picture's bytes."""
    name: str | None = _get(value, "mrt.bytes")
    return name


def set_picture_layout(value: ir.Value, layout: str) -> None:
    """Mark an input that takes a picture's bytes."""
    assert layout in LAYOUTS
    value.meta["mrt.bytes"] = layout


def indices_of(value: ir.Value) -> IntegerInterval | None:
    """The interval of the axis, of an input of indices."""
    interval: IntegerInterval | None = _get(value, "mrt.indices")
    return interval


def set_indices(value: ir.Value, interval: IntegerInterval) -> None:
    """Mark an input of indices."""
    value.meta["mrt.indices"] = interval


def compared_of(value: ir.Value) -> IntegerInterval | None:
    """The interval of the constants, of an input of integers that is compared with some."""
    interval: IntegerInterval | None = _get(value, "mrt.compared")
    return interval


def set_compared(value: ir.Value, interval: IntegerInterval) -> None:
    """Mark an input of integers that is compared with constants."""
    value.meta["mrt.compared"] = interval


def duplicates_of(value: ir.Value) -> Pairs:
    """Pairs (channel, equal channel) that are to be rounded half a step apart."""
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
    """Take notes out of the metadata of a file that `write_to_metadata` may have written.

    The file may come from a stranger: text that cannot be parsed is left out.
    """
    for value in _values(model):
        for key, form in _FORMS.items():
            text = value.metadata_props.pop(key, "")
            if text and len(text) <= MOST_TEXT and form.pattern.fullmatch(text):
                value.meta[key] = form.read(text)


@dataclass(frozen=True)
class _Form:
    """The text of a kind of note."""

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
    return tuple((int(one), int(other)) for one, other in words)


def _write_pairs(pairs: Pairs) -> str:
    return " ".join(f"{one}:{other}" for one, other in pairs)


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
