"""The machine code that tells a processor with AMX what its tile registers hold. Few machines can run it, but all can read it.

A compiler once left 32 of the 64 bytes that the processor reads unwritten, and every program ended there.
"""

from __future__ import annotations

import platform
import re
import struct
import sys
from pathlib import Path

import pytest

from cvm.runtime import native

LDTILECFG = re.compile(
    rb"\xc4[\x82\xa2\xc2\xe2]\x78\x49([^\xc0])(.{4})", re.DOTALL
)  # with c0 it is tilerelease
RELATIVE = 0x05  # the operand is a distance from the next instruction
REGISTERS = 8
WANTED = (
    bytes([1, *bytes(15)])
    + struct.pack("<16H", *[64] * REGISTERS, *[0] * REGISTERS)
    + bytes([16] * REGISTERS + [0] * REGISTERS)
)

pytestmark = pytest.mark.skipif(
    not native.available()
    or sys.platform != "linux"
    or platform.machine() != "x86_64",
    reason="no engine for x86-64 on Linux here",
)


def segments(data: bytes) -> list[tuple[int, int, int]]:
    """Return for each loaded segment of an ELF file its place in the file, its address and its bytes there."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for number in range(count):
        kind, _, place, address, _, length = struct.unpack_from(
            "<IIQQQQ", data, start + number * size
        )
        if kind == 1:  # PT_LOAD
            found.append((place, address, length))
    return found


def address_of(data: bytes, place: int) -> int:
    return next(
        address + place - begin
        for begin, address, length in segments(data)
        if begin <= place < begin + length
    )


def place_of(data: bytes, address: int) -> int:
    return next(
        begin + address - start
        for begin, start, length in segments(data)
        if start <= address < start + length
    )


def test_all_bytes_of_the_configuration_are_constants():
    data = Path(str(native._module().__file__)).read_bytes()
    found = list(LDTILECFG.finditer(data))
    if not found:
        pytest.skip("an engine without AMX, or with AMX emulated")
    for match in found:
        assert match[1][0] == RELATIVE, "the operand is not a constant"
        (distance,) = struct.unpack("<i", match[2])
        place = place_of(data, address_of(data, match.end()) + distance)
        assert data[place : place + 64] == WANTED
