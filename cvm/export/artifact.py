"""What an export gives: files by name, and facts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Artifact:
    """The files of a folder, by name, and numbers that describe them, by what they count."""

    files: Mapping[str, str]
    facts: Mapping[str, int]
