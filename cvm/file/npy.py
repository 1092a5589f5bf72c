"""Arrays in files: strangers' are checked before memory is taken, ours are written in one form."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from cvm.errors import BadInput

MAGIC = npy.MAGIC_PREFIX
MAX_RANK = 32
_CHUNK = 2**20
_PARSERS = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


@dataclass(frozen=True)
class NpyHeader:
    """Shape, dtype and order of an array, and the number of bytes of the header itself."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def data_bytes(self) -> int:
        """The number of bytes that follow the header."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], size: int, where: str) -> NpyHeader:
    """The header of a stream of `size` bytes.

    BadInput if it cannot be parsed, declares anything but numbers, or does not agree with
    the size.
    """
    header = _parse(stream, where)
    if header.dtype.hasobject:
        raise BadInput(
            f"{where}: holds Python objects, which are never loaded; expected real numbers"
        )
    if header.dtype.kind not in "biuf":
        raise BadInput(f"{where}: holds {header.dtype}, expected real numbers")
    needed, there = header.data_bytes, size - header.length
    if needed != there:
        problem = (
            "truncated" if needed > there else "longer than its header declares"
        )
        raise BadInput(
            f"{where}: {problem}: shape {list(header.shape)} of {header.dtype} needs "
            f"{needed} bytes, {there} are there"
        )
    return header


def read_array(
    stream: IO[bytes],
    size: int,
    where: str,
    check: Callable[[NpyHeader], None] | None = None,
) -> npt.NDArray[Any]:
    """The whole array of a stream of `size` bytes; BadInput as `read_header`, or of `check`, before it takes memory."""
    header = read_header(stream, size, where)
    if check:
        check(header)
    flat = np.empty(math.prod(header.shape), header.dtype)
    target = flat.view(np.uint8).data if flat.size else memoryview(b"")
    for start in range(0, header.data_bytes, _CHUNK):
        count = min(_CHUNK, header.data_bytes - start)
        chunk = stream.read(count)
        if len(chunk) != count:
            raise BadInput(f"{where}: truncated")
        target[start : start + count] = chunk
    if header.fortran:
        return flat.reshape(header.shape[::-1]).T
    return flat.reshape(header.shape)


def _parse(stream: IO[bytes], where: str) -> NpyHeader:
    try:
        version = npy.read_magic(stream)
        if version not in _PARSERS:
            raise ValueError(f"version {version[0]}.{version[1]}")
        shape, fortran, dtype = _PARSERS[version](stream)
        if any(dimension < 0 for dimension in shape) or len(shape) > MAX_RANK:
            raise ValueError(f"shape {list(shape)[:40]}")
    except zipfile.BadZipFile:
        raise  # the archive is broken, not the array in it
    except Exception as problem:
        # numpy lets its parser's errors through: SyntaxError, TypeError, TokenError, ...
        raise BadInput(
            f"{where}: not a readable .npy header: {problem}"
        ) from None
    return NpyHeader(shape, fortran, dtype, stream.tell())


def write_npz(file: IO[bytes], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """An uncompressed `.npz` of little-endian arrays.

    Arrays of less than 2 GB give the same bytes by every version of Python.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if "\0" in name:
                raise BadInput(
                    f"output {name!r}: a name with a zero byte has no place in an .npz file"
                )
            info = zipfile.ZipInfo(f"{name}.npy")
            info.create_system = 3  # on Windows, too
            # By the size zipfile chooses ZIP64, which versions of Python write differently, only where it must.
            info.file_size = array.nbytes + 2**16
            with archive.open(info, "w") as member:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                npy.write_array(
                    member,
                    np.asarray(little, order="C"),
                    version=(1, 0),
                    allow_pickle=False,
                )
