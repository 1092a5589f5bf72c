"""Where buffers lie: no two that live at once share a byte, whichever way they were placed, and little is wasted."""

from random import Random

import pytest

from cvm.plan.arena import MAX_LOOKS, Lifetime, assign_offsets
from cvm.plan.free_ranges import FreeRanges

ORDERED, SWEPT = MAX_LOOKS, 0  # how many looks lead to which way


def random_buffers(seed: int) -> list[Lifetime]:
    """Most live for a few steps, some for hundreds."""
    random = Random(seed)
    buffers = []
    for first in range(400):
        for _ in range(random.randrange(3)):
            length = random.choice((0, 1, 1, 2, 5, 300))
            size = random.choice((1, 64, 65, 1000, random.randrange(1, 5000)))
            buffers.append(Lifetime(size, first, first + length))
    random.shuffle(buffers)
    return buffers


def aligned(size: int) -> int:
    return (size + 63) // 64 * 64


def most_at_once(buffers: list[Lifetime]) -> int:
    steps = range(max(buffer.last for buffer in buffers) + 1)
    return max(
        sum(aligned(b.size) for b in buffers if b.first <= step <= b.last)
        for step in steps
    )


@pytest.mark.parametrize("looks", [ORDERED, SWEPT])
@pytest.mark.parametrize("seed", range(5))
def test_buffers_that_live_at_once_share_no_byte(seed: int, looks: int) -> None:
    buffers = random_buffers(seed)
    offsets, size = assign_offsets(buffers, looks=looks)
    assert all(offset % 64 == 0 for offset in offsets)
    placed = list(zip(buffers, offsets, strict=True))
    assert all(at + buffer.size <= size for buffer, at in placed)
    for number, (one, at) in enumerate(placed):
        for other, there in placed[:number]:
            if one.first <= other.last and other.first <= one.last:
                assert at + one.size <= there or there + other.size <= at


@pytest.mark.parametrize("seed", range(5))
def test_what_takes_too_many_looks_is_swept_into_an_arena_half_as_large_again(
    seed: int,
) -> None:
    buffers = random_buffers(seed)
    _, size = assign_offsets(buffers, looks=SWEPT)
    assert most_at_once(buffers) <= size <= 1.5 * most_at_once(buffers)


def test_one_look_too_many_is_the_difference() -> None:
    """The second buffer looks at one block and at the first one in it, so two of them take three looks."""
    buffers = [Lifetime(64, 0, 3), Lifetime(128, 1, 2), Lifetime(64, 4, 5)]
    assert assign_offsets(buffers[:2], looks=3) == ([128, 0], 192)
    assert assign_offsets(buffers[:2], looks=2) == ([0, 64], 192)


def test_equal_buffers_are_swept_into_as_many_places_as_live_at_once() -> None:
    buffers = [Lifetime(192, step, step + 2) for step in range(1000)]
    assert assign_offsets(buffers, looks=SWEPT)[1] == 3 * 192


def test_a_range_given_back_joins_its_neighbours() -> None:
    free = FreeRanges()
    starts = [free.take(64) for _ in range(4)]
    assert (starts, free.end) == ([0, 64, 128, 192], 256)
    for start in (0, 128, 64):
        free.give_back(start, 64)
    assert (free.take(192), free.end) == (0, 256)


def test_a_free_range_at_the_end_is_made_larger() -> None:
    free = FreeRanges()
    free.take(64)
    free.give_back(free.take(64), 64)
    assert (free.take(640), free.end) == (64, 704)


def test_what_a_free_range_has_more_stays_free() -> None:
    free = FreeRanges()
    free.give_back(free.take(1024), 1024)
    starts = [free.take(64), free.take(128), free.take(832)]
    assert (starts, free.end) == ([0, 64, 192], 1024)


def test_buffers_share_bytes_only_if_no_step_touches_both() -> None:
    for other in (
        Lifetime(100, 0, 1),
        Lifetime(100, 2, 3),
        Lifetime(100, 0, 9),
        Lifetime(100, 2, 2),
    ):
        offsets, size = assign_offsets([other, Lifetime(64, 1, 2)])
        assert (offsets, size) == ([0, 128], 192)
    for other in (Lifetime(100, 0, 0), Lifetime(100, 3, 3)):
        assert assign_offsets([other, Lifetime(64, 1, 2)]) == ([0, 0], 128)


def test_buffers_that_live_for_hundreds_of_steps_keep_their_bytes() -> None:
    assert assign_offsets([Lifetime(100, 0, 300), Lifetime(64, 300, 301)]) == (
        [0, 128],
        192,
    )


def test_the_arena_tries_other_orders_than_the_largest_first() -> None:
    """The two large ones first, both at 0, leave the small ones, which meet at step 3, two places above: 256 bytes."""
    buffers = [
        Lifetime(64, 0, 3),
        Lifetime(128, 0, 1),
        Lifetime(64, 3, 6),
        Lifetime(128, 4, 7),
    ]
    _, size = assign_offsets(buffers)
    assert size == 192
