"""The templates of targets: texts with places to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template


def filled(target: str, name: str, values: Mapping[str, str]) -> str:
    """A template of a target with these texts in their places."""
    place = files(f"cvm.export.{target}").joinpath("templates", name)
    return Template(place.read_text(encoding="ascii")).substitute(values)


def rows_of(facts: Mapping[str, int]) -> str:
    """The rows of a Markdown table with one fact in each."""
    return "\n".join(
        f"| {name.replace('_', ' ')} | {value:,} |"
        for name, value in facts.items()
    )
