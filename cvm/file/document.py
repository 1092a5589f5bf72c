"""The JSON of receipts and traces: one text for one content when written, strict and bounded when read.

There is no general decoder: `DocumentReader` gives only what its caller names, so that nothing unasked for is ever built,
and a file takes little more memory than it has bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cvm.errors import BadInput, brief
from cvm.program.limits import MAX_OUTPUTS

MAX_BYTES = 2**28
MAX_TEXT_BYTES = 2**12  # in the file; a name's 256 bytes may all be escaped
KEYS = f"must have texts of at most {MAX_TEXT_BYTES} bytes as keys"
_SPACE = re.compile(rb"[ \t\n\r]*")
_TEXT = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_COUNT = re.compile(rb"(?:0|[1-9][0-9]{0,99})(?![0-9.eE])")
_HEX_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_FORMAT = re.compile(rb'"format"\s*:\s*"(cvm-[^"\\]{0,99})"')

Read = Callable[[str], Any]
"""Reads one value; the text is where it stands, for messages."""


def dump(content: Any) -> str:
    """Sorted keys, ASCII, one item a line, a newline at the end."""
    return (
        json.dumps(
            content,
            sort_keys=True,
            ensure_ascii=True,
            allow_nan=False,
            indent=1,
        )
        + "\n"
    )


def dump_compact(content: Any) -> bytes:
    """The bytes that are hashed: sorted keys, ASCII, no white space."""
    return json.dumps(
        content,
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
    ).encode()


class DocumentReader:
    """Reads one file from left to right; BadInput names the file, and the place in it, of whatever is not expected."""

    __slots__ = ("_at", "_data", "_name", "_other")

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name, self._at = data, name, 0
        self._other = ""  # what to say of a file that states no format of ours
        if len(data) > MAX_BYTES:
            raise BadInput(
                f"{name}: {len(data)} bytes; at most {MAX_BYTES} are read"
            )

    def document(
        self,
        formats: Sequence[str],
        required: Mapping[str, Read],
        optional: Mapping[str, Read],
    ) -> dict[str, Any]:
        """The object that the file is, with a `format` among these and exactly these other keys."""

        def read_format(where: str) -> str:
            content = self._text(where, "must be a text")
            self._require_format(content, formats)
            return content

        stated = _FORMAT.search(self._data)
        if stated:  # first: the rest would only list how another kind differs
            self._require_format(stated[1].decode("utf-8", "replace"), formats)
        elif not self._data.lstrip().startswith(b"{"):
            rule = f"must be an object of JSON, of format {formats[-1]}"
            raise self.fault("", rule)
        else:
            kind = formats[-1].split("-")[1]
            self._other = f"is not a {kind} (format {formats[-1]}): "
        content = self.fields("", {"format": read_format, **required}, optional)
        if self._skip_space() != len(self._data):
            raise self._broken("something follows the object")
        return content

    def fields(
        self,
        where: str,
        required: Mapping[str, Read],
        optional: Mapping[str, Read],
    ) -> dict[str, Any]:
        """An object with exactly these keys."""
        values: dict[str, Any] = {}
        for key in self._keys(where):
            read = required.get(key) or optional.get(key)
            if read is None:
                other = "" if where else self._other
                problem = f"{other}has the unknown key {brief(key)}"
                raise self.fault(where, problem)
            values[key] = read(f"{where}.{key}" if where else key)
        for key in required:
            if key not in values:
                raise self.fault(where, f"lacks '{key}'")
        return values

    def digests_by_name(self, where: str) -> dict[str, bytes]:
        """An object from names to digests."""
        digests: dict[str, bytes] = {}
        for key in self._keys(where):
            if len(digests) == MAX_OUTPUTS:
                raise self.fault(where, f"has more than {MAX_OUTPUTS} names")
            digests[key] = self.digest(f"{where}[{key!r}]")
        return digests

    def items(self, where: str, read: Read) -> list[Any]:
        """A list of what `read` gives."""
        if not self._take(b"["):
            raise self.fault(where, "must be a list")
        values: list[Any] = []
        if self._take(b"]"):
            return values
        while True:
            values.append(read(f"{where}[{len(values)}]"))
            if self._take(b"]"):
                return values
            self._require(b",", "',' or ']'")

    def digest(self, where: str) -> bytes:
        """A SHA-256 as 64 lower-case hexadecimal digits."""
        rule = "must be 64 lower-case hexadecimal digits"
        text = self._text(where, rule)
        if not _HEX_DIGEST.match(text):
            raise self.fault(where, rule)
        return bytes.fromhex(text)

    def count(self, where: str) -> int:
        """An integer >= 0."""
        match = _COUNT.match(self._data, self._skip_space())
        if not match:
            rule = (
                "must be an integer that is not negative, of at most 100 digits"
            )
            raise self.fault(where, rule)
        self._at = match.end()
        return int(match[0])

    def text(self, where: str) -> str:
        """A text."""
        rule = f"must be a text of at most {MAX_TEXT_BYTES} bytes"
        return self._text(where, rule)

    def fault(self, where: str, rule: str) -> BadInput:
        """The error to raise: which part of which file breaks which rule."""
        return BadInput(f"{self._name}: {where}{' ' if where else ''}{rule}")

    def _keys(self, where: str) -> Iterator[str]:
        """The keys of an object; the caller reads the value of each before the next key."""
        if not self._take(b"{"):
            raise self.fault(where, "must be an object")
        seen: set[str] = set()
        if self._take(b"}"):
            return
        while True:
            key = self._text(where, KEYS)
            if key in seen:
                raise self._broken("an object has the same key twice")
            seen.add(key)
            self._require(b":", "':'")
            yield key
            if self._take(b"}"):
                return
            self._require(b",", "',' or '}'")

    def _text(self, where: str, rule: str) -> str:
        start = self._skip_space()
        match = _TEXT.match(self._data, start, start + MAX_TEXT_BYTES)
        if not match:
            raise self.fault(where, rule)
        token = match[0]
        self._at = match.end()
        try:
            return (
                str(json.loads(token))
                if b"\\" in token
                else token[1:-1].decode()
            )
        except ValueError as problem:
            raise self._broken(str(problem)) from None

    def _require_format(self, stated: str, formats: Sequence[str]) -> None:
        if stated not in formats:
            expected = " or ".join(map(repr, formats))
            raise self.fault(
                "format", f"is {brief(stated)}; expected {expected}"
            )

    def _skip_space(self) -> int:
        space = _SPACE.match(self._data, self._at)
        assert space is not None
        self._at = space.end()
        return self._at

    def _take(self, byte: bytes) -> bool:
        if not self._data.startswith(byte, self._skip_space()):
            return False
        self._at += 1
        return True

    def _require(self, byte: bytes, expected: str) -> None:
        if not self._take(byte):
            raise self._broken(f"expected {expected}")

    def _broken(self, problem: str) -> BadInput:
        return BadInput(
            f"{self._name}: not the JSON of a receipt or trace: byte {self._at}: {problem}"
        )
