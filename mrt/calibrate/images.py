"""Reads pictures in a folder.

They are listed with their classes, opened as RGB or grey, and resized and cropped to
the model's size.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from mrt.calibrate.preprocessing import Preprocessing, channel_axis
from mrt.errors import BadData

SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".bmp",
    ".webp",
    ".gif",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
)
LABELS_FILE = "labels.csv"
_KEPT = 0.875  # the share of the shorter side that is kept without options: 224 of 256 pixels


@dataclass(frozen=True)
class Picture:
    """One image file and its class, if known."""

    path: Path
    label: int | None


def list_pictures(folder: Path) -> list[Picture]:
    """Return the rows of labels.csv (file, class) in their order.

    Without such a file, return every image sorted by name.
    """
    table = folder / LABELS_FILE
    if table.exists():
        pictures = _read_labels(table)
    else:
        pictures = [
            Picture(path, None)
            for path in sorted(folder.iterdir())
            if path.suffix.lower() in SUFFIXES
        ]
    if not pictures:
        raise BadData(
            f"{folder}: holds no images ({', '.join(SUFFIXES[:3])}, ...) and no {LABELS_FILE} that lists any"
        )
    return pictures


def read_picture(
    path: Path, shape: tuple[int, ...], preprocessing: Preprocessing
) -> npt.NDArray[np.uint8]:
    """Return the picture as uint8 [1, H, W, C].

    Without options, it has the size of the model's input.
    """
    axis = channel_axis(shape)
    if (
        len(shape) != 4
        or axis is None
        or shape[0] != 1
        or shape[axis] not in (1, 3)
    ):
        raise BadData(
            f"{path}: a picture does not fit the model's input {list(shape)}; give its samples as .npz"
        )
    height, width = (shape[2], shape[3]) if axis == 1 else (shape[1], shape[2])
    try:
        with Image.open(path) as file:
            pixels = file.convert("L" if shape[axis] == 1 else "RGB")
            picture = _sized(pixels, (width, height), preprocessing)
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as problem:
        raise BadData(
            f"{path}: cannot be read as an image ({problem}); remove it or replace it"
        ) from None
    return np.asarray(picture, np.uint8).reshape(
        1, *picture.size[::-1], shape[axis]
    )


def _sized(
    picture: Image.Image, size: tuple[int, int], preprocessing: Preprocessing
) -> Image.Image:
    """Resize and crop a picture by the options.

    Without options, return its centre at the model's size.
    """
    if preprocessing.resize is not None:
        picture = _resize_shorter_side(picture, preprocessing.resize)
    elif preprocessing.crop is None and picture.size != size:
        picture = _resize_shorter_side(picture, round(max(size) / _KEPT))
    if preprocessing.crop is not None:
        return _crop_centre(picture, (preprocessing.crop, preprocessing.crop))
    return _crop_centre(picture, size)


def _resize_shorter_side(picture: Image.Image, side: int) -> Image.Image:
    shorter = min(picture.size)
    if shorter == side:
        return picture
    width, height = (
        max(side, round(length * side / shorter)) for length in picture.size
    )
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _crop_centre(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return the centre of a larger picture.

    A smaller one stays: it is refused later because its shape is not the model input's.
    """
    if picture.width < size[0] or picture.height < size[1]:
        return picture
    left, top = (picture.width - size[0]) // 2, (picture.height - size[1]) // 2
    return picture.crop((left, top, left + size[0], top + size[1]))


def _read_labels(table: Path) -> list[Picture]:
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadData(f"{table}: cannot be read ({problem})") from None
    if rows and rows[0] == ["file", "class"]:
        rows = rows[1:]
    return [
        _read_row(table, number, row)
        for number, row in enumerate(rows, 1)
        if row
    ]


def _read_row(table: Path, number: int, row: list[Any]) -> Picture:
    if len(row) != 2 or not row[1].strip().isdecimal():
        raise BadData(
            f"{table}: row {number} is {','.join(row)!r}, expected a file name and the number of its class"
        )
    path = table.parent / row[0]
    if not path.resolve().is_relative_to(table.parent.resolve()):
        raise BadData(
            f"{table}: row {number} names {row[0]!r}, which lies outside the folder"
        )
    if not path.is_file():
        raise BadData(
            f"{table}: row {number} names {row[0]!r}, which does not exist"
        )
    return Picture(path, int(row[1]))
