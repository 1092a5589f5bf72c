"""The settings with the precisions found, as a config file: converting by it gives the same program without a search."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrt.quantize import QuantizeOptions

NESTED = (
    "layers",
    "inputs",
)  # tables of tables; inside others a table is written in one line
PATHS = (
    ("model", "path"),
    ("model", "params"),
    ("model", "labels"),
    ("calibration", "data"),
    ("evaluation", "data"),
)


def settings_text(
    content: Mapping[str, Any], options: QuantizeOptions, *, folder: Path, title: str
) -> str:
    """TOML of the settings `content` (paths absolute) with these options in place of its own; paths relative to `folder`."""
    tables = {
        name: dict(item) if isinstance(item, Mapping) else item
        for name, item in content.items()
    }
    for table, key in PATHS:
        if key in tables.get(table, {}):
            tables[table][key] = _relative(Path(tables[table][key]), folder)
    own = {
        name: value
        for name, value in asdict(options).items()
        if name != "layers" and value is not None
    }
    kept = {
        name: value
        for name, value in tables.get("quantization", {}).items()
        if name not in {*own, "bits", "stream_bits"}
    }
    tables["quantization"] = {**kept, **own}
    tables["layers"] = {
        name: {key: value for key, value in asdict(bits).items() if value is not None}
        for name, bits in sorted(options.layers.items())
    }
    return "\n".join([f"# {title}", *_tables(tables, ())]) + "\n"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _tables(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """A table's own keys first, then the tables inside it."""
    inline = bool(path) and path[0] not in NESTED
    plain = {
        key: value
        for key, value in content.items()
        if inline or not isinstance(value, Mapping)
    }
    if path and (plain or not content):
        yield f"\n[{'.'.join(map(_key, path))}]"
    yield from (f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in content.items():
        if key not in plain:
            yield from _tables(value, (*path, key))


def _key(name: str) -> str:
    bare = name and all(
        letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name
    )
    return name if bare else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}"
    return repr(value)


def _text(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for what lies beyond 16 bits, and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
