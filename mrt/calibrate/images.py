"""Reads pictures in a folder.

They are listed with their classes, opened as RGB or grey, and resized and cropped to
the model's size.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from mrt.calibrate.preprocessing import Preprocessing, both, channel_axis
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
MAX_LABELS = 10**8
"""The greatest number of a class."""
_GREY = ("1", "L", "LA")
_DEEP = ("I", "F")
"""How Pillow's modes of more than 8 bits begin; its conversion to bytes cuts off what is above 255."""
_KEPT = 0.875  # of the shorter side, with no size given: 224 of 256 pixels


@dataclass(frozen=True)
class Picture:
    """One image file and its class, if known."""

    path: Path
    label: int | None


def list_pictures(folder: Path, classes: Sequence[str] = ()) -> list[Picture]:
    """The images of a folder in a fixed order, with their classes where these are known.

    These are the rows of labels.csv (file, class) or, where there is none, the images in the
    folder, sorted by name or, where there are none, those in its sub-folders: one for each
    class, numbered in the order of their names unless `classes` are the names of all.
    """
    table = folder / LABELS_FILE
    if table.exists():
        pictures = _read_labels(table)
        if not pictures:
            raise BadData(f"{table}: names no file; expected rows file,class")
    else:
        pictures = [Picture(path, None) for path in _images_in(folder)]
        pictures = pictures or _images_by_class(folder, classes)
    if not pictures:
        raise BadData(
            f"{folder}: holds no images ({', '.join(SUFFIXES[:3])}, ...), no sub-folders with some, and no {LABELS_FILE}"
        )
    return pictures


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES
    )


def _images_by_class(folder: Path, classes: Sequence[str]) -> list[Picture]:
    """The images in the sub-folders, class after class. Every sub-folder counts, so each must hold some."""
    places = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )
    numbers = _numbers_of([place.name for place in places], classes)
    pictures: list[Picture] = []
    for place, number in zip(places, numbers, strict=True):
        images = _images_in(place)
        if not images:
            raise BadData(
                f"{place}: holds no images, but the other sub-folders of {folder} are taken for one class each; "
                f"move it away, or add {LABELS_FILE}"
            )
        pictures += [Picture(path, number) for path in images]
    return pictures


def _numbers_of(
    places: Sequence[str], classes: Sequence[str]
) -> list[int | None]:
    """The class of each sub-folder; unknown where the names of classes neither name them nor are as many."""
    if classes and set(places) <= set(classes):
        return [classes.index(place) for place in places]
    if classes and len(classes) != len(places):
        return [None] * len(places)
    return list(range(len(places)))


@dataclass
class PictureNotes:
    """What was done to pictures without being asked for; each is noted of the first picture alone."""

    texts: list[str] = field(default_factory=list)
    has_grey: bool = False
    has_cut: bool = False

    def grey(self, path: Path) -> None:
        """Note that a grey picture becomes one in colour."""
        if not self.has_grey:
            self.texts.append(
                f"{path} is grey, but the model takes colour: its three channels are equal (any others are not listed)"
            )
        self.has_grey = True

    def cut(self, shorter_side: int, size: tuple[int, int]) -> None:
        """Note that pictures lose their edges."""
        width, height = size
        crop = f"{height}" if height == width else f"{height},{width}"
        if not self.has_cut:
            self.texts.append(
                f"pictures were resized to {shorter_side} and cropped to {crop}, as for ImageNet; "
                f"--resize {height},{width} keeps their edges"
            )
        self.has_cut = True


def read_picture(
    path: Path,
    shape: tuple[int, ...],
    preprocessing: Preprocessing,
    notes: PictureNotes | None = None,
) -> npt.NDArray[np.uint8]:
    """The picture as uint8 [1, H, W, C]; without options, at the size of the model's input.

    `notes` receive what is done to it that nobody asked for.
    """
    notes = PictureNotes() if notes is None else notes
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
            if file.mode.startswith(_DEEP):
                raise BadData(
                    f"{path}: its pixels have more than 8 bits (mode {file.mode}); "
                    "convert it to 8 bits, or give the samples as .npz"
                )
            if shape[axis] == 3 and file.mode in _GREY:
                notes.grey(path)
            pixels = file.convert("L" if shape[axis] == 1 else "RGB")
            picture = _sized(pixels, (width, height), preprocessing, notes)
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as problem:
        raise BadData(
            f"{path}: cannot be read as an image ({problem}); remove it or replace it"
        ) from None
    _require_size(path, picture.size, (width, height))
    return np.asarray(picture, np.uint8).reshape(
        1, *picture.size[::-1], shape[axis]
    )


def _require_size(
    path: Path, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    """Raise BadData, with the options that would give a picture the expected width and height, if it has others."""
    if size == expected:
        return
    width, height = expected
    crop = f"{height}" if height == width else f"{height},{width}"
    raise BadData(
        f"{path}: is {size[0]}x{size[1]} pixels as resized and cropped, but the model's input is {width}x{height}; "
        f"give --resize {height},{width}, or --resize {round(max(expected) / _KEPT)} --crop {crop}, or neither"
    )


def _sized(
    picture: Image.Image,
    size: tuple[int, int],
    preprocessing: Preprocessing,
    notes: PictureNotes,
) -> Image.Image:
    """Return the picture resized and cropped by the options; without them, its centre at the model's size."""
    resample = Image.Resampling[preprocessing.resample.upper()]
    resize = preprocessing.resize
    is_unstated = resize is None and preprocessing.crop is None
    if is_unstated and picture.size != size:
        resize = round(max(size) / _KEPT)
    if isinstance(resize, int):
        picture = _resize_shorter_side(picture, resize, resample)
    elif resize is not None and picture.size != resize[::-1]:
        picture = picture.resize(resize[::-1], resample)
    if preprocessing.crop is not None:
        size = both(preprocessing.crop)[::-1]
    if is_unstated and isinstance(resize, int) and picture.size != size:
        notes.cut(resize, size)
    return _crop_centre(picture, size)


def _resize_shorter_side(
    picture: Image.Image, side: int, resample: Image.Resampling
) -> Image.Image:
    shorter = min(picture.size)
    if shorter == side:
        return picture
    width, height = (
        max(side, round(length * side / shorter)) for length in picture.size
    )
    return picture.resize((width, height), resample)


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
        with table.open(newline="", encoding="utf-8-sig") as stream:
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
    if not _lies_in(table.parent, path):
        raise BadData(
            f"{table}: row {number} names {row[0]!r}, which lies outside the folder"
        )
    if not path.is_file():
        raise BadData(
            f"{table}: row {number} names {row[0]!r}, which does not exist"
        )
    return Picture(path, _class_of(table, number, row[1].strip()))


def _class_of(table: Path, number: int, digits: str) -> int:
    """The class in a row. Digits are counted first, since Python refuses to read thousands of them."""
    longest = len(str(MAX_LABELS))
    if len(digits.lstrip("0")) > longest or int(digits) > MAX_LABELS:
        raise BadData(
            f"{table}: row {number} has the class {digits[: longest + 1]}{'...' if len(digits) > longest + 1 else ''}; "
            f"expected at most {MAX_LABELS}"
        )
    return int(digits)


def _lies_in(folder: Path, path: Path) -> bool:
    """Whether a path is in the folder by its name. Links are followed, as those of a folder without a table are."""
    plain = Path(os.path.normpath(path))
    return plain.is_relative_to(os.path.normpath(folder))
