"""Where buffers lie in the arena: two share bytes only if they never hold a value at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain

from cvm.plan.free_ranges import FreeRanges

ALIGNMENT = 64
BLOCK = 64  # steps that are looked at together, so that a long program takes little more than linear time
MAX_TRIED = 2000  # buffers; for more, one order must do
MAX_LOOKS = 2**22  # at buffers and blocks in one order, if 2900 live at once


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


def assign_offsets(
    buffers: Sequence[Lifetime], *, looks: int = MAX_LOOKS
) -> tuple[list[int], int]:
    """A byte offset for each buffer and the size of the arena: the smallest that one of a few orders leads to.

    Where every order takes more than `looks`, the buffers are placed in the order of their first steps, which takes little
    more than linear time and a larger arena.
    """
    orders = _ORDERS if len(buffers) <= MAX_TRIED else _ORDERS[:1]
    numbers = range(len(buffers))
    tries = (
        _place(
            buffers,
            sorted(numbers, key=lambda n: (*order(buffers[n]), n)),
            looks,
        )
        for order in orders
    )
    placements = [placed for placed in tries if placed]
    return min(placements or [_sweep(buffers)], key=lambda placed: placed[1])


def _place(
    buffers: Sequence[Lifetime], order: Iterable[int], looks: int
) -> tuple[list[int], int] | None:
    """Place the buffers in this order, each as low as it fits beside those already placed that live at the same time.

    None if that takes too many looks.
    """
    offsets, ends = [0] * len(buffers), [0] * len(buffers)
    living: dict[int, list[int]] = {}  # buffers, by block of steps
    beginning: dict[int, list[int]] = {}  # those that begin there
    for number in order:
        buffer = buffers[number]
        blocks = range(buffer.first // BLOCK, buffer.last // BLOCK + 1)
        near = [
            living.get(blocks[0], []),
            *(beginning.get(block, []) for block in blocks[1:]),
        ]
        looks -= len(blocks) + sum(map(len, near))
        if looks < 0:
            return None
        beside = (
            n
            for n in chain.from_iterable(near)
            if buffers[n].first <= buffer.last
            and buffer.first <= buffers[n].last
        )
        size = _aligned(buffer.size)
        start = 0
        for begin, end in sorted((offsets[n], ends[n]) for n in beside):
            if begin - start >= size:
                break
            start = max(start, end)
        offsets[number], ends[number] = start, start + size
        beginning.setdefault(blocks[0], []).append(number)
        for block in blocks:
            living.setdefault(block, []).append(number)
    return offsets, max(ends, default=0)


def _sweep(buffers: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Place the buffers in the order of their first steps, each where a buffer whose last step is past has left room."""
    offsets = [0] * len(buffers)
    free = FreeRanges()
    ending: list[tuple[int, int]] = []  # a heap of last steps and numbers
    for number in sorted(range(len(buffers)), key=lambda n: buffers[n].first):
        buffer = buffers[number]
        while ending and ending[0][0] < buffer.first:
            past = heappop(ending)[1]
            free.give_back(offsets[past], _aligned(buffers[past].size))
        offsets[number] = free.take(_aligned(buffer.size))
        heappush(ending, (buffer.last, number))
    return offsets, free.end


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
