"""Read an MXNet .params file as named arrays.

What cannot be read exactly is refused, with its position.

Layout (little-endian): u64 0x112, u64 reserved, u64 n, n arrays, u64 k (0 or n), then k
names, each a u64 length and its UTF-8 bytes. An array starts with the number of its
version; the oldest version has no number and starts with its rank.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mrt.errors import BadModel

Array = npt.NDArray[Any]

LIST_MAGIC = 0x112
V1_MAGIC, V2_MAGIC, V3_MAGIC = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
MAX_RANK = 32
MAX_ELEMENTS = 2**48
SMALLEST_ARRAY_BYTES = 4
SMALLEST_NAME_BYTES = 8
DTYPES: Mapping[int, str] = {
    0: "<f4", 1: "<f8", 2: "<f2", 3: "u1", 4: "<i4", 5: "i1", 6: "<i8", 7: "?", 8: "<i2",
}  # fmt: skip
REFUSED_DTYPES: Mapping[int, str] = {12: "bfloat16"}
REFUSED_STORAGES: Mapping[int, str] = {1: "row_sparse", 2: "csr"}


@dataclass(frozen=True)
class ParameterFile:
    """The arrays in file order; None is an array without a value. A plain list has no names."""

    names: tuple[str, ...]
    arrays: tuple[Array | None, ...]
    digest: bytes  # SHA-256 of the whole file


def read_params(data: bytes, source: str) -> ParameterFile:
    """Read the bytes of a file; raise BadModel with a message that starts with `source`."""
    return read_params_from(io.BytesIO(data), len(data), source)


def read_params_from(file: BinaryIO, size: int, source: str) -> ParameterFile:
    """Read an open file of `size` bytes.

    Each array has memory of its own, so that one which is no longer needed can be freed.
    Raise BadModel with a message that starts with `source`.
    """
    try:
        return _read_file(_ByteReader(file, size))
    except _MalformedError as error:
        raise BadModel(f"{source}: {error}") from None


class _MalformedError(Exception):
    """The problem in the bytes, and its position."""


class _ByteReader:
    """A position in the file; nothing is read, and no memory taken, beyond the end of the file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self.position = 0
        self.where = "header"
        self.digest = hashlib.sha256()

    @property
    def left(self) -> int:
        return self.size - self.position

    def refuse(self, problem: str) -> _MalformedError:
        return _MalformedError(f"{self.where}, byte {self.position}: {problem}")

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes."""
        if count > self.left:
            raise self.refuse(
                f"truncated; {count} bytes needed, {self.left} left"
            )
        data = self.file.read(count)
        if len(data) < count:
            raise self.refuse("the file became shorter while it was read")
        self.position += count
        self.digest.update(data)
        return data

    def number(self, form: str) -> int:
        return int(
            struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]
        )

    def count(self, what: str, smallest: int) -> int:
        """Read how many things of at least `smallest` bytes each follow, as a u64."""
        count = self.number("Q")
        if count * smallest > self.left:
            raise self.refuse(
                f"{count} {what} do not fit into the {self.left} bytes left"
            )
        return count


def _read_file(reader: _ByteReader) -> ParameterFile:
    magic = reader.number("Q")
    if magic != LIST_MAGIC:
        raise reader.refuse(
            f"not an MXNet parameter file (starts with {magic:#x}, expected {LIST_MAGIC:#x})"
        )
    reader.number("Q")  # reserved: any value
    count = reader.count("arrays", SMALLEST_ARRAY_BYTES)
    arrays = []
    for index in range(count):
        reader.where = f"array {index + 1} of {count}"
        arrays.append(_read_array(reader))
    names = _read_names(reader, count)
    if reader.left:
        raise reader.refuse(f"{reader.left} trailing bytes")
    return ParameterFile(names, tuple(arrays), reader.digest.digest())


def _read_names(reader: _ByteReader, arrays: int) -> tuple[str, ...]:
    reader.where = "names"
    count = reader.count("names", SMALLEST_NAME_BYTES)
    if count not in (0, arrays):
        raise reader.refuse(f"{count} names for {arrays} arrays")
    names: dict[str, None] = {}
    for index in range(count):
        reader.where = f"name {index + 1} of {count}"
        encoded = reader.take(reader.number("Q"))
        try:
            name = encoded.decode("utf-8")
        except UnicodeDecodeError:
            raise reader.refuse("not UTF-8") from None
        if name in names:
            raise reader.refuse(f"duplicate name {name!r}")
        names[name] = None
    return tuple(names)


def _read_array(reader: _ByteReader) -> Array | None:
    magic = reader.number("I")
    if magic in (V2_MAGIC, V3_MAGIC):
        _require_dense(reader)
        shape = _read_shape(reader, numpy_semantics=magic == V3_MAGIC)
    elif magic == V1_MAGIC:
        shape = _read_shape(reader, numpy_semantics=False)
    elif (
        magic <= MAX_RANK
    ):  # the oldest version: the rank, then dimensions of 32 bits
        shape = tuple(reader.number("I") for _ in range(magic))
    else:
        raise reader.refuse(f"unknown array version {magic:#x}")
    if shape is None or (not shape and magic != V3_MAGIC):
        return None
    return _read_values(reader, shape)


def _require_dense(reader: _ByteReader) -> None:
    storage = reader.number("i")
    if storage != 0:
        kind = REFUSED_STORAGES.get(storage, f"unknown ({storage})")
        raise reader.refuse(
            f"storage is {kind}; only dense arrays are supported"
        )


def _read_shape(
    reader: _ByteReader, *, numpy_semantics: bool
) -> tuple[int, ...] | None:
    """Read an i32 rank, then so many i64; None if numpy semantics mark a size unknown (-1)."""
    rank = reader.number("i")
    if rank == -1 and numpy_semantics:
        return None
    if not 0 <= rank <= MAX_RANK:
        raise reader.refuse(f"rank {rank} is outside 0..{MAX_RANK}")
    shape = tuple(reader.number("q") for _ in range(rank))
    if min(shape, default=0) < (-1 if numpy_semantics else 0):
        raise reader.refuse(f"negative dimension in shape {shape}")
    return None if -1 in shape else shape


def _read_values(reader: _ByteReader, shape: tuple[int, ...]) -> Array:
    reader.take(8)  # the kind and the number of the device it was saved from
    flag = reader.number("i")
    if flag not in DTYPES:
        raise reader.refuse(
            f"dtype {REFUSED_DTYPES.get(flag, f'number {flag}')} is not supported"
        )
    dtype = np.dtype(DTYPES[flag])
    count = math.prod(shape)
    if count * dtype.itemsize > reader.left:
        raise reader.refuse(
            f"truncated; shape {shape} of {dtype.name} needs more than the {reader.left} bytes left"
        )
    if (
        math.prod(dimension for dimension in shape if dimension) > MAX_ELEMENTS
    ):  # a dimension of 0 would make the product 0
        raise reader.refuse(f"shape {shape} is too large")
    return np.frombuffer(
        reader.take(count * dtype.itemsize), dtype, count
    ).reshape(shape)
