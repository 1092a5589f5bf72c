"""Program files: bytes to programs and back, one byte string per program. `cvm/SPEC.md`, section "File format".

Prefix, header, constants, each padded with zeros to a multiple of 64 bytes, then the optional
metadata section. Version 2 of the format has constants of 4 bits, version 1 none. Decoding shows only that the bytes
are well encoded; `cvm.proof.validate` decides whether they are a program. Failures are Malformed and name the offset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cvm.errors import BadInput, Malformed
from cvm.file import disk as files
from cvm.file import header, metadata, nibbles
from cvm.program import DTYPES, IntArray, Metadata, Program, TensorType
from cvm.program.limits import (
    MAX_CONSTANT_BYTES,
    MAX_HEADER_BYTES,
    MAX_METADATA_BYTES,
)

PLAIN, PACKED = (
    1,
    2,
)  # format versions: without constants in 4 bits, and with some
_SIGNATURE = b"\x89CVM\r\n\x1a"  # as PNG's: not a text, and changed by whatever changes line ends
MAGIC = _SIGNATURE + bytes((PLAIN,))
METADATA_MAGIC = b"CVMMETA\x01"
ALIGNMENT = 64
PREFIX = 16  # magic and length, of the file and of the metadata section

Readable = bytes | bytearray | memoryview


def encode(program: Program) -> bytes:
    """The one byte string of a program and its metadata; Malformed if it has none (over a limit, text not Unicode)."""
    return b"".join((*_program_parts(program), *_metadata_parts(program)))


def decode(data: Readable) -> Program:
    """The program that these bytes are the encoding of. Its constants are read-only views of `data`, not copies."""
    view = _frozen(data)
    return _decode(view, *_header(view))


def _decode(
    view: memoryview, file_header: header.Header, start: int
) -> Program:
    end = _end(view, file_header, start)
    constants = tuple(
        nibbles.unpacked(view, type_.shape, at)
        if is_packed
        else _constant(view, type_, at)
        for type_, is_packed, at, _, _ in _placed(file_header, start)
    )
    return Program(
        file_header.inputs,
        constants,
        file_header.instructions,
        file_header.outputs,
        _metadata(view, end),
        file_header.packed,
    )


def split(data: Readable) -> tuple[memoryview, memoryview]:
    """The bytes that the program id covers, and the metadata section, empty if there is none."""
    view = _frozen(data)
    end = _end(view, *_header(view))
    return view[:end], view[end:]


def program_id(program: Program | Readable) -> str:
    """SHA-256, in hexadecimal, of the file up to the metadata section."""
    return _digest(
        _program_parts(program)
        if isinstance(program, Program)
        else [split(program)[0]]
    )


def metadata_digest(program: Program | Readable) -> str | None:
    """SHA-256, in hexadecimal, of the metadata section with its prefix; None if there is none."""
    parts = (
        [*_metadata_parts(program)]
        if isinstance(program, Program)
        else [split(program)[1]]
    )
    return _digest(parts) if any(parts) else None


def is_program(path: Path) -> bool:
    """Whether a file begins as a program does; false if it cannot be read."""
    if files.is_special(path):
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False


def read(path: Path | str) -> Program:
    """Decode a file; BadInput if it cannot be read, Malformed, naming the path, if it is not a program.

    The header, which is read first, bounds the size of the rest: what is no program is not read to its end.
    """
    if Path(path).is_dir():
        raise BadInput(
            f"{path}: a folder, not a program; {_inside(Path(path))}"
        )
    with files.open_to_read(Path(path)) as (file, size):
        try:
            prefix = file.read(PREFIX)
            head = prefix + file.read(_aligned(_header_end(prefix)) - PREFIX)
            file_header, start = _header(memoryview(head))
            _check_size(size, _constants_end(file_header, start))
            file.seek(0)
            data = file.read(size)
            if data[: len(head)] != head:
                raise Malformed("the file changed while it was read")
            return _decode(memoryview(data), file_header, start)
        except Malformed as problem:
            raise Malformed(f"{path}: {problem}") from None


def _inside(folder: Path) -> str:
    """The programs in a folder, for an error."""
    names = sorted(path.name for path in folder.glob("*.cvm"))
    if not names:
        return "name the .cvm file that `mrt convert` wrote"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"it holds {', '.join(names[:3])}{more}"


def write(program: Program, path: Path | str) -> None:
    """Encode to a file that appears whole or not at all."""
    parts = [*_program_parts(program), *_metadata_parts(program)]
    files.write_all({Path(path): lambda file: file.writelines(parts)})


def _digest(parts: Iterator[Readable] | list[memoryview] | list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _program_parts(program: Program) -> Iterator[Readable]:
    encoded = header.encode(program)
    start = _SIGNATURE + bytes((PACKED if program.packed else PLAIN,))
    yield start + len(encoded).to_bytes(8, "little") + encoded
    yield bytes(_padding(PREFIX + len(encoded)))
    for index, array in enumerate(program.constants):
        is_packed = index in program.packed
        data = nibbles.packed(array) if is_packed else _as_bytes(array)
        yield data.data
        yield bytes(_padding(len(data)))


def _as_bytes(array: IntArray) -> npt.NDArray[np.uint8]:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)


def _metadata_parts(program: Program) -> Iterator[bytes]:
    if program.metadata is not None:
        encoded = metadata.encode(program.metadata)
        yield METADATA_MAGIC + len(encoded).to_bytes(8, "little") + encoded


def _aligned(size: int) -> int:
    return size + _padding(size)


def _padding(size: int) -> int:
    return -size % ALIGNMENT


def _frozen(data: Readable) -> memoryview:
    """A read-only view: the program that was validated is the program that runs."""
    view = memoryview(data)
    return view.cast("B") if view.readonly else memoryview(bytes(view))


def _header(view: memoryview) -> tuple[header.Header, int]:
    """The header, and where the constants' data starts; checks the padding between them."""
    header_end = _header_end(view[:PREFIX])
    start = _aligned(header_end)
    _require(view, start, "the header")
    file_header = header.decode(
        bytes(view[PREFIX:header_end]), PREFIX, packs=view[7] == PACKED
    )
    _check_padding(view, header_end, start)
    return file_header, start


