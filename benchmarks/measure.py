"""Takes turns at timing: each contender once in every round.

So a slow minute of the machine affects all alike.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

# Seconds before each turn, in which the threads of the last contender stop spinning and sleep.
REST = 0.01
# Seconds of untimed calls after it: a processor of a virtual machine takes a millisecond to wake up.
WAKING = 0.004
WARM_UPS = 3

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Turn:
    """One reading, and the most rounds in which it is taken."""

    read: Callable[[], float]
    most: int


def order(names: Sequence[Name], number: int) -> list[Name]:
    """Return the order of a round.

    Each round begins one place further on than the last of its direction; every second
    one is backwards.
    """
    start = number // 2 % len(names)
    rotated = [*names[start:], *names[:start]]
    return rotated[::-1] if number % 2 else rotated


def alternate(
    turns: Mapping[Name, Turn], rounds: int
) -> dict[Name, list[float]]:
    """Return the readings by name; a turn with fewer rounds is taken in the first ones."""
    readings: dict[Name, list[float]] = {name: [] for name in turns}
    with _no_collection():
        for number in range(rounds):
            for name in order(
                [name for name, turn in turns.items() if number < turn.most],
                number,
            ):
                readings[name].append(turns[name].read())
    return readings


def warmed(call: Callable[[], Any]) -> Callable[[], float]:
    """Return a reader of the seconds of a call that directly follows others.

    As in a stream of images, its threads are awake and its caches filled.
    """

    def read() -> float:
        time.sleep(REST)
        start = time.perf_counter()
        call()
        while time.perf_counter() - start < WAKING:
            call()
        return seconds(call)

    return read


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def busy(call: Callable[[], Any], repetitions: int = 5) -> float:
    """Return how many cores the process keeps busy during the call.

    More than the threads asked for would be unfair.
    """
    time.sleep(REST)
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repetitions):
        call()
    return (time.process_time() - processor) / (time.perf_counter() - wall)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Suspend garbage collection while the clock runs."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
