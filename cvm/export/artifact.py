"""The result of an export: files by name, and facts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Artifact:
    """The files of a folder by name, texts and binaries, and named numbers that describe them."""

    files: Mapping[str, str]
    facts: Mapping[str, int]
    binaries: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def contents(self) -> dict[str, str | bytes]:
        """Every file."""
        return {**self.binaries, **self.files}