def _end(view: memoryview, file_header: header.Header, start: int) -> int:
    """Where the constants' data ends, which is where the program ends; checks all padding."""
    end = _constants_end(file_header, start)
    _require(view, end, "the constants")
    for _, _, _, data_end, next_start in _placed(file_header, start):
        _check_padding(view, data_end, next_start)
    return end


def _constants_end(file_header: header.Header, start: int) -> int:
    size = sum(after - at for _, _, at, _, after in _placed(file_header, start))
    if size > MAX_CONSTANT_BYTES:
        raise Malformed(
            f"the constants need {size} bytes; at most {MAX_CONSTANT_BYTES}"
        )
    return start + size


def _check_size(size: int, end: int) -> None:
    """A file whose program ends at `end` may go on with a metadata section."""
    most = end + PREFIX + MAX_METADATA_BYTES
    if size > most:
        raise Malformed(
            f"the file has {size} bytes; with its header and the largest metadata it has at most {most}"
        )


def _placed(
    file_header: header.Header, start: int
) -> Iterator[tuple[TensorType, bool, int, int, int]]:
    """Each constant's type, whether it has 4 bits, the ends of its data, and of its padding, where the next one starts."""
    for index, size in enumerate(file_header.sizes):
        end = start + size
        is_packed = index in file_header.packed
        yield (
            file_header.constants[index],
            is_packed,
            start,
            end,
            end + _padding(end),
        )
        start = end + _padding(end)


def _check_padding(view: memoryview, start: int, end: int) -> None:
    if any(view[start:end]):
        raise Malformed(
            f"byte {start}: the padding up to byte {end} is not zero"
        )


def _header_end(prefix: Readable) -> int:
    """Where the header ends, from the first 16 bytes."""
    if not prefix:
        raise Malformed("the file is empty")
    if bytes(prefix[:7]) != _SIGNATURE:
        raise Malformed(
            f"not a program: it begins with {bytes(prefix[:8])!r}, not with {MAGIC!r}; "
            "mrt convert makes programs (.cvm) from models"
        )
    if len(prefix) < PREFIX:
        raise Malformed(
            f"the file ends at byte {len(prefix)}, inside its first {PREFIX} bytes: it is cut short, copy it again"
        )
    if prefix[7] not in (PLAIN, PACKED):
        raise Malformed(
            f"format version {prefix[7]}; this machine reads versions {PLAIN} and {PACKED}"
        )
    size = int.from_bytes(prefix[8:], "little")
    if size > MAX_HEADER_BYTES:
        raise Malformed(
            f"byte 8: a header of {size} bytes; at most {MAX_HEADER_BYTES}"
        )
    return PREFIX + size


def _require(view: memoryview, end: int, what: str) -> None:
    if len(view) < end:
        raise Malformed(
            f"the file ends at byte {len(view)}; {what} with padding reach to byte {end}: it is cut short, copy it again"
        )


def _constant(view: memoryview, type_: TensorType, at: int) -> IntArray:
    dtype = DTYPES[type_.dtype]
    if type_.dtype == "bool":
        numbers = np.frombuffer(view, np.uint8, type_.elements, at)
        if numbers.max() > 1:
            raise Malformed(
                f"byte {at + int((numbers > 1).argmax())}: a bool constant holds neither 0 nor 1"
            )
        return numbers.view(np.bool_).reshape(type_.shape)
    array = np.frombuffer(
        view, dtype.newbyteorder("<"), type_.elements, at
    ).reshape(type_.shape)
    return array.astype(
        dtype, copy=False
    )  # a copy only where the processor is big-endian


def _metadata(view: memoryview, start: int) -> Metadata | None:
    """The section from `start` to the end of the file."""
    if start == len(view):
        return None
    prefix = bytes(view[start : start + PREFIX])
    if prefix[:8] != METADATA_MAGIC or len(prefix) < PREFIX:
        raise Malformed(
            f"byte {start}: {len(view) - start} bytes follow the program and are not a metadata section"
        )
    size = int.from_bytes(prefix[8:], "little")
    if size > MAX_METADATA_BYTES:
        raise Malformed(
            f"byte {start + 8}: a metadata section of {size} bytes; at most {MAX_METADATA_BYTES}"
        )
    if len(view) - start - PREFIX != size:
        raise Malformed(
            f"byte {start + 8}: a metadata section of {size} bytes, but {len(view) - start - PREFIX} bytes follow"
        )
    return metadata.decode(bytes(view[start + PREFIX :]), start + PREFIX)
