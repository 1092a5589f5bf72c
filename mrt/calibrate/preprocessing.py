"""Prepares the numbers of a file for a model, one sample at a time.

It changes layout, colour order, scale, mean and deviation:

    value = (x * scale - mean) / std, in float64, then float32

Arrays keep their size; `images.py` resizes and crops pictures first. A program that
takes bytes (`input_dtype` is "u8") contains the colour order and the arithmetic;
`outside` is the preparation that remains.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.errors import BadData
from mrt.option_values import (
    NumberOtherThan0,
    Numbers,
    PositiveNumbers,
    Sides,
)
from mrt.options import check_options, option

FloatArray = npt.NDArray[np.float32]
LAYOUTS = ("as is", "NCHW", "NHWC", "HW")
COLORS = ("RGB", "BGR")
INPUT_DTYPES = ("real", "u8", "whole")
WHOLE = np.iinfo(np.int16)
RESAMPLES = ("bilinear", "bicubic", "lanczos", "nearest", "box", "hamming")


@dataclass(frozen=True)
class Preprocessing:
    """The preparation of one input.

    `layout` is that of the source arrays; pictures are always NHWC in RGB at first.
    """

    layout: str = option(
        "as is",
        help="How the arrays of a file lie; pictures lie as NHWC.",
        allowed=LAYOUTS,
    )
    color: str = option(
        "RGB",
        help="The order that the model wants; the data is RGB.",
        allowed=COLORS,
    )
    scale: NumberOtherThan0 = option(
        1.0,
        help="value = (x * scale - mean) / std: a number, or a fraction such as 1/255.",
    )
    mean: Numbers = option((0.0,), help="One number, or one for each channel.")
    std: PositiveNumbers = option(
        (1.0,), help="One number, or one for each channel."
    )
    resize: Sides | None = option(
        None, help="Pictures: the length of the shorter side, or height,width."
    )
    crop: Sides | None = option(
        None, help="Pictures: the side of the centre square, or height,width."
    )
    resample: str = option(
        "bilinear", help="Pictures: how they are resized.", allowed=RESAMPLES
    )
    input_dtype: str = option(
        "real",
        help="u8: the program takes pictures' own bytes, NHWC in RGB, and prepares them itself. "
        "whole: floats that are integers, which stay exact.",
        allowed=INPUT_DTYPES,
    )
    # Whether anyone said what is done to the numbers; if not, pictures are refused.
    stated: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        check_options(self)

    def apply(
        self,
        sample: npt.NDArray[Any],
        shape: tuple[int, ...],
        where: str,
        name: str = "NAME",
    ) -> FloatArray:
        """Return `sample` as float32 of the model's input shape.

        Raise BadData, with a message that begins with `where`, if it does not fit; `name` is the input's.
        """
        values = _in_layout(sample, shape, self.layout)
        if values is None:
            raise BadData(f"{where}: {self._mismatch(sample, shape, name)}")
        if self.input_dtype == "u8":
            _require_bytes(values, where)
        axis = channel_axis(shape)
        if self.color == "BGR":
            if axis is None or shape[axis] != 3:
                raise BadData(
                    f"{where}: color = 'BGR' needs a model input with 3 channels, found shape {list(shape)}"
                )
            values = np.flip(values, axis)
        prepared = self._prepared(values, shape)
        if self.input_dtype == "whole":
            _require_whole(prepared, where)
        return prepared

    def _prepared(
        self, values: npt.NDArray[Any], shape: tuple[int, ...]
    ) -> FloatArray:
        """Return the numbers as float32, scaled and shifted."""
        if self.is_identity():
            return np.asarray(values, np.float32, order="C")
        axis = channel_axis(shape)
        mean = _per_channel("mean", self.mean, shape, axis)
        std = _per_channel("std", self.std, shape, axis)
        prepared = (values.astype(np.float64) * self.scale - mean) / std
        return np.asarray(prepared, np.float32, order="C")

    def outside(self, layout: str) -> Preprocessing:
        """Return the preparation that remains for a program of bytes: size and order of axes.

        Such a program is always NHWC. `layout` is the order of the model's own input,
        which "as is" refers to.
        """
        layout = layout if self.layout == "as is" else self.layout
        return replace(
            self, layout=layout, color="RGB", scale=1.0, mean=(0.0,), std=(1.0,)
        )

    def _mismatch(
        self, sample: npt.NDArray[Any], shape: tuple[int, ...], name: str
    ) -> str:
        """A sentence with the shape found, the shape expected and, if there is one, the layout that would fit."""
        problem = (
            f"a sample of shape {list(sample.shape)} (layout '{self.layout}') does not fit "
            f"the model's input {list(shape)}"
        )
        for other in LAYOUTS:
            if other == "as is" and self.input_dtype == "u8":
                continue  # it would mean the layout of the model's own input
            if (
                other != self.layout
                and _in_layout(sample, shape, other) is not None
            ):
                return f"{problem}; give --layout {shlex.quote(other)}, or layout = '{other}' in the config"
        if shape[:1] > (1,) and _without_ones(sample.shape) == _without_ones(
            shape[1:]
        ):
            sizes = ",".join(map(str, shape))
            return (
                f"{problem}, which takes {shape[0]} of them at once: give the array with a shape of "
                f"[N,{sizes}], or export the model with an open batch"
            )
        if _has_more_rows(sample.shape, shape):
            sizes = ",".join(map(str, sample.shape))
            problem += (
                f"; if the first dimension of '{name}' counts no samples, give --shape {name}={sizes}; "
                f"if it does, give the array with a shape of [N,{sizes.partition(',')[2]}]"
            )
        elif len(shape) == 4 and sample.ndim in (3, 4):
            problem += "; arrays are not resized: --resize and --crop are for folders of pictures"
            if self.layout == "as is":
                sizes = ",".join(map(str, (1, *sample.shape[-3:])))
                problem += f". Of a model that takes other sizes than its file says, give these: --shape {name}={sizes}"
        return problem

    def is_identity(self) -> bool:
        """Whether numbers are neither scaled nor shifted."""
        return (
            self.scale == 1 and set(self.mean) == {0} and set(self.std) == {1}
        )


def both(sides: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width; one number is that of a square."""
    return (sides, sides) if isinstance(sides, int) else sides


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """Return the axis of a model's input that counts channels; None if there is none.

    It is 1 (NCHW), unless only the last can be it (NHWC).
    """
    if len(shape) != 4:
        return 1 if len(shape) > 1 else None
    return 3 if shape[3] in (1, 3, 4) and min(shape[1:3]) > 4 else 1


