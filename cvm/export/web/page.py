"""The page of an export to the web: style, modules and program in one file of HTML, which reads nothing else."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from importlib.resources import files
from string import Template

PARTS = (
    "sha256.js",
    "tensors.js",
    "receipt.js",
    "machine.js",
    "program.js",
    "files.js",
    "pictures.js",
    "page.js",
)
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=const |function |async |class )", re.MULTILINE
)


def page(name: str, instructions: int, modules: Mapping[str, str]) -> str:
    """The text of the page; `modules` are the files of the package by name."""
    own_parts = {part: _text(part) for part in PARTS if part not in modules}
    texts = [({**modules, **own_parts})[part] for part in PARTS]
    return Template(_text("index.html")).substitute(
        NAME=html.escape(name),
        INSTRUCTIONS=f"{instructions:,}",
        STYLE=_text("style.css"),
        SCRIPT="\n".join(map(joinable, texts)),
    )


def joinable(module: str) -> str:
    """A module as part of one script, in which all names are in scope."""
    return _EXPORT.sub("", _IMPORT.sub("", module))


def _text(name: str) -> str:
    place = files("cvm.export.web").joinpath("page", name)
    return place.read_text(encoding="ascii")
