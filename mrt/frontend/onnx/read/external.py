"""Open the weights that an .onnx file keeps in other files of its folder.

Exporters write large models in this way.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import (
    LARGEST_FILE,
    parse,
    read_bytes,
    tensors,
)

LARGEST_DATA = 1 << 36  # bytes of all weights, as of a program's constants
# A file is hashed whole if it has at most this many bytes besides twice those used: what
# lies between weights. Of a larger one, the parts that are used are hashed.
UNUSED = 1 << 20
BLOCK = 1 << 20  # bytes read at once

_Part = tuple[int, int]  # the first byte, and that behind the last


@dataclass(frozen=True)
class StoredWeights:
    """The weights outside the model file.

    `arrays` has them by the name of their initializer; an array is read from the disk when
    it is used. `digests` are the SHA-256 of each file, or of its parts where little of it
    is used, in the order of the files' paths.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    digests: Sequence[bytes]

    def attach_to(self, model: ir.Model) -> None:
        """Set the arrays as the data of a model's initializers."""
        for name, array in self.arrays.items():
            model.graph.initializers[name].const_value = ir.tensor(
                array, name=name
            )


@dataclass(frozen=True)
class _Slice:
    """The bytes of one tensor in a file; error messages begin with `where`."""

    file: Path
    offset: int
    length: int
    where: str


def open_stored_weights(proto: onnx.ModelProto, path: Path) -> StoredWeights:
    """Open the files of initializers, and copy the data that other tensors keep in files.

    Nothing outside the model's folder is read, and no more bytes than the largest model
    has. A weight of gigabytes takes memory only while it is read.
    """
    opened = _Opened(path)
    initializers = len(proto.graph.initializer)  # which `tensors` yields first
    for index, tensor in enumerate(tensors(proto.graph)):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        stored = opened.locate(tensor)
        if index < initializers:
            opened.arrays[tensor.name] = _map(tensor, stored)
        else:
            opened.copy(tensor, stored)
    files = sorted(opened.parts.items())
    return StoredWeights(
        opened.arrays, [_digest(file, parts) for file, parts in files]
    )


def stored_files(path: Path) -> list[Path]:
    """Return the files in which an .onnx file keeps weights; none if it cannot be read, which its reader says."""
    try:
        data = read_bytes(path)
        if b"location" not in data:  # a key of every such weight
            return []
        graph = parse(data, path).graph
    except BadModel:
        return []
    locations = {
        entry.value
        for tensor in tensors(graph)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / location for location in sorted(locations)]


@dataclass
class _Opened:
    """The files and arrays opened so far, with their bytes counted against the limits."""

    path: Path
    parts: dict[Path, list[_Part]] = field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    total: int = 0
    copied: int = 0

    def locate(self, tensor: onnx.TensorProto) -> _Slice:
        """Return where a tensor's bytes are; they count each time a tensor refers to them."""
        fields = {entry.key: entry.value for entry in tensor.external_data}
        where = f"{self.path}: '{tensor.name}'"
        file = _file(self.path.parent, fields.get("location", ""), where)
        stored = _slice(fields, file, where)
        self.total += stored.length
        if self.total > LARGEST_DATA:
            raise BadModel(
                f"{self.path}: more than {LARGEST_DATA} bytes of data; "
                "the largest model has as many"
            )
        interval = (stored.offset, stored.offset + stored.length)
        self.parts.setdefault(file, []).append(interval)
        return stored

    def copy(self, tensor: onnx.TensorProto, stored: _Slice) -> None:
        """Copy the bytes into the protobuf."""
        self.copied += stored.length
        if self.copied > LARGEST_FILE:
            raise BadModel(
                f"{self.path}: more than {LARGEST_FILE} bytes of data "
                "beside its initializers"
            )
        tensor.raw_data = _read(stored)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _map(tensor: onnx.TensorProto, stored: _Slice) -> npt.NDArray[Any]:
    """Map the file's own bytes as an array that may not be written to."""
    kind = ir.DataType(tensor.data_type)
    shape = tuple(tensor.dims)
    if kind == ir.DataType.STRING or kind.bitwidth < 8:
        raise BadModel(
            f"{stored.where} has type {kind.name}; "
            "expected floats, integers or booleans"
        )
    needed = math.prod(shape) * kind.bitwidth // 8
    if min(shape, default=0) < 0 or needed != stored.length:
        raise BadModel(
            f"{stored.where}: its data has {stored.length} bytes; "
            f"its shape {list(shape)} of {kind.name.lower()} needs {needed}"
        )
    if not stored.length:
        return np.zeros(shape, kind.numpy())
    try:
        return np.memmap(stored.file, kind.numpy(), "r", stored.offset, shape)
    except OSError as error:
        raise BadModel(
            f"{stored.file}: cannot be read ({error.strerror})"
        ) from None


def _file(folder: Path, location: str, where: str) -> Path:
    """Return the file, which must lie in the model's folder once links are followed."""
    try:
        file = _resolved(folder / location)
        inside = file.is_relative_to(_resolved(folder)) and bool(location)
        exists = inside and file.is_file()
    except (OSError, ValueError):
        inside, exists = True, False
    if not inside:
        raise BadModel(
            f"{where} keeps its data in '{location}', outside the model's folder; "
            "save the model as one file"
        )
    if not exists:
        raise BadModel(
            f"{where} keeps its data in '{location}', which is not there; "
            "put it beside the model"
        )
    return file


def _resolved(path: Path) -> Path:
    """The path after its links are followed, as far as they lead: in a circle they stay, and lead to no file."""
    return Path(os.path.realpath(path))


def _slice(fields: Mapping[str, str], file: Path, where: str) -> _Slice:
    """Read offset and length, and check them against the size of the file."""
    size = file.stat().st_size
    offset = _number(fields, "offset", where) or 0
    length = _number(fields, "length", where)
    if length is None:
        length = max(size - offset, 0)
    if offset + length > size:
        raise BadModel(
            f"{where}: its data ends at byte {offset + length} of a file of {size}; "
            "the file is cut short"
        )
    return _Slice(file, offset, length, where)


def _number(fields: Mapping[str, str], key: str, where: str) -> int | None:
    text = fields.get(key, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BadModel(f"{where}: {key}={text} of its data is no number")
    return int(text)


def _read(stored: _Slice) -> bytes:
    try:
        with stored.file.open("rb") as stream:
            stream.seek(stored.offset)
            return stream.read(stored.length)
    except OSError as error:
        raise BadModel(
            f"{stored.file}: cannot be read ({error.strerror})"
        ) from None


def _digest(file: Path, parts: Sequence[_Part]) -> bytes:
    used = _merged(parts)
    count = sum(end - start for start, end in used)
    with file.open("rb") as stream:
        if file.stat().st_size <= 2 * count + UNUSED:
            return hashlib.file_digest(stream, "sha256").digest()
        digest = hashlib.sha256()
        for start, end in used:
            digest.update(f"{start}..{end}:".encode())
            stream.seek(start)
            for _ in range(start, end, BLOCK):
                digest.update(stream.read(min(BLOCK, end - stream.tell())))
        return digest.digest()


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    """Return the same bytes in order, each once."""
    merged: list[_Part] = []
    for start, end in sorted(parts):
        if merged and start <= merged[-1][1]:
            start, last = merged.pop()
            end = max(end, last)
        merged.append((start, end))
    return merged