def _in_layout(
    sample: npt.NDArray[Any], shape: tuple[int, ...], layout: str
) -> npt.NDArray[Any] | None:
    """Return the sample with its axes in the model's order; None if layout or size do not fit."""
    if layout == "HW":
        fits = sample.ndim == 2 and len(shape) == 4
        target = (
            (1, *sample.shape, 1)
            if channel_axis(shape) == 3
            else (1, 1, *sample.shape)
        )
        return sample.reshape(target) if fits and target == shape else None
    if layout in ("NHWC", "NCHW"):
        if sample.ndim == 3:
            sample = sample[np.newaxis]
        if sample.ndim != 4 or len(shape) != 4:
            return None
        to_last = channel_axis(shape) == 3
        if layout == "NHWC" and not to_last:
            sample = sample.transpose(0, 3, 1, 2)
        elif layout == "NCHW" and to_last:
            sample = sample.transpose(0, 2, 3, 1)
        return sample if sample.shape == shape else None
    fits = _without_ones(sample.shape) == _without_ones(shape)
    return sample.reshape(shape) if fits else None


def _has_more_rows(sample: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a sample has the model's shape but for a first dimension that is 1 in the model."""
    return shape[:1] == (1,) != sample[:1] and sample[1:] == shape[1:] != ()


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _require_bytes(values: npt.NDArray[Any], where: str) -> None:
    """Require integers of 0..255: numbers that were scaled before would all become 0 or 1."""
    if values.dtype.kind not in "biu":
        raise BadData(
            f"{where}: holds {values.dtype}; with input_dtype = 'u8' the program takes "
            "a picture's own bytes, 0..255 (uint8)"
        )
    if values.size and (values.min() < 0 or values.max() > 255):
        raise BadData(
            f"{where}: holds {values.min()}..{values.max()}; input_dtype = 'u8' means bytes, 0..255"
        )


def _require_whole(values: FloatArray, where: str) -> None:
    """Require integers of 16 bits, which the program takes as they are."""
    wrong = (
        (values != np.floor(values))
        | (values < WHOLE.min)
        | (values > WHOLE.max)
    )
    if wrong.any():
        raise BadData(
            f"{where}: holds {values[wrong].flat[0]:g}; input_dtype = 'whole' means integers of at most 16 bits"
        )


def _per_channel(
    name: str,
    numbers: tuple[float, ...],
    shape: tuple[int, ...],
    axis: int | None,
) -> npt.NDArray[np.float64]:
    """Return the numbers in a shape that broadcasts along the channel axis."""
    if len(numbers) == 1:
        return np.array(numbers[0], np.float64)
    if axis is None or shape[axis] != len(numbers):
        given = ",".join(f"{number:g}" for number in numbers)
        channels = 1 if axis is None else shape[axis]
        counts = "1 number" if channels == 1 else f"1 or {channels} numbers"
        raise BadData(
            f"--{name} {given}: expected {counts} for the model's input {list(shape)}"
        )
    return np.array(numbers, np.float64).reshape(
        [-1 if index == axis else 1 for index in range(len(shape))]
    )
