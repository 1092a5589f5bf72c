"""Every way in which bytes can lie, one by one: all of them are Malformed, with a sentence that says where and what."""

from __future__ import annotations

import re
from operator import setitem

import numpy as np
import pytest

from cvm.errors import Malformed
from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.support.hostile_files import (
    BOOL,
    DATA,
    I4,
    I32,
    MAGIC,
    METADATA_MAGIC,
    RESHAPE,
    assemble,
    canonical,
    described,
    header,
    lie,
    metadata,
    packed_lie,
    padded,
    raw_header,
    section,
)

HONEST = assemble(header())
ENCODED = canonical(header())
HEADER_END = 16 + len(ENCODED)
DATA_START = len(padded(HONEST[:HEADER_END]))
TRUNCATED = [
    *range(HEADER_END + 1),
    DATA_START - 1,
    DATA_START,
    DATA_START + 4,
    DATA_START + 64,
    len(HONEST) - 1,
]


def swapped(old: str, new: str) -> bytes:
    """The honest file with one run of header bytes replaced; both in hexadecimal."""
    before, after = bytes.fromhex(old), bytes.fromhex(new)
    assert ENCODED.count(before) == 1
    return assemble(ENCODED.replace(before, after))


def patched(at: int, new: bytes) -> bytes:
    return HONEST[:at] + new + HONEST[at + len(new) :]


def test_the_honest_file_is_accepted() -> None:
    program = file_format.decode(HONEST)
    assert file_format.encode(program) == HONEST
    result = run(validate(program), {"x": np.array([[-7, 100]], np.int8)})
    assert result["y"].tolist() == [[-3, 10]]  # -3.5 rounds up; 50 is clamped


def test_the_honest_metadata_are_accepted() -> None:
    data = described(lambda meta: None)
    program = file_format.decode(data)
    assert program.metadata is not None
    assert program.metadata.inputs["x"].scale == 0.5
    assert file_format.encode(program) == data


TWO_NAMES = described(lambda meta: meta["inputs"].update(y=[0.5, 0, "data"]))

