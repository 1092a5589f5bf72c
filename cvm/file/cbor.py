"""The part of CBOR that program files use, in the core deterministic encoding of RFC 8949 section 4.2.1 and no other.

There is no general decoder: `CborReader` gives only what its caller names, so depth is the caller's and nothing unasked for
is ever built. Every count is compared with the bytes that remain before anything of that size is allocated.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

from cvm.errors import Malformed
from cvm.program.limits import MAX_NAME_BYTES

UNSIGNED, NEGATIVE, TEXT, ARRAY, MAP, SIMPLE = 0, 1, 3, 4, 5, 7
INT64 = (-(2**63), 2**63 - 1)
_KINDS = (
    "an unsigned integer",
    "a negative integer",
    "a byte string",
    "a text",
    "an array",
    "a map",
    "a tag",
    "a simple",
)
_LEAST = {
    1: 24,
    2: 2**8,
    4: 2**16,
    8: 2**32,
}  # least argument that needs so many bytes
_FLOATS = {
    0xF9: struct.Struct(">e"),
    0xFA: struct.Struct(">f"),
    0xFB: struct.Struct(">d"),
}  # shortest first

Value = (
    int
    | bool
    | float
    | str
    | Sequence["Value"]
    | Mapping[int, "Value"]
    | Mapping[str, "Value"]
)


def encode(value: Value) -> bytes:
    """The one encoding of integers of 64 bits, bools, floats but NaN, texts, lists or tuples, and dicts."""
    chunks: list[bytes] = []
    _append(value, chunks)
    return b"".join(chunks)


def _append(value: Value, chunks: list[bytes]) -> None:
    if isinstance(value, bool):
        chunks.append(b"\xf5" if value else b"\xf4")
    elif isinstance(value, int):
        chunks.append(
            _head(UNSIGNED, value)
            if value >= 0
            else _head(NEGATIVE, -1 - value)
        )
    elif isinstance(value, str):
        chunks.append(_text(value))
    elif isinstance(value, float):
        chunks.append(_float(value))
    elif isinstance(value, list | tuple):
        chunks.append(_head(ARRAY, len(value)))
        for element in value:
            _append(element, chunks)
    elif isinstance(value, dict):
        chunks.append(_head(MAP, len(value)))
        for key, element in sorted(
            (encode(key), element) for key, element in value.items()
        ):
            chunks.append(key)
            _append(element, chunks)
    else:
        raise Malformed(
            f"a value of type {type(value).__name__} cannot be written"
        )


def _head(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes((major << 5 | argument,))
    if argument >= 2**64:
        raise Malformed(
            f"an integer of {argument.bit_length()} bits cannot be written; at most 64"
        )
    size = (
        1
        if argument < 2**8
        else 2
        if argument < 2**16
        else 4
        if argument < 2**32
        else 8
    )
    return bytes((major << 5 | 23 + size.bit_length(),)) + argument.to_bytes(
        size, "big"
    )


def _text(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError as problem:
        raise Malformed(
            f"text {value[:64]!r} cannot be written: {problem.reason}"
        ) from None
    return _head(TEXT, len(data)) + data


def _float(value: float) -> bytes:
    if math.isnan(value):
        raise Malformed("not a number cannot be written")
    for initial, layout in _FLOATS.items():
        try:
            data = layout.pack(value)
        except OverflowError:  # too large for the shorter kinds
            continue
        if layout.unpack(data)[0] == value:
            return bytes((initial,)) + data
    raise AssertionError("eight bytes hold every float")


class CborReader:
    """Reads items in order from `data[at:]`; `origin` is the file offset of `data[0]`, for messages only."""

    __slots__ = ("at", "data", "origin")

    def __init__(self, data: bytes, origin: int = 0) -> None:
        self.data = data
        self.origin = origin
        self.at = 0

    def integer(
        self, what: str, low: int = INT64[0], high: int = INT64[1]
    ) -> int:
        """An integer in low..high."""
        start = self.at
        negative = start < len(self.data) and self.data[start] >> 5 == NEGATIVE
        value = (
            -1 - self._head(NEGATIVE, what)
            if negative
            else self._head(UNSIGNED, what)
        )
        if not low <= value <= high:
            raise self.fault(
                f"{what} is {value}; expected {low}..{high}", start
            )
        return value

    def boolean(self, what: str) -> bool:
        """True or false."""
        value = self.data[self.at] if self.at < len(self.data) else -1
        if value not in (0xF4, 0xF5):
            raise self.fault(
                f"expected {what} (true or false), found {self._next_kind()}"
            )
        self.at += 1
        return value == 0xF5

    def real(self, what: str) -> float:
        """A float in its shortest form; not NaN."""
        start = self.at
        layout = (
            _FLOATS.get(self.data[start]) if start < len(self.data) else None
        )
        if layout is None:
            raise self.fault(
                f"expected {what} (a float), found {self._next_kind()}"
            )
        self.at += 1 + layout.size
        if self.at > len(self.data):
            raise self.fault(f"{what} is cut off by the end", start)
        value = float(layout.unpack_from(self.data, start + 1)[0])
        if math.isnan(value) or _float(value) != self.data[start : self.at]:
            raise self.fault(
                f"{what} is a float that is not a number or not in its shortest form",
                start,
            )
        return value

    def text(self, what: str, most: int) -> str:
        """UTF-8 of at most `most` bytes."""
        start = self.at
        size = self._head(TEXT, what)
        if size > most:
            raise self.fault(f"{what} has {size} bytes; at most {most}", start)
        self._require(size, what, start)
        self.at += size
        try:
            return self.data[self.at - size : self.at].decode()
        except UnicodeDecodeError:
            raise self.fault(f"{what} is not UTF-8", start) from None

    def array(self, what: str, least: int, most: int) -> int:
        """The head of an array: how many items the caller must read next."""
        return self._count(ARRAY, what, least, most, 1)

    def map(self, what: str, least: int, most: int) -> int:
        """The head of a map: how many keys and values the caller must read next; `after` checks the keys' order."""
        return self._count(MAP, what, least, most, 2)

    def after(self, previous: bytes, start: int, what: str) -> bytes:
        """The bytes of the key read since `start`, which must sort after those of the key before it."""
        key = self.data[start : self.at]
        if key <= previous:
            raise self.fault(
                f"keys of {what} are not in bytewise order, or one occurs twice",
                start,
            )
        return key

    def key(self, expected: str, what: str) -> None:
        """The next key of a map whose keys are known."""
        start = self.at
        name = self.text(f"key of the {what}", MAX_NAME_BYTES)
        if name != expected:
            raise self.fault(
                f"key {name!r} of the {what}; expected {expected!r}", start
            )

    def end(self, what: str) -> None:
        """Malformed if anything follows."""
        if self.at != len(self.data):
            raise self.fault(f"{len(self.data) - self.at} bytes follow {what}")

    def fault(self, message: str, at: int | None = None) -> Malformed:
        """The error to raise, naming the file offset."""
        return Malformed(
            f"byte {self.origin + (self.at if at is None else at)}: {message}"
        )

    def _count(
        self, major: int, what: str, least: int, most: int, bytes_each: int
    ) -> int:
        start = self.at
        count = self._head(major, what)
        if not least <= count <= most:
            raise self.fault(
                f"{what} has {count} entries; expected {least if least == most else f'{least}..{most}'}",
                start,
            )
        self._require(count * bytes_each, f"{what} of {count} entries", start)
        return count

    def _head(self, major: int, what: str) -> int:
        data, at = self.data, self.at
        if at >= len(data) or data[at] >> 5 != major:
            raise self.fault(
                f"expected {what} ({_KINDS[major]}), found {self._next_kind()}"
            )
        argument = data[at] & 31
        self.at = at + 1
        if argument < 24:
            return argument
        if argument > 27:
            raise self.fault(
                f"{what} has {'indefinite length' if argument == 31 else 'a reserved head'}",
                at,
            )
        size = 1 << (argument - 24)
        self._require(size, what, at)
        self.at += size
        argument = int.from_bytes(data[at + 1 : self.at], "big")
        if argument < _LEAST[size]:
            raise self.fault(
                f"{what}: {argument} is written in {size} bytes, not in the fewest",
                at,
            )
        return argument

    def _require(self, size: int, what: str, start: int) -> None:
        if size > len(self.data) - self.at:
            raise self.fault(
                f"{what} needs {size} bytes; {len(self.data) - self.at} are left",
                start,
            )

    def _next_kind(self) -> str:
        if self.at >= len(self.data):
            return "the end"
        kind = _KINDS[self.data[self.at] >> 5]
        return f"{kind} (0x{self.data[self.at]:02x})"
