"""What an export gives: files by name, and facts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Artifact:
    """The files of a folder, by name, texts and others; numbers that describe them, by what they count."""

    files: Mapping[str, str]
    facts: Mapping[str, int]
    binaries: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def contents(self) -> dict[str, str | bytes]:
        """Every file."""
        return {**self.binaries, **self.files}
