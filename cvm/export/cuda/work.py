"""What the threads of a kernel do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cvm.export.c.nest import indented

WARP = 32


@dataclass(frozen=True)
class KernelWork:
    """How many threads a sample has, and the lines that each follows."""

    threads: int
    lines: Sequence[str]
    header: str | None = None
    """Of the functions that the lines call."""
    meets: bool = False
    """Whether the threads of a warp compute together."""

    def text(self) -> list[str]:
        """The lines, for threads that have work; `t` is a thread's number."""
        if self.meets:
            return list(self.lines)
        head = [
            "const int32_t t = thread();",
            f"if (t >= {self.threads}) return;",
        ]
        return [*head, *self.lines]


def each_place(counts: Sequence[int], lines: Sequence[str]) -> list[str]:
    """The lines at the indices i0, i1, .. that the thread's number stands for."""
    definitions, rest = [], "t"
    for axis in reversed(range(len(counts))):
        index = f"{rest} % {counts[axis]}" if axis else rest
        definitions.append(f"const int32_t i{axis} = {index};")
        rest = f"{rest} / {counts[axis]}"
    return [*definitions, *lines]


def only_below(count: int, lines: Sequence[str]) -> list[str]:
    """The lines, for the first `count` threads."""
    return [f"if (t < {count}) {{", *indented(lines), "}"]


def structure(name: str, fields: Mapping[str, int]) -> str:
    """A value of a structure of C++, field by field."""
    listed = ", ".join(f".{key} = {value}" for key, value in fields.items())
    return f"{name}{{{listed}}}"
