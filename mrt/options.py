"""Declares options of a conversion once, as fields of frozen dataclasses.

A declaration has help, allowed values and a default. It is used by the command line
(`mrt/commands/options.py`), the reader of TOML (`mrt/config.py`), the provenance of
programs and a test of `configs/README.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from mrt.option_values import Form

InProvenance = Literal["always", "unless default", "never"]


@dataclass(frozen=True)
class Option:
    """One option.

    Its name is that of the field, of the TOML key and, with hyphens, of the command
    line.
    """

    name: str
    help: str
    default: Any
    allowed: tuple[Any, ...]  # empty where a form says what is allowed
    form: Form | None
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
    form: Form | None = None,
    on_command_line: bool = True,
    in_provenance: InProvenance = "never",
) -> Any:
    """Declare an option as a field of a dataclass: its allowed values, or the form of any."""
    declaration = {
        "help": help,
        "allowed": allowed,
        "form": form,
        "on_command_line": on_command_line,
        "in_provenance": in_provenance,
    }
    return field(default=default, metadata=declaration)


def options_of(declarations: type) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in order."""
    return tuple(
        Option(name=item.name, default=item.default, **item.metadata)
        for item in fields(declarations)
        if item.metadata
    )


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
