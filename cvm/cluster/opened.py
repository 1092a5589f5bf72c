"""What a worker opens once for all blocks: a float model's session, a program's machine."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Source = TypeVar("Source")
Made = TypeVar("Made")
_OPENED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_LOCK = Lock()


def opened(source: Source, make: Callable[[Source], Made]) -> Made:
    """Return `make(source)`, which is made when it is first asked for and kept as long as its source."""
    with _LOCK:  # several threads of a worker would else open the same
        if source not in _OPENED:
            _OPENED[source] = make(source)
        resource: Made = _OPENED[source]
        return resource
