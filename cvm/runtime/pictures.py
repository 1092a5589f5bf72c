"""Picture files as inputs of a program that takes bytes: the decoded pixels, neither resized nor changed.

Pillow decodes. Two versions of it may decode a JPEG differently: a receipt holds the digest of
the pixels, not of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cvm.errors import BadInput
from cvm.file.disk import NOT_REGULAR, is_special
from cvm.program import Input, IntArray, Program

SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".webp",
    ".gif",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
)
_GREY = ("1", "L", "LA")  # Pillow's modes without colour
_DEEP = ("I", "F")
"""How Pillow's modes of more than 8 bits begin; its conversion to bytes cuts off what is above 255."""
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def _inner_folders(path: Path) -> str:
    """What to do where pictures may lie in the folders of a folder, for an error."""
    inner = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    if not inner:
        return ""
    more = f" and {len(inner) - 3} more" if len(inner) > 3 else ""
    return (
        f", only folders ({', '.join(inner[:3])}{more}), which are not looked into: "
        f"--input {path / inner[0]}"
    )


def are_pictures(path: Path, program: Program) -> bool:
    """Whether a path is meant to hold pictures: a file with a picture's suffix, or a folder."""
    return path.suffix.lower() in SUFFIXES or path.is_dir()


class Pictures(Mapping[str, IntArray]):
    """The picture of a file, or those of a folder by name, for a program's only input; read when needed."""

    def __init__(self, path: Path, program: Program) -> None:
        self._input = _input_of_pictures(path, program)
        self._grey: list[Path] = []  # that became pictures in colour
        candidates = path.iterdir() if path.is_dir() else iter([path])
        self._paths = sorted(
            candidate
            for candidate in candidates
            if candidate.suffix.lower() in SUFFIXES
        )
        for candidate in filter(is_special, self._paths):
            raise BadInput(f"{candidate}: {NOT_REGULAR}")
        if not self._paths:
            raise BadInput(
                f"{path}: holds no pictures ({', '.join(SUFFIXES[:3])}, ...){_inner_folders(path)}"
            )

    def __getitem__(self, name: str) -> IntArray:
        if name != self._input.name:
            raise KeyError(name)
        self._grey.clear()
        return np.stack(
            [_read(path, self._input, self._grey) for path in self._paths]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the pictures that were read."""
        if not self._grey:
            return ()
        more = len(self._grey) - 1
        others = f" and {more} more" if more else ""
        return (
            f"{self._grey[0]}{others}: grey, read as if in colour, each channel the same",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pictures' files, in the order of the samples."""
        return tuple(path.name for path in self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter([self._input.name])

    def __len__(self) -> int:
        return 1


def _input_of_pictures(path: Path, program: Program) -> Input:
    if (port := _fitting(program)) is not None:
        return port
    listed = ", ".join(
        f"'{port.name}' {port.type.dtype}{list(port.type.shape)}"
        for port in program.inputs
    )
    raise BadInput(
        f"{path}: pictures are for one input u8[1,H,W,C]; this program's is {listed}; "
        "give an .npz or .npy, or a program by mrt convert --input-dtype u8"
    )


def _fitting(program: Program) -> Input | None:
    """The only input, if a picture fits it."""
    if len(program.inputs) != 1:
        return None
    (port,) = program.inputs
    shape = port.type.shape
    fits = (
        port.type.dtype == "u8"
        and len(shape) == 4
        and shape[0] == 1
        and shape[3] in _MODES
    )
    return port if fits else None


def _read(path: Path, port: Input, grey: list[Path]) -> IntArray:
    """[H,W,C] uint8. The size is compared before anything is decoded. One without colour, where some is due, joins `grey`."""
    try:
        from PIL import Image
    except ImportError:
        raise BadInput(
            f"{path}: reading pictures needs pillow (pip install pillow); arrays do not"
        ) from None
    _, height, width, channels = port.type.shape
    try:
        with Image.open(path) as picture:
            if picture.size != (width, height):
                size = "x".join(map(str, picture.size))
                raise BadInput(
                    f"{path}: is {size} pixels, the input '{port.name}' {width}x{height}; resize or crop it first"
                )
            if picture.mode.startswith(_DEEP):
                raise BadInput(
                    f"{path}: its pixels have more than 8 bits (mode {picture.mode}); "
                    "convert it to 8 bits, or give integers as .npz"
                )
            if channels > 1 and picture.mode in _GREY:
                grey.append(path)
            pixels = np.asarray(picture.convert(_MODES[channels]), np.uint8)
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as problem:
        raise BadInput(
            f"{path}: cannot be read as a picture: {problem}"
        ) from None
    return pixels.reshape(height, width, channels)