MALFORMED: dict[str, tuple[bytes, str]] = {
    # The prefix
    "no bytes": (b"", "the file is empty"),
    "another kind of file": (b"\x7fELF" + bytes(60), "not a program"),
    "line ends translated": (HONEST.replace(b"\r\n", b"\n"), "not a program"),
    "a later format version": (
        patched(7, b"\x03"),
        "format version 3; this machine reads versions 1 and 2",
    ),
    "version 2 without a constant of 4 bits": (
        patched(7, b"\x02"),
        "no constant in 4 bits; without one the format version is 1",
    ),
    "a constant of 4 bits in version 1": (
        lie(lambda h: h["constants"][1].__setitem__(0, I4)),
        "dtype code is 5; expected 0..4",
    ),
    "an input of 4 bits": (
        packed_lie(lambda h: h["inputs"][0].__setitem__(1, I4)),
        "dtype code is 5; expected 0..4",
    ),
    "a constant of 3 bits": (
        packed_lie(lambda h: h["constants"][0].__setitem__(0, 6)),
        "dtype code is 6; expected 0..5",
    ),
    "a half of a byte that has no element and is not zero": (
        packed_lie(lambda h: h["constants"][1].__setitem__(1, [3]), 0x21, 0x13),
        "byte 193: the half behind the last element of 4 bits is not zero",
    ),
    "data for more elements of 4 bits": (
        packed_lie(
            lambda h: h["constants"][1].__setitem__(1, [128]), *[1] * 65
        ),
        "64 bytes follow the program and are not a metadata section",
    ),
    "too little data for elements of 4 bits": (
        packed_lie(lambda h: h["constants"][1].__setitem__(1, [129])),
        "the constants with padding reach to byte",
    ),
    "format version 0": (patched(7, b"\x00"), "format version 0"),
    "magic alone": (MAGIC, "the file ends at byte 8"),
    "half a header length": (HONEST[:12], "the file ends at byte 12"),
    "header length beyond the file": (
        patched(8, (10**6).to_bytes(8, "little")),
        "the header with padding reach to",
    ),
    "header length over the limit": (
        patched(8, (2**24 + 1).to_bytes(8, "little")),
        "a header of 16777217 bytes",
    ),
    "header length of 2^64 - 1": (
        patched(8, b"\xff" * 8),
        "a header of 18446744073709551615 bytes",
    ),
    "header length 0": (patched(8, bytes(8)), "byte 16"),
    "header length one short": (
        patched(8, (len(ENCODED) - 1).to_bytes(8, "little")),
        "are left",
    ),
    "header length one long": (
        patched(8, (len(ENCODED) + 1).to_bytes(8, "little")),
        "1 bytes follow the header's map",
    ),
    # The header's encoding
    "overlong integer": (
        swapped("830a83", "83180a83"),
        "10 is written in 1 bytes, not in the fewest",
    ),
    "overlong array length": (
        swapped("830a83000102", "830a9803000102"),
        "not in the fewest",
    ),
    "overlong text length": (
        swapped("856178", "85780178"),
        "not in the fewest",
    ),
    "overlong map length": (
        assemble(b"\xb8\x04" + ENCODED[1:]),
        "not in the fewest",
    ),
    "overlong negative integer": (
        swapped("290a", "38090a"),
        "9 is written in 1 bytes, not in the fewest",
    ),
    "indefinite map": (
        assemble(b"\xbf" + ENCODED[1:] + b"\xff"),
        "indefinite length",
    ),
    "indefinite array": (
        swapped("830a83000102", "830a9f000102ff"),
        "indefinite length",
    ),
    "indefinite text": (swapped("856178", "857f6178ff"), "indefinite length"),
    "tag on an integer": (swapped("830a83", "83c10a83"), "found a tag (0xc1)"),
    "tag on the header": (
        assemble(b"\xd9\xd9\xf7" + ENCODED),
        "expected header (a map), found a tag",
    ),
    "float for an integer": (
        swapped("290a", "29f94900"),
        "expected max (an unsigned integer), found a simple",
    ),
    "true for an integer": (
        swapped("290a", "29f5"),
        "expected max (an unsigned integer), found a simple",
    ),
    "null for an integer": (
        swapped("290a", "29f6"),
        "expected max (an unsigned integer), found a simple",
    ),
    "byte string for a name": (
        swapped("856178", "854178"),
        "expected name of an input (a text), found a byte string",
    ),
    "name that is not UTF-8": (
        swapped("856178", "8561ff"),
        "name of an input is not UTF-8",
    ),
    "name with an overlong UTF-8 form": (
        swapped("856178", "8562c1b8"),
        "name of an input is not UTF-8",
    ),
    "name with a lone surrogate": (
        swapped("856178", "8563eda080"),
        "name of an input is not UTF-8",
    ),
    "name longer than the header": (
        swapped("856178", "8579ffff78"),
        "name of an input has 65535 bytes; at most",
    ),
    "name of 257 bytes": (
        lie(lambda h: setitem(h["inputs"][0], 0, "x" * 257)),
        "257 bytes; at most 256",
    ),
    "reserved head": (swapped("856178", "857c78"), "reserved head"),
    "a second item after the header": (
        assemble(ENCODED + b"\x00"),
        "1 bytes follow the header's map",
    ),
    "header that is an array": (
        assemble(b"\x80"),
        "expected header (a map), found an array",
    ),
    "header nested 100,000 deep": (
        assemble(b"\x81" * 100_000 + b"\x00"),
        "expected header (a map), found an array",
    ),
    "operands nested 100,000 deep": (
        assemble(ENCODED.replace(bytes.fromhex("83000102"), b"\x81" * 100_000)),
        "expected operand (an unsigned integer), found an array",
    ),
    "a count larger than the bytes left": (
        assemble(
            ENCODED.replace(
                bytes.fromhex("830a83"), bytes.fromhex("830a9a00ffffff")
            )
        ),
        "needs 16777215 bytes",
    ),
    "a count of 2^64 - 1": (
        swapped("830a83", "830a9bffffffffffffffff"),
        "operands has 18446744073709551615 entries",
    ),
    "2^20 + 1 instructions": (
        assemble(
            raw_header(
                instructions=bytes.fromhex("9a00100001") + bytes(2**20 + 1)
            )
        ),
        "instructions has 1048577 entries; expected 0..1048576",
    ),
    # The header's keys
    "a key missing": (
        lie(lambda h: h.pop("constants")),
        "header has 3 entries; expected 4",
    ),
    "a key too many": (
        lie(lambda h: h.update({"zeal": 0})),
        "header has 5 entries; expected 4",
    ),
    "an unknown key": (
        lie(lambda h: h.update({"constant0": h.pop("constants")})),
        "key 'constant0' of the header; expected 'constants'",
    ),
    "a key twice": (
        assemble(raw_header("inputs", "inputs", "constants", "instructions")),
        "key 'inputs' of the header; expected 'outputs'",
    ),
    "keys unsorted": (
        assemble(raw_header("outputs", "inputs", "constants", "instructions")),
        "key 'outputs' of the header; expected 'inputs'",
    ),
    "a key that is a number": (
        assemble(b"\xa4\x00" + ENCODED[1:]),
        "expected key of the header (a text)",
    ),
    # Types
    "unknown dtype code": (
        lie(lambda h: setitem(h["inputs"][0], 1, 5)),
        "dtype code is 5; expected 0..4",
    ),
    "negative dtype code": (
        lie(lambda h: setitem(h["inputs"][0], 1, -1)),
        "dtype code is -1; expected 0..4",
    ),
    "dimension 0": (
        lie(lambda h: setitem(h["inputs"][0], 2, [1, 0])),
        "dimension is 0; expected 1..2147483647",
    ),
    "negative dimension": (
        lie(lambda h: setitem(h["inputs"][0], 2, [-1, 2])),
        "dimension is -1; expected 1",
    ),
    "dimension 2^31": (
        lie(lambda h: setitem(h["inputs"][0], 2, [2**31])),
        "dimension is 2147483648; expected 1",
    ),
    "dimension 2^64 - 1": (
        lie(lambda h: setitem(h["inputs"][0], 2, [2**64 - 1])),
        "dimension is 18446744073709551615",
    ),
    "rank 7": (
        lie(lambda h: setitem(h["inputs"][0], 2, [1] * 7)),
        "shape has 7 entries; expected 0..6",
    ),
    "a product of dimensions over 2^31 - 1": (
        lie(lambda h: setitem(h["inputs"][0], 2, [2**16, 2**16])),
        "has 4294967296 elements; at most 2147483647",
    ),
    "a product of dimensions that is 0 modulo 2^64": (
        lie(lambda h: setitem(h["constants"][0], 1, [2**16] * 4)),
        "has 18446744073709551616 elements",
    ),
    "interval end of 65 bits": (
        lie(lambda h: setitem(h["inputs"][0], 4, 2**63)),
        "hi is 9223372036854775808",
    ),
    "input without an interval": (
        lie(lambda h: h["inputs"][0].__delitem__(slice(3, 5))),
        "has 3 entries; expected 5",
    ),
    "output with a third entry": (
        lie(lambda h: h["outputs"][0].append(0)),
        "has 3 entries; expected 2",
    ),
    "constant with an offset": (
        lie(lambda h: h["constants"][0].append(0)),
        "has 3 entries; expected 2",
    ),
    # Instructions
    "unknown opcode": (
        lie(lambda h: setitem(h["instructions"][0], 0, 999)),
        "unknown opcode 999",
    ),
    "opcode 0": (
        lie(lambda h: setitem(h["instructions"][0], 0, 0)),
        "unknown opcode 0",
    ),
    "negative opcode": (
        lie(lambda h: setitem(h["instructions"][0], 0, -10)),
        "opcode is -10",
    ),
    "opcode of 64 bits": (
        lie(lambda h: setitem(h["instructions"][0], 0, 2**64 - 1)),
        "opcode is 18446744073709551615",
    ),
    "opcode as a word": (
        lie(lambda h: setitem(h["instructions"][0], 0, "rescale")),
        "expected opcode",
    ),
    "no operands": (
        lie(lambda h: setitem(h["instructions"][1], 1, [])),
        "operands has 0 entries",
    ),
    "negative operand": (
        lie(lambda h: setitem(h["instructions"][1], 1, [-1])),
        "operand is -1; expected 0..",
    ),
    "operand of 64 bits": (
        lie(lambda h: setitem(h["instructions"][1], 1, [2**63])),
        "operand is 9223372036854775808",
    ),
    "an attribute missing": (
        lie(lambda h: h["instructions"][1][2].pop()),
        "attributes of clamp has 1 entries; expected 2",
    ),
    "an attribute too many": (
        lie(lambda h: h["instructions"][1][2].append(0)),
        "attributes of clamp has 3 entries",
    ),
    "an attribute of 65 bits": (
        lie(lambda h: setitem(h["instructions"][1][2], 1, 2**63)),
        "max is 9223372036854775808",
    ),
    "a dtype attribute out of range": (
        lie(lambda h: setitem(h["instructions"][0][2], 2, 5)),
        "dtype is 5; expected 0..4",
    ),
    "a mode out of range": (
        lie(
            lambda h: setitem(
                h["instructions"],
                1,
                [87, [3], [[1, 1, 1, 1], [0, 0], [0, 0], 2]],
            )
        ),
        "mode is 2; expected 0..1",
    ),
    "a bool attribute that is 1": (
        lie(lambda h: setitem(h["instructions"], 1, [29, [3, 3], [1]])),
        "expected round (true or false), found an unsigned integer (0x01)",
    ),
    "a list for a number": (
        lie(lambda h: setitem(h["instructions"][1][2], 0, [1])),
        "expected min (an unsigned",
    ),
    "a number for a list": (
        lie(lambda h: setitem(h["instructions"], 1, [RESHAPE, [3], [2]])),
        "expected shape (an array)",
    ),
    "13 entries in a list attribute": (
        lie(
            lambda h: setitem(h["instructions"], 1, [RESHAPE, [3], [[1] * 13]])
        ),
        "shape has 13 entries; expected 0..12",
    ),
    "three pads for four sides": (
        lie(
            lambda h: setitem(
                h["instructions"], 1, [70, [3], [[1, 1], [1, 1], [0, 0, 0]]]
            )
        ),
        "pad has 3 entries; expected 4",
    ),
    # Data and padding
    "padding after the header not zero": (
        patched(HEADER_END, b"\x01"),
        f"byte {HEADER_END}: the padding",
    ),
    "last byte of that padding not zero": (
        patched(DATA_START - 1, b"\x01"),
        f"byte {HEADER_END}: the padding",
    ),
    "padding between constants not zero": (
        patched(DATA_START + 4, b"\x01"),
        f"byte {DATA_START + 4}: the padding",
    ),
    "padding after the last constant not zero": (
        patched(len(HONEST) - 1, b"\x01"),
        f"byte {DATA_START + 65}: the padding",
    ),
    "padding after the last constant missing": (
        HONEST[: DATA_START + 65],
        "the constants with padding reach to",
    ),
    "all constant data missing": (
        HONEST[:DATA_START],
        f"the file ends at byte {DATA_START}; the constants",
    ),
    "one constant's data missing": (
        HONEST[: DATA_START + 64],
        f"the file ends at byte {DATA_START + 64}",
    ),
    "a constant larger than the file": (
        lie(lambda h: setitem(h["constants"][0], 1, [2**29])),
        "the constants with padding",
    ),
    "constants of 64 GiB and more": (
        lie(lambda h: h.update(constants=[[I32, [2**31 - 1]]] * 9)),
        "the constants need 77309411328 bytes; at most 68719476736",
    ),
    "a trailing byte": (HONEST + b"\x00", "1 bytes follow the program"),
    "64 trailing zeros": (HONEST + bytes(64), "64 bytes follow the program"),
    "data of a constant that the header does not name": (
        HONEST + DATA[:64],
        "64 bytes follow the program",
    ),
    "the file twice": (
        HONEST + HONEST,
        "follow the program and are not a metadata section",
    ),
    "a bool constant of 2": (
        lie(
            lambda h: h.update(constants=[[BOOL, [3]]]),
            bytes([0, 1, 2]) + bytes(61),
        ),
        "a bool constant holds neither 0 nor 1",
    ),
    # Metadata
    "half a metadata prefix": (
        HONEST + METADATA_MAGIC,
        "8 bytes follow the program and are not a metadata section",
    ),
    "metadata of another version": (
        HONEST + section(metadata()).replace(b"META\x01", b"META\x02"),
        "not a metadata section",
    ),
    "metadata length one short": (
        HONEST + METADATA_MAGIC + bytes([1] + [0] * 7) + b"\xa0\xa0",
        "of 1 bytes, but 2 bytes follow",
    ),
    "metadata length one long": (
        HONEST + METADATA_MAGIC + bytes([3] + [0] * 7) + b"\xa0\xa0",
        "of 3 bytes, but 2 bytes follow",
    ),
    "metadata length over the limit": (
        HONEST + METADATA_MAGIC + b"\xff" * 8,
        "at most 67108864",
    ),
    "metadata with a trailing byte": (
        HONEST + section(canonical(metadata()) + b"\x00"),
        "1 bytes follow the metadata's map",
    ),
    "two metadata sections": (HONEST + 2 * section(metadata()), "bytes follow"),
    "metadata that is empty": (
        HONEST + section(b""),
        "expected metadata (a map), found the end",
    ),
    "metadata without labels": (
        described(lambda m: m.pop("labels")),
        "metadata has 4 entries; expected 5",
    ),
    "metadata with an unknown key": (
        described(lambda m: m.update(labell=m.pop("labels"))),
        "key 'labell' of the metadata; expected 'labels'",
    ),
    "metadata's names unsorted": (
        TWO_NAMES.replace(b"\xa2\x61x", b"\xa2\x61z"),
        "keys of inputs are not in bytewise",
    ),
    "metadata's names twice": (
        TWO_NAMES.replace(b"\xa2\x61x", b"\xa2\x61y"),
        "or one occurs twice",
    ),
    "a scale of 0": (
        described(lambda m: setitem(m["inputs"], "x", [0.0, 0, ""])),
        "scale 0.0; expected a finite number",
    ),
    "a negative scale": (
        described(lambda m: setitem(m["inputs"], "x", [-1.0, 0, ""])),
        "scale -1.0; expected a finite",
    ),
    "an infinite scale": (
        described(lambda m: setitem(m["inputs"], "x", [float("inf"), 0, ""])),
        "scale inf",
    ),
    "a scale that is not a number": (
        described(lambda m: setitem(m["inputs"], "x", [float("nan"), 0, ""])),
        "not a number",
    ),
    "an integer scale": (
        described(lambda m: setitem(m["inputs"], "x", [1, 0, ""])),
        "expected scale (a float)",
    ),
    "a scale in more bytes than needed": (
        HONEST
        + section(
            canonical(metadata()).replace(
                bytes.fromhex("f93800"), bytes.fromhex("fa3f000000")
            )
        ),
        "not in its shortest form",
    ),
    "a zero point of 33 bits": (
        described(lambda m: setitem(m["inputs"], "x", [1.0, 2**31, ""])),
        "zero point is 2147483648",
    ),
    "a negative value number": (
        described(lambda m: m["values"].update({-1: [1.0, 0, ""]})),
        "value number is -1",
    ),
    "a label of 65537 bytes": (
        described(lambda m: m["labels"].append("x" * 65537)),
        "65537 bytes; at most 65536",
    ),
    "a label that is a number": (
        described(lambda m: m["labels"].append(1)),
        "expected text (a text)",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    data, message = MALFORMED[name]
    with pytest.raises(Malformed, match=re.escape(message)):
        file_format.decode(data)


@pytest.mark.parametrize("length", TRUNCATED)
def test_every_truncation_is_malformed(length: int) -> None:
    with pytest.raises(Malformed):
        file_format.decode(HONEST[:length])


def test_every_changed_byte_is_refused_or_another_program() -> None:
    for at in range(len(HONEST)):
        for change in (0x01, 0x20, 0x80, 0xFF):
            data = patched(at, bytes([HONEST[at] ^ change]))
            try:
                program = file_format.decode(data)
            except Malformed:
                continue
            assert file_format.encode(program) == data
            assert file_format.program_id(program) != file_format.program_id(
                HONEST
            )
