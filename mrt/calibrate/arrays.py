"""Arrays read sample by sample out of .npy files and .npz members, never whole, at flat memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True)
class StoredArray:
    """An array that still lies in its file: its type, and how to open its bytes again and again."""

    where: str  # "digits.npz: array 'x'", for messages
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _open: Opener

    def rows(self) -> Iterator[Array]:
        """The array's entries along its first axis, in order."""
        row_bytes = self.dtype.itemsize * math.prod(self.shape[1:])
        try:
            with self._open() as stream:
                _read_header(stream, self.where)
                for index in range(self.shape[0]):
                    data = _read_exactly(stream, row_bytes)
                    if len(data) != row_bytes:
                        raise BadData(
                            f"{self.where}: ends inside sample {index} of {self.shape[0]}; the file is truncated"
                        )
                    yield np.frombuffer(data, self.dtype).reshape(self.shape[1:])
        except _READ_ERRORS as problem:
            raise BadData(
                f"{self.where}: cannot be read ({problem}); the file is damaged, write it again"
            ) from None


def open_npy(path: Path) -> StoredArray:
    """The array of a .npy file."""
    return _describe(lambda: path.open("rb"), f"{path}", path.stat().st_size)


def open_npz(path: Path) -> dict[str, StoredArray | BadData]:
    """The arrays of an .npz file by name; for one that cannot be used the reason, to be raised if it is asked for."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [
                item for item in archive.infolist() if item.filename.endswith(".npy")
            ]
    except _READ_ERRORS as problem:
        raise BadData(
            f"{path}: is not a readable .npz file ({problem}); write it with numpy.savez"
        ) from None
    arrays: dict[str, StoredArray | BadData] = {}
    for item in members:
        name = item.filename.removesuffix(".npy")
        try:
            arrays[name] = _describe(
                _member_opener(path, item.filename),
                f"{path}: array '{name}'",
                item.file_size,
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
    """Read the header alone and hold it against the size of the file, so that truncation shows before any work."""
    try:
        with opener() as stream:
            shape, dtype, header_bytes = _read_header(stream, where)
    except _READ_ERRORS as problem:
        raise BadData(
            f"{where}: is not a readable numpy array ({problem}); write it with numpy.save"
        ) from None
    expected = header_bytes + dtype.itemsize * math.prod(shape)
    if size != expected:
        raise BadData(
            f"{where}: holds {size} bytes, expected {expected} for {dtype} of shape {list(shape)}"
            "; the file is truncated or damaged"
        )
    return StoredArray(where, shape, dtype, opener)


def _read_header(
    stream: IO[bytes], where: str
) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and the header's length; BadData for what cannot be streamed or is not a number."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise BadData(
            f"{where}: has .npy format version {version[0]}.{version[1]}, expected 1.0 or 2.0"
        )
    if dtype.kind not in "buif":
        raise BadData(
            f"{where}: has dtype {dtype}, expected real numbers; pickled objects are never loaded"
        )
    if fortran and len(shape) > 1:
        raise BadData(
            f"{where}: is stored in Fortran order, which cannot be streamed; save numpy.ascontiguousarray of it"
        )
    return shape, dtype, stream.tell()


def _read_exactly(stream: IO[bytes], count: int) -> bytes:
    """Up to `count` bytes; fewer only at the end of the stream."""
    data = stream.read(count)
    if len(data) == count:
        return data
    pieces = [data]
    missing = count - len(data)
    while missing > 0 and (data := stream.read(missing)):
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)
