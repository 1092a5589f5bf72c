"""Arrays in `.npy` and `.npz` files from strangers: no pickles, and every claim is checked before it is believed.

A compressed member may be large, or pack well, but not both: at most 1 GiB or 20 times its packed size.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cvm.errors import BadInput
from cvm.file.disk import open_to_read
from cvm.file.npy import MAGIC, NpyHeader, read_array

ArrayCheck = Callable[[str, NpyHeader], None]
"""Raises BadInput for an array that does not suit the input of that name."""
RealOrInteger = npt.NDArray[Any]
MAX_PACKED_BYTES = 2**30
MAX_PACKED_RATIO = 20
_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


class ArrayFile(Mapping[str, RealOrInteger]):
    """The arrays of a file by input name, read one at a time when asked for, and not kept.

    A `.npy` file, or the array `x` of an `.npz` that has none of the input's name, serves a program's only input. `check` refuses
    what does not suit an input by its header, before the array takes memory.
    """

    def __init__(
        self,
        path: Path,
        inputs: tuple[str, ...],
        check: ArrayCheck | None = None,
    ) -> None:
        self._path, self._check = path, check
        with open_to_read(path) as (file, _):
            magic = file.read(6)
        if magic == MAGIC:
            if len(inputs) != 1:
                listed = ", ".join(inputs)
                raise BadInput(
                    f"{path}: one array for {len(inputs)} inputs; give an .npz with the arrays {listed}"
                )
            self._members = {inputs[0]: ""}
        elif magic[:2] == b"PK":
            self._members = self._find_members(inputs)
        else:
            raise BadInput(f"{path}: neither an .npy nor an .npz file")

    def __getitem__(self, name: str) -> RealOrInteger:
        member = self._members[name]
        check = partial(self._check, name) if self._check else None
        with open_to_read(self._path) as (file, size):
            if not member:
                return read_array(file, size, str(self._path), check)
            where = f"{self._path}: array '{member.removesuffix('.npy')}'"
            try:
                with zipfile.ZipFile(file) as archive:
                    info = archive.getinfo(member)
                    _check_packing(info, where)
                    with archive.open(info) as unpacked:
                        return read_array(
                            unpacked, info.file_size, where, check
                        )
            except _BROKEN_ZIP as problem:
                raise BadInput(f"{where}: broken: {problem}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def _find_members(self, inputs: tuple[str, ...]) -> dict[str, str]:
        with open_to_read(self._path) as (file, _):
            try:
                with zipfile.ZipFile(file) as archive:
                    names = archive.namelist()
            except _BROKEN_ZIP as problem:
                raise BadInput(
                    f"{self._path}: not a readable .npz file: {problem}"
                ) from None
        members = {name: f"{name}.npy" for name in inputs}
        if (
            len(inputs) == 1
            and members[inputs[0]] not in names
            and "x.npy" in names
        ):
            members = {inputs[0]: "x.npy"}
        for name, member in members.items():
            if member not in names:
                raise BadInput(
                    f"{self._path}: no array '{name}'; it has {_listed(names)}"
                )
            if names.count(member) > 1:
                raise BadInput(f"{self._path}: array '{name}' is there twice")
        return members


def _listed(members: list[str]) -> str:
    names = [f"'{member.removesuffix('.npy')}'" for member in members]
    return (
        ", ".join(names[:8])
        + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        or "none"
    )


def _check_packing(info: zipfile.ZipInfo, where: str) -> None:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadInput(
            f"{where}: compression method {info.compress_type}; save it with numpy.savez"
        )
    if info.file_size > max(
        MAX_PACKED_BYTES, MAX_PACKED_RATIO * info.compress_size
    ):
        raise BadInput(
            f"{where}: {info.compress_size} bytes that claim to unpack to {info.file_size}; save it with numpy.savez"
        )
