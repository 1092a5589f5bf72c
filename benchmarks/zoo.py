"""The published MXNet architectures: the files of their symbols, and the sizes of their inputs.

It also gives the reason why one is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.models import SHARED

FOLDERS = ("zoo", "zoo_gluoncv")
SUFFIX = "-symbol.json"
COUNT = 41


@dataclass(frozen=True)
class Architecture:
    """A symbol without weights."""

    name: str
    path: Path

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one colour image at the size for which the network was made."""
        size = (
            299
            if self.name in ("inceptionv3", "xception")
            else 32
            if self.name.startswith("cifar")
            else 224
        )
        return {"data": (1, 3, size, size)}


def architectures() -> list[Architecture]:
    """Return the architectures whose files exist, by name."""
    paths = [
        path
        for folder in FOLDERS
        for path in (SHARED / "mxnet" / folder).glob(f"*{SUFFIX}")
    ]
    present = [
        Architecture(path.name.removesuffix(SUFFIX), path) for path in paths
    ]
    return sorted(present, key=lambda architecture: architecture.name)


def absent(found: int) -> str | None:
    """Return a sentence about the missing architectures, if any."""
    if found == COUNT:
        return None
    return f"{COUNT - found} of {COUNT} architectures are absent from {SHARED} (MRT_SHARED may name the folder that holds data/)"
