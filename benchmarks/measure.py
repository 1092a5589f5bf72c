"""Who is timed when: everyone once in every round, so that a slow minute of the machine falls on all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

REST = 0.01  # seconds before each turn, in which the threads of the last contender stop spinning and sleep
WARM_UPS = 3

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Turn:
    """One reading, and in how many rounds at most it is taken."""

    read: Callable[[], float]
    most: int


def order(names: Sequence[Name], number: int) -> list[Name]:
    """Who comes when in a round: each begins another place further on, every second one backwards."""
    start = number // 2 % len(names)
    turned = [*names[start:], *names[:start]]
    return turned[::-1] if number % 2 else turned


def alternate(
    turns: Mapping[Name, Turn], rounds: int
) -> dict[Name, list[float]]:
    """The readings by name; a turn that may be taken in fewer rounds is taken in the first ones."""
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
    """Reads the seconds of one call that follows another at once, as in a stream of images: threads up, caches filled."""

    def read() -> float:
        time.sleep(REST)
        call()
        return seconds(call)

    return read


def seconds(call: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def busy(call: Callable[[], Any], repetitions: int = 5) -> float:
    """How many cores the process keeps busy during the call: more than the threads asked for would be unfair."""
    time.sleep(REST)
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repetitions):
        call()
    return (time.process_time() - processor) / (time.perf_counter() - wall)


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while the clock runs."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
