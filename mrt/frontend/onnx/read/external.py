"""Weights that an .onnx file keeps in other files of its folder, as exporters of today write them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import LARGEST_FILE, tensors

LARGEST_DATA = 1 << 36  # bytes of all weights: as many as a program's constants


@dataclass(frozen=True)
class Brought:
    """Arrays by the name of their initializer, read from the disk where they are used; the SHA-256 of each file."""

    arrays: Mapping[str, npt.NDArray[Any]]
    digests: Sequence[bytes]

    def hand_to(self, model: ir.Model) -> None:
        """Give the initializers of a model their arrays."""
        for name, array in self.arrays.items():
            model.graph.initializers[name].const_value = ir.tensor(array, name=name)


def bring_in(proto: onnx.ModelProto, path: Path) -> Brought:
    """Open the files of initializers, and copy what other tensors keep in files into the protobuf.

    Reads nothing outside the model's folder, and no more than the largest model has; the files are in the order of their
    paths. A weight of gigabytes takes memory only while it is read.
    """
    files: set[Path] = set()
    arrays: dict[str, npt.NDArray[Any]] = {}
    total = copied = 0
    for place, tensor in enumerate(tensors(proto.graph)):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        fields = {entry.key: entry.value for entry in tensor.external_data}
        where = f"{path}: '{tensor.name}'"
        file = _file(path.parent, fields.get("location", ""), where)
        offset, length = _part(fields, file.stat().st_size, where)
        total += length
        if total > LARGEST_DATA:
            raise BadModel(
                f"{path}: more than {LARGEST_DATA} bytes of data; the largest model has as many"
            )
        files.add(file)
        if place < len(proto.graph.initializer):  # which come first
            arrays[tensor.name] = _opened(tensor, file, (offset, length), where)
            continue
        copied += length
        if copied > LARGEST_FILE:
            raise BadModel(
                f"{path}: more than {LARGEST_FILE} bytes of data beside its initializers"
            )
        tensor.raw_data = _read(file, offset, length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    return Brought(arrays, [_digest(file) for file in sorted(files)])


def _opened(
    tensor: onnx.TensorProto, file: Path, part: tuple[int, int], where: str
) -> npt.NDArray[Any]:
    """The file's own bytes as an array that may not be written to."""
    kind, shape, (offset, length) = (
        ir.DataType(tensor.data_type),
        tuple(tensor.dims),
        part,
    )
    if kind == ir.DataType.STRING or kind.bitwidth < 8:
        raise BadModel(
            f"{where} has type {kind.name}; expected floats, integers or booleans"
        )
    needed = math.prod(shape) * kind.bitwidth // 8
    if min(shape, default=0) < 0 or needed != length:
        raise BadModel(
            f"{where}: its data has {length} bytes; its shape {list(shape)} of {kind.name.lower()} needs {needed}"
        )
    if not length:
        return np.zeros(shape, kind.numpy())
    try:
        return np.memmap(file, kind.numpy(), "r", offset, shape)
    except OSError as error:
        raise BadModel(f"{file}: cannot be read ({error.strerror})") from None


def _file(folder: Path, location: str, where: str) -> Path:
    """The file, which has to lie in the model's folder, whatever links are on the way."""
    try:
        file = (folder / location).resolve()
        inside = file.is_relative_to(folder.resolve()) and bool(location)
        found = inside and file.is_file()
    except (OSError, ValueError):
        inside, found = True, False
    if not inside:
        raise BadModel(
            f"{where} keeps its data in '{location}', outside the model's folder; save the model as one file"
        )
    if not found:
        raise BadModel(
            f"{where} keeps its data in '{location}', which is not there; put it beside the model"
        )
    return file


def _part(fields: dict[str, str], size: int, where: str) -> tuple[int, int]:
    """Offset and length, checked against the size of the file."""
    numbers = []
    for key in ("offset", "length"):
        text = fields.get(key, "0" if key == "offset" else "")
        if text and not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise BadModel(f"{where}: {key}={text} of its data is no number")
        numbers.append(int(text) if text else None)
    offset = numbers[0] or 0
    length = max(size - offset, 0) if numbers[1] is None else numbers[1]
    if offset + length > size:
        raise BadModel(
            f"{where}: its data ends at byte {offset + length} of a file of {size}; the file is cut short"
        )
    return offset, length


def _read(file: Path, offset: int, length: int) -> bytes:
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)
    except OSError as error:
        raise BadModel(f"{file}: cannot be read ({error.strerror})") from None


def _digest(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
