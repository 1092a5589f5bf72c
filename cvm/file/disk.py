"""Files in and out: read bounded, written whole or not at all. Every failure is a BadInput of one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from cvm.errors import BadInput, MissingFile
from cvm.file.suffixes import require_folder_name

NOT_REGULAR = (
    "not a regular file but a pipe or device; save its content as a file first"
)
WriteFunction = Callable[[IO[bytes]], None]


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """An open regular file and its size."""
    with _reading(path):
        status = (
            path.stat()
        )  # before opening, which would wait for a pipe's other end
        if is_special(path):
            raise BadInput(f"{path}: {NOT_REGULAR}")
        with open(path, "rb") as file:
            if status.st_size == 0:
                raise BadInput(f"{path}: the file is empty")
            yield file, status.st_size


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turns the operating system's refusals into BadInput."""
    try:
        yield
    except FileNotFoundError as problem:
        raise MissingFile(f"{path}: {problem.strerror or problem}") from None
    except OSError as problem:
        raise BadInput(f"{path}: {problem.strerror or problem}") from None


def read_bounded(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes."""
    with open_to_read(path) as (file, size):
        if size > limit:
            raise BadInput(f"{path}: {size} bytes; at most {limit} are read")
        return file.read(limit)


def resolved(path: Path) -> Path:
    """The path after its links are followed; BadInput if they lead in a circle, on which versions of Python differ."""
    try:
        path.stat()
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise BadInput(f"{path}: {problem.strerror}") from None
    return path.resolve()


def require_writable(paths: list[Path], *, inputs: list[Path]) -> None:
    """Before hours of work: each path is in a folder that takes files, and is none of the others nor of the inputs."""
    uses = {resolved(path): "is also an input" for path in inputs}
    for path in paths:
        if str(path) == "-":
            raise BadInput(
                "-: results go to files, not to standard output; name a file"
            )
        target = resolved(path)
        if target in uses:
            raise BadInput(f"{path}: cannot be written: it {uses[target]}")
        uses[target] = "is named for two outputs"
        if path.is_dir():
            raise BadInput(f"{path}: cannot be written: it is a folder")
        if not target.parent.is_dir():
            raise BadInput(
                f"{path}: cannot be written: the folder {target.parent} does not exist"
            )
        if not os.access(
            target if is_special(target) else target.parent, os.W_OK
        ):
            raise BadInput(
                f"{path}: cannot be written: no permission to write into {target.parent}; name a file elsewhere (-o)"
            )


def write_all(writers: Mapping[Path, WriteFunction]) -> None:
    """Write every file beside its place, then move all into place; whatever fails, no half-written file stays."""
    drafts: dict[Path, Path] = {}
    try:
        _write_drafts(writers, drafts)
        for path, draft in drafts.items():
            with _writing(path):
                os.replace(draft, resolved(path))
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def _write_drafts(
    writers: Mapping[Path, WriteFunction], drafts: dict[Path, Path]
) -> None:
    """Write each file beside its place, and note in `drafts` where; a device, at once."""
    for path, writer in writers.items():
        with _writing(path):
            if is_special(path):
                _write_special(path, writer)
                continue
            target = resolved(path)
            name = f".{target.name[:50]}.{secrets.token_hex(8)}"
            drafts[path] = target.with_name(name)
            _write_new(drafts[path], writer)


def _write_new(draft: Path, writer: WriteFunction) -> None:
    with open(draft, "xb") as file:
        writer(file)


def _write_special(target: Path, writer: WriteFunction) -> None:
    """By way of a nameless file, because a device may have no positions to seek."""
    with tempfile.TemporaryFile() as draft, open(target, "wb") as file:
        writer(draft)
        draft.seek(0)
        shutil.copyfileobj(draft, file)


def require_new_folder(path: Path) -> None:
    """Before hours of work: a folder can be made here, or is here and empty."""
    if path.is_dir() and not any(_listed(path)):
        place = path
    elif path.exists() or path.is_symlink():
        kind = "folder is not empty" if path.is_dir() else "file exists"
        raise BadInput(f"{path}: cannot be written: the {kind}")
    else:
        require_folder_name(path)
        place = resolved(path).parent
    if not place.is_dir():
        raise BadInput(
            f"{path}: cannot be written: the folder {place} does not exist"
        )
    if not os.access(place, os.W_OK):
        raise BadInput(f"{path}: cannot be written: no permission")


def _listed(path: Path) -> list[Path]:
    with _writing(path):
        return list(path.iterdir())


def write_folder(path: Path, contents: Mapping[str, str | bytes]) -> None:
    """A folder of bytes or ASCII texts by name: made beside its place and moved there as one, if it is not there already."""
    files = {name: _bytes(content) for name, content in contents.items()}
    if path.is_dir():
        write_all({path / name: _writer(files[name]) for name in files})
        return
    target = resolved(path)
    draft = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}")
    with _writing(path):
        draft.mkdir()
        try:
            for name, data in files.items():
                (draft / name).write_bytes(data)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def text_writer(text: str) -> WriteFunction:
    """Writes a text as UTF-8."""
    return _writer(text.encode("utf-8"))


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content


def _writer(data: bytes) -> WriteFunction:
    def write(file: IO[bytes]) -> None:
        file.write(data)

    return write


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise BadInput(
            f"{path}: cannot be written: {problem.strerror or problem}"
        ) from None


def is_special(path: Path) -> bool:
    """A device or pipe, such as /dev/null: written into, not replaced, and not read, which may wait for ever."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
