"""Declares options of a conversion once, as fields of frozen dataclasses.

A declaration has a type (`mrt/option_values.py`), help, allowed values and a default. It is
used by the command line (`mrt/commands/options.py`), the reader of TOML and its JSON Schema
(`mrt/option_tables.py`), the provenance of programs and a test of `configs/README.md`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

InProvenance = Literal["always", "unless default", "never"]
FLAGS = (True, False)


@dataclass(frozen=True)
class Option:
    """One option.

    Its name is that of the field and, with hyphens, of the command line; it is the first
    of the TOML keys, too, unless these are others. Later keys are former names.
    """

    name: str
    help: str
    default: Any
    allowed: tuple[Any, ...]  # empty where the type decides what is allowed
    keys: tuple[str, ...]
    on_command_line: bool
    in_provenance: InProvenance

    @property
    def flag(self) -> str:
        """The option's name on the command line."""
        return f"--{self.name.replace('_', '-')}"


def option(
    default: Any,
    *,
    help: str,
    allowed: tuple[Any, ...] = (),
    keys: tuple[str, ...] = (),
    on_command_line: bool = True,
    in_provenance: InProvenance = "never",
) -> Any:
    """Declare an option as a field of a dataclass; a default that is a type makes one of it."""
    declaration = {
        "help": help,
        "allowed": allowed,
        "keys": keys,
        "on_command_line": on_command_line,
        "in_provenance": in_provenance,
    }
    if isinstance(default, type):
        return field(default_factory=default, metadata=declaration)
    return field(default=default, metadata=declaration)


def options_of(declarations: type) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in order."""
    options = []
    for declared in fields(declarations):
        if declared.metadata:
            default = None if declared.default is MISSING else declared.default
            keys = declared.metadata["keys"] or (declared.name,)
            metadata = {**declared.metadata, "keys": keys}
            options.append(
                Option(name=declared.name, default=default, **metadata)
            )
    return tuple(options)


def check_options(settings: Any) -> None:
    """Judge the options of a frozen dataclass, and replace each value by what it is read as.

    Raise BadOption, with all that cannot be used.
    """
    from mrt.option_tables import read, table_of

    kind: type = type(settings)
    values = {
        declared.name: value
        for declared in options_of(kind)
        if (value := getattr(settings, declared.name)) is not None
    }
    for name, value in read(table_of(kind), values).items():
        object.__setattr__(settings, name, value)


def provenance_of(settings: Any) -> dict[str, str]:
    """Return the options as a program's provenance holds them, in order of declaration."""
    entries: dict[str, str] = {}
    for declared in options_of(type(settings)):
        value = getattr(settings, declared.name)
        if declared.in_provenance == "never":
            continue
        if (
            declared.in_provenance == "unless default"
            and value == declared.default
        ):
            continue
        text = str(value)
        entries[declared.name] = (
            text.lower() if isinstance(value, bool) else text
        )
    return entries
