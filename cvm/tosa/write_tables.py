"""Tables of the schema as the bytes of a FlatBuffers file, written forward: what a table refers to stands behind it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from cvm.tosa.schema import IDENTIFIER, TABLES, Fields

NUMBERS = {"bool": "<?", "u8": "<B", "i32": "<i", "u32": "<I", "u64": "<Q"}


def encode(root: str, values: Mapping[str, Any]) -> bytes:
    """The file whose root is this table."""
    writer = _TableWriter()
    writer.out += bytes(4) + IDENTIFIER
    writer.refer(0, writer.table(TABLES[root], values))
    return bytes(writer.out)


class _TableWriter:
    """Bytes so far. Places are counted from the beginning, so alignment is too."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.layouts: dict[bytes, int] = {}

    def refer(self, at: int, target: int) -> None:
        """Write, at a place that was left open, the offset to what stands behind it."""
        struct.pack_into("<I", self.out, at, target - at)

    def table(self, fields: Fields, values: Mapping[str, Any]) -> int:
        """Write a table, then what it refers to; the place of the table."""
        offsets, size = _layout(fields, values)
        layout = struct.pack(
            f"<HH{len(fields)}H", 4 + 2 * len(fields), size, *offsets
        )
        if layout not in self.layouts:
            self._align(2)
            self.layouts[layout] = len(self.out)
            self.out += layout
        self._align(8)
        start = len(self.out)
        self.out += bytes(size)
        distance = start - self.layouts[layout]
        struct.pack_into("<i", self.out, start, distance)
        for (name, kind), offset in zip(fields, offsets, strict=True):
            if offset:
                self._field(kind, values[name], start + offset)
        return start

    def _field(self, kind: str, value: Any, at: int) -> None:
        if kind in NUMBERS:
            struct.pack_into(NUMBERS[kind], self.out, at, value)
        else:
            self.refer(at, self._referent(kind, value))

    def _referent(self, kind: str, value: Any) -> int:
        """Write what stands outside of a table; its place."""
        if kind == "union":
            fields, values = value
            return self.table(fields, values)
        word, _, name = kind.partition(":")
        if word == "table":
            return self.table(TABLES[name], value)
        if word == "tables":
            return self._list([(TABLES[name], table) for table in value])
        if word == "strings":
            return self._list(value)
        if word == "ints":
            return self._bytes(len(value), struct.pack(f"<{len(value)}i", *value), 4)  # fmt: skip
        if word == "string":
            raw = value.encode()
            return self._bytes(len(raw), raw + b"\0", 4)
        return self._bytes(len(value), value, 8)

    def _bytes(self, count: int, raw: bytes, alignment: int) -> int:
        """A count and what it counts, which starts at a multiple of the alignment."""
        while (len(self.out) + 4) % alignment or len(self.out) % 4:
            self.out.append(0)
        start = len(self.out)
        self.out += struct.pack("<I", count) + raw
        return start

    def _list(self, referents: Sequence[Any]) -> int:
        """Strings or tables: a vector of their offsets, then they themselves."""
        start = self._bytes(len(referents), bytes(4 * len(referents)), 4)
        for index, referent in enumerate(referents):
            if isinstance(referent, str):
                target = self._referent("string", referent)
            else:
                target = self.table(*referent)
            self.refer(start + 4 + 4 * index, target)
        return start

    def _align(self, alignment: int) -> None:
        self.out += bytes(-len(self.out) % alignment)


def _layout(fields: Fields, values: Mapping[str, Any]) -> tuple[list[int], int]:
    """Where in its table each field stands, 0 for one that is absent; the size of the table."""
    offsets, end = [], 4
    for name, kind in fields:
        if name not in values:
            offsets.append(0)
            continue
        size = struct.calcsize(NUMBERS.get(kind, "<I"))
        end += -end % size
        offsets.append(end)
        end += size
    return offsets, end
