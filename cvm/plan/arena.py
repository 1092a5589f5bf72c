"""Where buffers lie in the arena: two share bytes only if they never hold a value at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer's size and the first and last step that touch it."""

    size: int
    first: int
    last: int


def assign_offsets(buffers: Sequence[Lifetime]) -> tuple[list[int], int]:
    """A byte offset for each buffer and the size of the whole. The largest come first, each as low as it fits."""
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, Lifetime]] = []  # start, end
    for number in sorted(range(len(buffers)), key=lambda n: (-buffers[n].size, n)):
        buffer = buffers[number]
        size = -(-buffer.size // ALIGNMENT) * ALIGNMENT
        start = 0
        for begin, end, other in sorted(placed, key=lambda item: item[:2]):
            if other.last < buffer.first or buffer.last < other.first:
                continue
            if begin - start >= size:
                break
            start = max(start, end)
        offsets[number] = start
        placed.append((start, start + size, buffer))
    return offsets, max((end for _, end, _ in placed), default=0)
