"""The CBOR we write is core deterministic encoding, and the CBOR we read is nothing else. cbor2 is the judge."""

import math
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvm.errors import Malformed
from cvm.file import cbor


def read_any(reader: cbor.CborReader) -> Any:
    """Ask the strict reader for whatever the next head announces."""
    initial = reader.data[reader.at] if reader.at < len(reader.data) else 0
    if initial >> 5 == cbor.TEXT:
        return reader.text("text", 2**16)
    if initial >> 5 == cbor.ARRAY:
        return [
            read_any(reader) for _ in range(reader.array("array", 0, 2**16))
        ]
    if initial >> 5 == cbor.MAP:
        return read_map(reader)
    if initial in (0xF4, 0xF5):
        return reader.boolean("truth")
    if initial >> 5 == cbor.SIMPLE:
        return reader.real("real")
    return reader.integer("integer", -(2**64), 2**64 - 1)


def read_map(reader: cbor.CborReader) -> dict[Any, Any]:
    found, previous = {}, b""
    for _ in range(reader.map("map", 0, 2**16)):
        start = reader.at
        key = (
            reader.text("key", 2**16)
            if reader.data[start : start + 1] >= b"\x60"
            else reader.integer("key", 0)
        )
        previous = reader.after(previous, start, "map")
        found[key] = read_any(reader)
    return found


def decode(data: bytes) -> Any:
    reader = cbor.CborReader(data)
    value = read_any(reader)
    reader.end("the value")
    return value


