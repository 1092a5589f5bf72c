"""Small pictures of samples, as data that a page holds itself."""

from __future__ import annotations

import base64
import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from mrt.calibrate.preprocessing import Preprocessing, channel_axis

SIDE = 128  # pixels; larger pictures are made smaller
SMALL = 48  # pixels; up to here each is worth storing exactly
QUALITY = 82  # of JPEG
MOST_PIXELS = 2**26
FEWEST = 4  # pixels on a side, for something that people can look at


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether an input of this shape can be looked at: one picture in grey or in colour."""
    axis = channel_axis(shape)
    if len(shape) != 4 or shape[0] != 1 or axis is None:
        return False
    sides = [size for place, size in enumerate(shape) if place not in (0, axis)]
    size = sides[0] * sides[1]
    return (
        shape[axis] in (1, 3) and min(sides) >= FEWEST and size <= MOST_PIXELS
    )


def thumbnail(sample: npt.NDArray[np.float32], prepared: Preprocessing) -> str:
    """Return a data URI of a sample as the model gets it, its preparation undone.

    The least number becomes black and the greatest white, since it is not stated what range
    the numbers of a file have.
    """
    axis = channel_axis(sample.shape)
    pixels = np.moveaxis(sample, axis or 1, -1)[0].astype(np.float64)
    pixels = pixels * _each(prepared.std, pixels) + _each(prepared.mean, pixels)
    pixels /= prepared.scale
    if prepared.color == "BGR":
        pixels = pixels[..., ::-1]
    low, high = float(pixels.min()), float(pixels.max())
    grey_levels = (pixels - low) * (255 / max(high - low, 1e-30))
    picture = Image.fromarray(
        np.rint(grey_levels).astype(np.uint8).squeeze(-1)
        if pixels.shape[-1] == 1
        else np.rint(grey_levels).astype(np.uint8)
    )
    picture.thumbnail((SIDE, SIDE))
    return _data_uri(picture)


def _each(
    numbers: tuple[float, ...], pixels: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """One number for each channel; the first, if they do not fit."""
    fits = len(numbers) == pixels.shape[-1]
    return np.array(numbers if fits else numbers[:1])


def _data_uri(picture: Image.Image) -> str:
    file = io.BytesIO()
    kind = "png" if max(picture.size) <= SMALL else "jpeg"
    options = {"quality": QUALITY} if kind == "jpeg" else {"optimize": True}
    picture.save(file, kind, **options)
    encoded = base64.b64encode(file.getvalue()).decode("ascii")
    return f"data:image/{kind};base64,{encoded}"
