"""Makes program files without `cvm.file.format`, so that a test can falsify single details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cbor2

MAGIC = bytes.fromhex("8943564d0d0a1a01")
METADATA_MAGIC = b"CVMMETA\x01"
RESCALE = 10
TABLE = 50
CONV2D = 1
CLAMP = 11
CAST = 12
RESHAPE = 80
SLICE = 83
NO_ATTRIBUTES = 20
KEYS = ("inputs", "outputs", "constants", "instructions")
BOOL, I8, U8, I16, I32, I4 = range(6)


def header() -> dict[str, Any]:
    """Return x i8[1,2] -> rescale (multiplier 2^30, shift 31: half of x) -> clamp -> y."""
    return {
        "inputs": [["x", I8, [1, 2], -128, 127]],
        "outputs": [["y", 4]],
        "constants": [[I32, [1]], [I8, [1]]],
        "instructions": [
            [RESCALE, [0, 1, 2], [0, 0, I8]],
            [CLAMP, [3], [-10, 10]],
        ],
    }


DATA = (2**30).to_bytes(4, "little") + bytes(60) + bytes([31]) + bytes(63)


def metadata() -> dict[str, Any]:
    return {
        "inputs": {"x": [0.5, 0, "data"]},
        "labels": ["cat", "dog"],
        "values": {3: [0.25, 1, ""]},
        "outputs": {},
        "provenance": {"model": "m"},
    }


def canonical(value: object) -> bytes:
    return cbor2.dumps(value, canonical=True)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 64)


def assemble(
    head: bytes | Mapping[str, Any], data: bytes = DATA, tail: bytes = b""
) -> bytes:
    """Return a file whose prefix and padding are right."""
    encoded = head if isinstance(head, bytes) else canonical(head)
    return (
        padded(MAGIC + len(encoded).to_bytes(8, "little") + encoded)
        + data
        + tail
    )


def section(meta: bytes | Mapping[str, Any]) -> bytes:
    """Return a metadata section whose prefix is right."""
    encoded = meta if isinstance(meta, bytes) else canonical(meta)
    return METADATA_MAGIC + len(encoded).to_bytes(8, "little") + encoded


def raw_header(*keys: str, **values: bytes) -> bytes:
    """Return the honest header with its keys in this order, and some values given as bytes."""
    honest = header()
    return b"\xa4" + b"".join(
        canonical(key) + values.get(key, canonical(honest[key]))
        for key in keys or KEYS
    )


def lie(
    change: Callable[[dict[str, Any]], object], data: bytes = DATA
) -> bytes:
    """Return the honest file, with one change to its header."""
    head = header()
    change(head)
    return assemble(head, data)


def packed_lie(
    change: Callable[[dict[str, Any]], object], *pairs: int
) -> bytes:
    """Return a file of version 2 whose second constant has 4 bits, these bytes, with one change to its header."""
    head = header()
    head["constants"][1] = [I4, [1]]
    change(head)
    data = DATA[:64] + padded(bytes(pairs or (1,)))
    found = bytearray(assemble(head, data))
    found[7] = 2
    return bytes(found)


def described(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the honest file with metadata, with one change to these."""
    meta = metadata()
    change(meta)
    return assemble(header(), tail=section(meta))
