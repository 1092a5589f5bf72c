"""Where buffers lie in the arena: two share bytes only if they never hold a value at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
BLOCK = 64  # steps that are looked at together, so that a long program takes little more than linear time
MAX_TRIED = 2000  # buffers; for more, one order must do


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer's size and the first and last step that touch it."""

    size: int
    first: int
    last: int


_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda buffer: (-buffer.size,),
    lambda buffer: (-buffer.size * (buffer.last - buffer.first + 1),),
    lambda buffer: (buffer.first - buffer.last, -buffer.size),
    lambda buffer: (buffer.first, -buffer.size),
)


def assign_offsets(buffers: Sequence[Lifetime]) -> tuple[list[int], int]:
    """A byte offset for each buffer and the size of the whole: the smallest that one of a few orders leads to."""
    orders = _ORDERS if len(buffers) <= MAX_TRIED else _ORDERS[:1]
    tries = (
        _place(
            buffers,
            sorted(range(len(buffers)), key=lambda n: (*order(buffers[n]), n)),
        )
        for order in orders
    )
    return min(tries, key=lambda found: found[1])


def _place(
    buffers: Sequence[Lifetime], order: Iterable[int]
) -> tuple[list[int], int]:
    """One after the other, each as low as it fits beside those already there that live at the same time."""
    offsets, ends = [0] * len(buffers), [0] * len(buffers)
    placed: dict[
        int, list[int]
    ] = {}  # block of steps -> the buffers that live in it
    for number in order:
        buffer = buffers[number]
        size = -(-buffer.size // ALIGNMENT) * ALIGNMENT
        blocks = range(buffer.first // BLOCK, buffer.last // BLOCK + 1)
        near = {other for block in blocks for other in placed.get(block, ())}
        beside = (
            n
            for n in near
            if buffers[n].first <= buffer.last
            and buffer.first <= buffers[n].last
        )
        start = 0
        for begin, end in sorted((offsets[n], ends[n]) for n in beside):
            if begin - start >= size:
                break
            start = max(start, end)
        offsets[number], ends[number] = start, start + size
        for block in blocks:
            placed.setdefault(block, []).append(number)
    return offsets, max(ends, default=0)