# RFC 8949 appendix A, the rows that are in our subset.
VECTORS: list[tuple[Any, str]] = [
    (0, "00"),
    (1, "01"),
    (10, "0a"),
    (23, "17"),
    (24, "1818"),
    (25, "1819"),
    (100, "1864"),
    (1000, "1903e8"),
    (1000000, "1a000f4240"),
    (1000000000000, "1b000000e8d4a51000"),
    (18446744073709551615, "1bffffffffffffffff"),
    (-18446744073709551616, "3bffffffffffffffff"),
    (-1, "20"),
    (-10, "29"),
    (-100, "3863"),
    (-1000, "3903e7"),
    (0.0, "f90000"),
    (-0.0, "f98000"),
    (1.0, "f93c00"),
    (1.1, "fb3ff199999999999a"),
    (1.5, "f93e00"),
    (65504.0, "f97bff"),
    (100000.0, "fa47c35000"),
    (3.4028234663852886e38, "fa7f7fffff"),
    (1.0e300, "fb7e37e43c8800759c"),
    (5.960464477539063e-8, "f90001"),
    (0.00006103515625, "f90400"),
    (-4.0, "f9c400"),
    (-4.1, "fbc010666666666666"),
    (math.inf, "f97c00"),
    (False, "f4"),
    (True, "f5"),
    ("", "60"),
    ("a", "6161"),
    ("IETF", "6449455446"),
    ("\u00fc", "62c3bc"),
    ("\u6c34", "63e6b0b4"),
    ("\U00010151", "64f0908591"),
    ([], "80"),
    ([1, 2, 3], "83010203"),
    ([1, [2, 3], [4, 5]], "8301820203820405"),
    (
        list(range(1, 26)),
        "98190102030405060708090a0b0c0d0e0f101112131415161718181819",
    ),
    ({}, "a0"),
    ({1: 2, 3: 4}, "a201020304"),
    ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
    (
        {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"},
        "a56161614161626142616361436164614461656145",
    ),
]


@pytest.mark.parametrize(("value", "data"), VECTORS)
def test_vectors_of_rfc_8949_appendix_a(value: Any, data: str) -> None:
    assert cbor.encode(value).hex() == data
    decoded = decode(bytes.fromhex(data))
    assert decoded == value
    assert type(decoded) is type(value)


def test_keys_are_sorted_bytewise_by_their_encodings() -> None:
    # RFC 8949 section 4.2.1: 10, 100 and "z", "aa" in this order, whatever the order given.
    assert cbor.encode({100: 0, 10: 0}).hex() == "a20a00186400"
    assert cbor.encode({"aa": 0, "z": 0}).hex() == "a2617a0062616100"


REFUSED: list[tuple[str, str, str]] = [
    ("1817", "", "written in 1 bytes, not in the fewest"),
    ("1900ff", "", "written in 2 bytes, not in the fewest"),
    ("1a0000ffff", "", "written in 4 bytes, not in the fewest"),
    ("1b00000000ffffffff", "", "written in 8 bytes, not in the fewest"),
    ("3817", "a negative integer", "written in 1 bytes, not in the fewest"),
    ("7803616263", "a text length", "written in 1 bytes, not in the fewest"),
    ("980100", "an array length", "written in 1 bytes, not in the fewest"),
    ("1c", "reserved additional information 28", "reserved head"),
    ("1e", "reserved additional information 30", "reserved head"),
    ("1f", "", "indefinite length"),
    ("7f61616162ff", "a text in chunks", "indefinite length"),
    ("9f00ff", "an array without a length", "indefinite length"),
    ("bf6161f5ff", "a map without a length", "indefinite length"),
    ("18", "an argument cut off", "needs 1 bytes; 0 are left"),
    ("1b0102030405", "an argument cut off", "needs 8 bytes; 5 are left"),
    ("40", "a byte string", "expected integer"),
    ("c000", "a tag", "expected integer"),
    ("d9d9f780", "the self-described tag", "expected integer"),
    ("f6", "null", "expected real (a float)"),
    ("f7", "undefined", "expected real (a float)"),
    ("f0", "an unassigned simple value", "expected real (a float)"),
    ("f814", "false in two bytes", "expected real (a float)"),
    ("ff", "a break alone", "expected real (a float)"),
    ("f97e00", "not a number", "not a number"),
    ("fa7fc00000", "not a number in four bytes", "not a number"),
    ("fa3f800000", "1.0 in four bytes", "not in its shortest form"),
    ("fb3ff0000000000000", "1.0 in eight bytes", "not in its shortest form"),
    (
        "fb40f86a0000000000",
        "100000.0 in eight bytes",
        "not in its shortest form",
    ),
    ("f93c", "a float cut off", "cut off"),
    ("61ff", "a byte that UTF-8 never has", "not UTF-8"),
    ("62c080", "overlong UTF-8", "not UTF-8"),
    ("63eda080", "a lone surrogate", "not UTF-8"),
    ("6361", "a text longer than the bytes left", "needs 3 bytes; 1 are left"),
    ("820100ff", "a byte too many", "1 bytes follow"),
    ("9901000000", "more items than bytes left", "needs 256 bytes; 2 are left"),
    ("a20100", "more keys than bytes left", "needs 4 bytes; 2 are left"),
    ("a203000100", "keys in descending order", "not in bytewise order"),
    ("a201000100", "a key twice", "occurs twice"),
    (
        "a2626161006162 00".replace(" ", ""),
        "longer text before shorter",
        "not in bytewise order",
    ),
    ("", "nothing", "found the end"),
]


@pytest.mark.parametrize(("data", "why", "message"), REFUSED)
def test_refused(data: str, why: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode(bytes.fromhex(data))
    assert message in str(caught.value), why


def test_counts_are_refused_before_anything_is_made() -> None:
    reader = cbor.CborReader(bytes.fromhex("9b7fffffffffffffff"))
    with pytest.raises(Malformed, match="has 9223372036854775807 entries"):
        reader.array("array", 0, 2**20)


def test_messages_name_the_offset_in_the_file() -> None:
    reader = cbor.CborReader(b"\x00\x61", origin=16)
    reader.integer("first")
    with pytest.raises(
        Malformed,
        match=r"byte 17: expected second \(an unsigned integer\), found a text \(0x61\)",
    ):
        reader.integer("second")


@pytest.mark.parametrize(
    "value", [2**64, -(2**64) - 1, math.nan, "\ud800", None, b"bytes", [1, {2}]]
)
def test_what_has_no_encoding_is_not_encoded(value: Any) -> None:
    with pytest.raises(Malformed, match="cannot be written"):
        cbor.encode(value)


INTEGERS = st.integers(-(2**64), 2**64 - 1)
SCALARS = (
    INTEGERS | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=30)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda item: (
        st.lists(item, max_size=30)
        | st.dictionaries(st.text(max_size=8), item, max_size=30)
        | st.dictionaries(st.integers(0, 2**63 - 1), item, max_size=8)
    ),
    max_leaves=40,
)


def same(a: Any, b: Any) -> bool:
    """Equal with equal types, so that 0, False, 0.0 and -0.0 differ."""
    return repr(a) == repr(b)


def ordered(value: Any) -> Any:
    """The same value with dictionaries in the order of the encoding."""
    if isinstance(value, dict):
        return {
            key: ordered(value[key]) for key in sorted(value, key=cbor.encode)
        }
    return (
        [ordered(item) for item in value] if isinstance(value, list) else value
    )


@settings(deadline=None)
@given(VALUES)
def test_encoding_is_that_of_cbor2_and_decodes_to_the_same(value: Any) -> None:
    data = cbor.encode(value)
    assert data == cbor2.dumps(value, canonical=True)
    assert same(decode(data), ordered(value))


@settings(deadline=None)
@given(VALUES, st.data())
def test_whatever_is_accepted_is_the_canonical_encoding_of_what_it_means(
    value: Any, draw: Any
) -> None:
    data = bytearray(cbor.encode(value))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at : at + draw.draw(st.integers(0, 2))] = draw.draw(
        st.binary(max_size=3)
    )
    try:
        found = decode(bytes(data))
    except Malformed:
        return
    assert cbor.encode(found) == data
    assert cbor2.dumps(found, canonical=True) == data
    assert same(found, ordered(cbor2.loads(bytes(data))))


@settings(deadline=None)
@given(VALUES, st.data())
def test_whatever_is_canonical_and_in_the_subset_is_accepted(
    value: Any, draw: Any
) -> None:
    data = bytearray(cbor.encode(value))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(
        st.integers(0, 255)
    )
    try:
        meant = cbor2.loads(bytes(data))
        canonical = cbor.encode(meant) == data
    except (
        Malformed,
        cbor2.CBORDecodeError,
        MemoryError,
        OverflowError,
        TypeError,
        ValueError,
    ):
        return
    if canonical and is_plain(meant):
        assert same(decode(bytes(data)), ordered(meant))


def is_plain(value: Any) -> bool:
    """Whether keys are texts or counts, and sizes within what `read_any` asks for."""
    if isinstance(value, dict):
        keys = all(
            type(key) is str or (type(key) is int and 0 <= key < 2**63)
            for key in value
        )
        return keys and all(map(is_plain, value.values()))
    return all(map(is_plain, value)) if isinstance(value, list) else True
