"""The optional metadata section of a program file: the meaning of integers in real numbers. No output depends on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from cvm.errors import Malformed
from cvm.file import cbor
from cvm.program import DTYPE_RANGES, MAX_CHANNELS, Meaning, Metadata
from cvm.program.limits import (
    MAX_CONSTANTS,
    MAX_INPUTS,
    MAX_INSTRUCTIONS,
    MAX_METADATA_BYTES,
    MAX_NAME_BYTES,
    MAX_TEXT_BYTES,
)

K = TypeVar("K", int, str)
V = TypeVar("V")
_KEYS = (
    "inputs",
    "labels",
    "values",
    "outputs",
    "provenance",
)  # in bytewise order of their encodings
_MOST_VALUES = MAX_INPUTS + MAX_CONSTANTS + MAX_INSTRUCTIONS
_ANY_COUNT = MAX_METADATA_BYTES


def encode(metadata: Metadata) -> bytes:
    """The section's CBOR; Malformed if no reader would accept it."""
    fields: dict[str, cbor.Value] = {
        "inputs": _encode_meanings(metadata.inputs),
        "labels": metadata.labels,
        "values": _encode_meanings(metadata.values),
        "outputs": _encode_meanings(metadata.outputs),
        "provenance": dict(metadata.provenance),
    }
    data = cbor.encode(fields)
    if len(data) > MAX_METADATA_BYTES:
        raise Malformed(
            f"the metadata has {len(data)} bytes; at most {MAX_METADATA_BYTES}"
        )
    decode(data, 0)
    return data


def decode(data: bytes, origin: int) -> Metadata:
    """Read the section's CBOR back; `origin` is its offset in the file, for messages."""
    reader = cbor.CborReader(data, origin)
    reader.map("metadata", len(_KEYS), len(_KEYS))
    reader.key("inputs", "metadata")
    inputs = _mapping(reader, "inputs", _name, _meaning_of_input)
    reader.key("labels", "metadata")
    labels = tuple(
        _text(reader) for _ in range(reader.array("labels", 0, _ANY_COUNT))
    )
    reader.key("values", "metadata")
    values = _mapping(reader, "values", _value, _meaning_of_value)
    reader.key("outputs", "metadata")
    outputs = _mapping(reader, "outputs", _name, _meaning_of_output)
    reader.key("provenance", "metadata")
    provenance = _mapping(reader, "provenance", _text, _text)
    reader.end("the metadata's map")
    return Metadata(inputs, outputs, values, labels, provenance)


def _encode_meanings(meanings: Mapping[K, Meaning]) -> Mapping[K, cbor.Value]:
    return {key: _encode_meaning(meaning) for key, meaning in meanings.items()}


def _encode_meaning(meaning: Meaning) -> cbor.Value:
    if len(meaning.centres) not in (0, len(meaning.channels)):
        raise Malformed(
            f"a meaning has {len(meaning.centres)} centres and {len(meaning.channels)} factors of channels"
        )
    by_channel = [
        [float(number) for number in numbers]
        for numbers in (meaning.channels, meaning.centres)
        if numbers
    ]
    return [
        float(meaning.scale),
        meaning.zero_point,
        meaning.source,
        *by_channel,
    ]


def _mapping(
    reader: cbor.CborReader,
    what: str,
    read_key: Callable[[cbor.CborReader], K],
    read_value: Callable[[cbor.CborReader], V],
) -> dict[K, V]:
    mapping: dict[K, V] = {}
    previous = b""
    for _ in range(reader.map(what, 0, _ANY_COUNT)):
        start = reader.at
        name = read_key(reader)
        previous = reader.after(previous, start, what)
        mapping[name] = read_value(reader)
    return mapping


def _name(reader: cbor.CborReader) -> str:
    return reader.text("name", MAX_NAME_BYTES)


def _text(reader: cbor.CborReader) -> str:
    return reader.text("text", MAX_TEXT_BYTES)


def _value(reader: cbor.CborReader) -> int:
    return reader.integer("value number", 0, _MOST_VALUES - 1)


def _meaning_of_output(reader: cbor.CborReader) -> Meaning:
    return _meaning(reader, "meaning (scale, zero point, source)", 3)


def _meaning_of_input(reader: cbor.CborReader) -> Meaning:
    what = "meaning (scale, zero point, source, factors of channels)"
    return _meaning(reader, what, 4)


def _meaning_of_value(reader: cbor.CborReader) -> Meaning:
    what = "meaning (scale, zero point, source, factors of channels, centres)"
    return _meaning(reader, what, 5)


def _meaning(reader: cbor.CborReader, what: str, most: int) -> Meaning:
    length = reader.array(what, 3, most)
    scale = _scale(reader, "scale")
    zero_point = reader.integer("zero point", *DTYPE_RANGES["i32"])
    source = _text(reader)
    count = (
        reader.array("factors of channels", 1, MAX_CHANNELS)
        if length > 3
        else 0
    )
    factors = tuple(_scale(reader, "factor of a channel") for _ in range(count))
    count = (
        reader.array("centres of channels", len(factors), len(factors))
        if length > 4
        else 0
    )
    return Meaning(
        scale,
        zero_point,
        source,
        factors,
        tuple(_finite(reader, "centre") for _ in range(count)),
    )


def _finite(
    reader: cbor.CborReader,
    what: str,
    expected: str = "a finite number",
    above: float = -float("inf"),
) -> float:
    start = reader.at
    number = reader.real(what)
    if not above < number < float("inf"):
        raise reader.fault(f"{what} {number}; expected {expected}", start)
    return number


def _scale(reader: cbor.CborReader, what: str) -> float:
    return _finite(reader, what, "a finite number above 0", above=0.0)
