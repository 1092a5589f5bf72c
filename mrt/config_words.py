"""Puts a config file and its key in the place of the option in errors: what reads models has the names of options alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mrt.config import WEIGHT_SOURCES, Config
from mrt.errors import MrtError
from mrt.option_tables import quoted
from mrt.option_values import shown


@contextmanager
def in_words_of_file(config: Config) -> Iterator[None]:
    """Name the config file and the key in every error that begins with an option whose value is the file's."""
    try:
        yield
    except MrtError as problem:
        if config.file is not None:
            for option, place in _places(config):
                _replace(problem, option, f"{config.file}: {place}")
        raise


def _replace(problem: MrtError, option: str, words: str) -> None:
    pattern = re.compile(rf"^(\s*){option}(?=: | and )")
    problem.reword(lambda text: pattern.sub(lambda it: it[1] + words, text))


def _places(config: Config) -> Iterator[tuple[str, str]]:
    """A pattern of each option, and what the file has in its place, unless the command line has another value."""
    of_file, used = config.model_of_file, config.model
    for option in ("shape", "value", "state"):
        key = f"{option}s"
        given: Mapping[str, Any] = getattr(of_file, key)
        for name, value in given.items():
            if getattr(used, key).get(name) == value:
                text = f"[model] {key}.{quoted(name)} = {shown(value)}"
                yield rf"--{option} {re.escape(name)}(?:=[^:]*)?", text
    if used.values and {**used.values} == {**of_file.values}:
        names = re.escape(", ".join(used.values))
        yield rf"--value {names}", f"[model] values = {shown(used.values)}"
    for key in (*WEIGHT_SOURCES, "outputs"):
        value = getattr(of_file, key)
        if value not in (None, ()) and getattr(used, key) == value:
            flag = f"--{key.replace('_', '-')}"
            text = f"[model] {key} = {shown(value)}"
            yield rf"{flag}(?: {re.escape(str(value))})?", text
    for name in config.quantization.layers:  # which no option has
        layer = f"[layers.{name}]"
        yield re.escape(layer), layer
