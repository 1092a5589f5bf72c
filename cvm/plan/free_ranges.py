"""The free bytes of an arena that grows: taken and given back in constant time, however many pieces there are."""

from __future__ import annotations


class FreeRanges:
    """Ranges of bytes that hold nothing, no two of them adjacent; `end` is where the arena ends.

    They lie in classes by the number of bits of their size: in a higher class than its own, any range holds a size.
    """

    def __init__(self) -> None:
        self.end = 0
        self._sizes: dict[int, int] = {}  # by start
        self._starts: dict[int, int] = {}  # by end
        self._classes: dict[int, dict[int, None]] = {}  # starts, by bits

    def take(self, size: int) -> int:
        """Where to put so many bytes: in a free range, else at the end of the arena, which grows."""
        start = self._find(size)
        if start is None:
            start = self._starts.get(self.end, self.end)
            self.end = max(self.end, start + size)
            if start in self._sizes:
                self._remove(start)
        else:
            rest = self._remove(start) - size
            if rest:
                self._add(start + size, rest)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free bytes that were taken, and join them with free neighbours."""
        before, after = self._starts.get(start), start + size
        if after in self._sizes:
            size += self._remove(after)
        if before is not None:
            size += self._remove(before)
            start = before
        self._add(start, size)

    def _find(self, size: int) -> int | None:
        """A range that is large enough: the last of its own class if it happens to be, else the last of a higher one."""
        own_class = size.bit_length()
        for bits in range(own_class, self.end.bit_length() + 1):
            starts = self._classes.get(bits)
            if starts:
                start = next(reversed(starts))
                if self._sizes[start] >= size:
                    return start
        return None

    def _add(self, start: int, size: int) -> None:
        self._sizes[start], self._starts[start + size] = size, start
        self._classes.setdefault(size.bit_length(), {})[start] = None

    def _remove(self, start: int) -> int:
        """The size of the range that was there."""
        size = self._sizes.pop(start)
        del self._starts[start + size]
        del self._classes[size.bit_length()][start]
        return size
