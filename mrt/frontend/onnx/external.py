"""Weights that an .onnx file keeps in other files of its folder, as exporters of today write them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx

from mrt.errors import BadModel
from mrt.frontend.onnx.read import LARGEST_FILE, tensors


def bring_in(proto: onnx.ModelProto, path: Path) -> list[bytes]:
    """Copy them into the protobuf; the SHA-256 of each file they came from, in the order of their paths.

    Reads nothing outside the model's folder, and no more than the largest model has.
    """
    files: set[Path] = set()
    total = 0
    for tensor in tensors(proto.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        fields = {entry.key: entry.value for entry in tensor.external_data}
        where = f"{path}: '{tensor.name}'"
        file = _file(path.parent, fields.get("location", ""), where)
        offset, length = _part(fields, file.stat().st_size, where)
        total += length
        if total > LARGEST_FILE:
            raise BadModel(f"{path}: more than {LARGEST_FILE} bytes of data; the largest model has as many")
        tensor.raw_data = _read(file, offset, length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
        files.add(file)
    return [_digest(file) for file in sorted(files)]


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
        raise BadModel(f"{where} keeps its data in '{location}', which is not there; put it beside the model")
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
        raise BadModel(f"{where}: its data ends at byte {offset + length} of a file of {size}; the file is cut short")
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
