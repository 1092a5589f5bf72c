"""Gives memory that nothing uses back to the operating system.

Python keeps what refers to itself, as graphs do, until it looks for it, and the C library keeps
what is freed, in pieces that later stages hardly take up: 600 MB after a detector of 7 MB was
calibrated.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATM = Path("/proc/self/statm")
GROWTH = 64 * 2**20
"""Looking for what nothing uses takes a tenth of a second or more, so less growth is left alone."""
SURPLUS = 32 * 2**20
"""What the C library keeps is given back in a hundredth of a second."""


@contextmanager
def giving_back() -> Iterator[None]:
    """Give memory back behind the block, if the process has grown by more than GROWTH in it (Linux)."""
    before = _resident()
    yield
    if _resident() > before + GROWTH:
        _give_back()


def set_modules_aside() -> None:
    """Let no later search for what nothing uses visit the objects of modules, 100 000 of them.

    It is for a process that does one thing. What exists by now is never freed, so a second call does nothing.
    """
    if not gc.get_freeze_count():
        gc.freeze()


class Surplus:
    """What the C library keeps of the memory that pieces of work have freed."""

    def __init__(self) -> None:
        self._least = _resident()

    def give_back(self) -> None:
        """Give it back, if the process has grown by more than SURPLUS since it was smallest."""
        resident = _resident()
        self._least = min(self._least, resident)
        if resident > self._least + SURPLUS:
            _trim()
            self._least = _resident()


def _resident() -> int:
    """Return the bytes of the process that lie in memory; 0 where nothing shows them, as in a chroot without /proc."""
    try:
        pages = STATM.read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * mmap.PAGESIZE


def _give_back() -> None:
    gc.collect()
    _trim()


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # musl has none
        trim(0)
