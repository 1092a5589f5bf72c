"""Writes the settings with the precisions found as a config file.

Converting with that file gives the same program without a search. If the settings were
read from a file, its comments and its order are kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Item, Table

from mrt.quantize import QuantizeOptions

NESTED = ("layers", "inputs")
"""Tables of tables; a table inside any other table is written in one line."""
PATHS = (
    ("model", "path"),
    ("model", "params"),
    ("model", "labels"),
    ("calibration", "data"),
    ("evaluation", "data"),
)
TITLE = "Converting by "  # the beginning of the first line


def settings_text(
    content: Mapping[str, Any],
    options: QuantizeOptions,
    *,
    folder: Path,
    title: str,
    former: str = "",
) -> str:
    """Return the TOML of the settings `content` (paths absolute), with these options.

    The options replace those of `content`. Paths become relative to `folder`. `former`
    is the text of the file, if any, from which the settings come.
    """
    document = tomlkit.parse(_without_title(former))
    for name, entries in _complete(content, options, folder).items():
        _update(document, name, entries, nested=name in NESTED)
    return f"# {title}\n\n{tomlkit.dumps(document).lstrip()}"


def _complete(
    content: Mapping[str, Any], options: QuantizeOptions, folder: Path
) -> dict[str, Any]:
    """Return the tables of the file: `content` with relative paths and with the options."""
    tables = {name: dict(entries) for name, entries in content.items()}
    for table, key in PATHS:
        if key in tables.get(table, {}):
            tables[table][key] = _relative(Path(tables[table][key]), folder)
    quantization = _without_none(asdict(options))
    del quantization["layers"]
    replaced = {
        *quantization,
        "bits",
        "stream_bits",
        "channelwise_bits",
        "compared_bits",
    }
    kept = {
        name: value
        for name, value in tables.get("quantization", {}).items()
        if name not in replaced
    }
    tables["quantization"] = {**kept, **quantization}
    tables["layers"] = {
        name: _without_none(asdict(bits))
        for name, bits in sorted(options.layers.items())
    }
    return tables


def _update(
    table: tomlkit.TOMLDocument | Table, name: str, value: Any, *, nested: bool
) -> None:
    """Set one entry; in a table that exists already, only the entries that differ."""
    former = table.get(name)
    if isinstance(value, Mapping) and isinstance(former, Table):
        for key in [key for key in former if key not in value]:
            del former[key]
        for key, entry in value.items():
            _update(former, key, entry, nested=nested)
    elif former != value:
        toml_item = _item(value, inline=not nested and isinstance(table, Table))
        if isinstance(former, Item):
            toml_item.trivia.comment = former.trivia.comment
            toml_item.trivia.comment_ws = former.trivia.comment_ws
        table[name] = toml_item


def _item(value: Any, *, inline: bool) -> Item:
    if not isinstance(value, Mapping):
        toml_item: Item = tomlkit.item(
            list(value) if isinstance(value, tuple) else value
        )
        return toml_item
    table: InlineTable | Table = (
        tomlkit.inline_table() if inline else tomlkit.table()
    )
    for key, entry in value.items():
        nested = isinstance(entry, Mapping) and all(
            isinstance(inner, Mapping) for inner in value.values()
        )
        table[key] = _item(entry, inline=not nested)
    return table


def _without_title(text: str) -> str:
    """Return the text of a file without the title that an earlier search gave it."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith(f"# {TITLE}") else text


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _without_none(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}
