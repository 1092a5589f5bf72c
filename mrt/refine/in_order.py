"""Work shared out among threads whose results are used in order, so that how many there are leaves no trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD = 4  # results that wait to be used, at most


def in_order(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results, in the order of the items; only a few items are taken ahead."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
