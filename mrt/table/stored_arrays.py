"""Reads arrays from their `.npy` or `.npz` file one sample at a time, in constant memory.

One in Fortran order is read whole, since each sample is spread over all of it.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from cvm.errors import BadInput
from cvm.file.npy import read_header
from mrt.errors import BadData

Array = npt.NDArray[Any]
Opener = Callable[[], AbstractContextManager[IO[bytes]]]
_READ_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)
MOST_IN_FORTRAN_ORDER = 2**28
"""The most bytes of an array that is read whole since it lies in Fortran order."""


@dataclass(frozen=True)
class StoredArray:
    """An array in a file: its shape and dtype, and a function that opens its bytes again."""

    where: str  # "digits.npz: array 'x'", for messages
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _size: int  # the size of the stream, in bytes
    _open: Opener
    _fortran: bool = False

    @property
    def data_bytes(self) -> int:
        """The number of bytes of all numbers."""
        return self.dtype.itemsize * math.prod(self.shape)

    def rows(self) -> Iterator[Array]:
        """Yield the entries along the first axis, in order; raise BadData for a damaged file."""
        if self._fortran:
            yield from map(np.ascontiguousarray, self.whole())
            return
        with self._numbers() as stream:
            yield from self._entries(stream)

    def whole(self) -> Array:
        """Return the array, read at once, so that `data_bytes` should be few; raise BadData for a damaged file."""
        with self._numbers() as stream:
            data = _read_exactly(stream, self.data_bytes)
            order: Literal["C", "F"] = "F" if self._fortran else "C"
            return np.frombuffer(data, self.dtype).reshape(
                self.shape, order=order
            )

    @contextmanager
    def _numbers(self) -> Iterator[IO[bytes]]:
        """Open the file behind its header."""
        try:
            with self._open() as stream:
                read_header(stream, self._size, self.where)
                yield stream
        except BadInput as problem:
            raise BadData(str(problem)) from None
        except _READ_ERRORS as problem:
            raise BadData(
                f"{self.where}: cannot be read ({problem}); the file is damaged, "
                "write it again"
            ) from None

    def _entries(self, stream: IO[bytes]) -> Iterator[Array]:
        shape = self.shape[1:]
        entry_bytes = self.dtype.itemsize * math.prod(shape)
        for index in range(self.shape[0]):
            data = _read_exactly(stream, entry_bytes)
            if len(data) != entry_bytes:
                raise BadData(
                    f"{self.where}: ends inside sample {index} of {self.shape[0]}; "
                    "the file is truncated"
                )
            yield np.frombuffer(data, self.dtype).reshape(shape)


def open_npy(path: Path) -> StoredArray:
    """Open the array of a `.npy` file."""
    return _describe(lambda: path.open("rb"), f"{path}", path.stat().st_size)


def open_npz(path: Path) -> dict[str, StoredArray | BadData]:
    """Open the arrays of an `.npz` file, by name.

    An unusable one is the error to raise when it is needed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except _READ_ERRORS as problem:
        raise BadData(
            f"{path}: is not a readable .npz file ({problem}); "
            "write it with numpy.savez"
        ) from None
    arrays: dict[str, StoredArray | BadData] = {}
    for member in members:
        if not member.filename.endswith(".npy"):
            continue
        name = member.filename.removesuffix(".npy")
        opener = _member_opener(path, member.filename)
        try:
            arrays[name] = _describe(
                opener, f"{path}: array '{name}'", member.file_size
            )
        except BadData as problem:
            arrays[name] = problem
    return arrays


def _member_opener(path: Path, member: str) -> Opener:
    @contextmanager
    def open_member() -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield stream

    return open_member


def _describe(opener: Opener, where: str, size: int) -> StoredArray:
    """Read the header alone, so that a truncated file is refused before any work."""
    try:
        with opener() as stream:
            header = read_header(stream, size, where)
    except BadInput as problem:
        raise BadData(str(problem)) from None
    except _READ_ERRORS as problem:
        raise BadData(
            f"{where}: is not a readable numpy array ({problem}); "
            "write it with numpy.save"
        ) from None
    is_fortran = header.fortran and len(header.shape) > 1
    array = StoredArray(
        where, header.shape, header.dtype, size, opener, is_fortran
    )
    if is_fortran and array.data_bytes > MOST_IN_FORTRAN_ORDER:
        raise BadData(
            f"{where}: is stored in Fortran order, which cannot be streamed, and has {array.data_bytes} bytes "
            f"(at most {MOST_IN_FORTRAN_ORDER} are read at once); save numpy.ascontiguousarray of it"
        )
    return array


def _read_exactly(stream: IO[bytes], count: int) -> bytes:
    """Read up to `count` bytes; fewer only at the end of the stream."""
    pieces: list[bytes] = []
    missing = count
    while missing > 0:
        data = stream.read(missing)
        if not data:
            break
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)
