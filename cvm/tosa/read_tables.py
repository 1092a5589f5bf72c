"""Tables of the schema from the bytes of a FlatBuffers file that may be hostile: every offset is checked against its size.

What is read in all is bounded by the size of the file as well, because a small file may refer to one long list many times.
"""

from __future__ import annotations

import struct
from typing import Any

from cvm.errors import Malformed
from cvm.tosa.schema import (
    ATTRIBUTES,
    IDENTIFIER,
    OPERATORS,
    TABLES,
    Fields,
)
from cvm.tosa.write_tables import NUMBERS

READINGS = 8  # of each byte, on average
LEAST_WORK = 65536
MOST_TABLES = 2**22

Values = dict[str, Any]


def decode(root: str, data: bytes) -> Values:
    """The values of the root table; a field that is absent is absent."""
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise Malformed(
            "not a TOSA file: bytes 4 to 8 are not 'TOSA'; mrt convert makes programs from models such as .onnx"
        )
    reader = _TableReader(data)
    return reader.table(TABLES[root], reader.target(0))


class _TableReader:
    """The file, and how much of it may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = READINGS * len(data) + LEAST_WORK
        self.tables = 0

    def _number(self, code: str, at: int) -> int:
        self._require(at, struct.calcsize(code))
        (value,) = struct.unpack_from(code, self.data, at)
        return int(value)

    def _require(self, at: int, size: int) -> None:
        """Raise Malformed unless so many bytes lie there and may still be read."""
        if not 0 <= at <= len(self.data) - size:
            raise Malformed(
                f"{size} bytes at byte {at} end outside of the file's {len(self.data)}"
            )
        self.left -= size
        if self.left < 0:
            raise Malformed("the file refers to the same bytes too often")

    def target(self, at: int) -> int:
        """The place to which the offset at this place points."""
        return at + self._number("<I", at)

    def table(self, fields: Fields, at: int) -> Values:
        """The fields that the table has."""
        self.tables += 1
        if self.tables > MOST_TABLES:
            raise Malformed(f"more than {MOST_TABLES:,} tables")
        layout = at - self._number("<i", at)
        length = self._number("<H", layout)
        size = self._number("<H", layout + 2)
        self._require(layout, length)
        self._require(at, size)
        slots = range((length - 4) // 2)
        offsets = [self._number("<H", layout + 4 + 2 * i) for i in slots]
        if any(offsets[len(fields) :]):
            raise Malformed(
                f"the table at byte {at} has a field that TOSA 1.1 does not have"
            )
        values: Values = {}
        for (name, kind), offset in zip(fields, offsets, strict=False):
            if offset:
                width = struct.calcsize(NUMBERS.get(kind, "<I"))
                if offset < 4 or offset + width > size:
                    raise Malformed(
                        f"field {name} of the table at byte {at} stands outside of it"
                    )
                values[name] = self._field(kind, at + offset, values)
        return values

    def _field(self, kind: str, at: int, values: Values) -> Any:
        if kind in NUMBERS:
            value = self._number(NUMBERS[kind], at)
            return bool(value) if kind == "bool" else value
        place = self.target(at)
        if kind == "union":
            return self._attributes(values, place)
        word, _, name = kind.partition(":")
        if word == "table":
            return self.table(TABLES[name], place)
        if word == "tables":
            places = self._places(place)
            return [self.table(TABLES[name], target) for target in places]
        if word == "strings":
            return [self._string(target) for target in self._places(place)]
        if word == "ints":
            raw = self._bytes(place, 4)
            return struct.unpack(f"<{len(raw) // 4}i", raw)
        return self._string(place) if word == "string" else self._bytes(place)

    def _attributes(self, values: Values, at: int) -> Values:
        """The attributes of the operator, whose union has the operator's number as its type; none if it is unknown or has none."""
        number = values.get("op", 0)
        if values.get("attribute_type") != number or number >= len(OPERATORS):
            raise Malformed(
                f"an operator with number {number} has the attributes of another one"
            )
        fields = ATTRIBUTES.get(OPERATORS[number])
        return self.table(fields, at) if fields else {}

    def _bytes(self, at: int, width: int = 1) -> bytes:
        """The bytes after a count of them."""
        size = width * self._number("<I", at)
        self._require(at + 4, size)
        return self.data[at + 4 : at + 4 + size]

    def _string(self, at: int) -> str:
        try:
            return self._bytes(at).decode()
        except UnicodeDecodeError:
            raise Malformed(f"the text at byte {at} is not UTF-8") from None

    def _places(self, at: int) -> list[int]:
        count = len(self._bytes(at, 4)) // 4
        return [self.target(at + 4 + 4 * index) for index in range(count)]
