"""The SHA-256 of a zip archive, computed while it is written and without keeping it."""

from __future__ import annotations

import hashlib
import io
from typing import Any


class ArchiveDigest(io.RawIOBase):
    """A file for `zipfile` to write to, that keeps the member being written alone.

    zipfile goes back to the header of that member, once its size is known, then to the end.
    So all that lies before the end is final when it goes there.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._final = 0  # bytes, which are hashed
        self._member = bytearray()
        self._place = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes, within the member."""
        return True

    def tell(self) -> int:
        """The place in the archive."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place of the member, or to the end."""
        assert whence == io.SEEK_SET and offset >= self._final
        if offset == self._final + len(self._member):
            self._digest.update(self._member)
            self._final += len(self._member)
            self._member.clear()
        self._place = offset
        return offset

    def write(self, data: Any) -> int:
        """Write over what is there, and beyond."""
        content = bytes(data)
        start = self._place - self._final
        self._member[start : start + len(content)] = content
        self._place += len(content)
        return len(content)

    def hexdigest(self) -> str:
        """The digest of all that was written."""
        digest = self._digest.copy()
        digest.update(self._member)
        return digest.hexdigest()
