"""How integers stand for reals while a program is written: a tensor with its scale, and the formats it can be brought to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cvm.program import DTYPE_RANGES
from mrt.exact.fixed_point import FloatArray, usable_scale
from mrt.quantize.builder import Handle
from mrt.table.table import MeasuredRange

Layout = tuple[
    int, ...
]  # physical axis i of the program's tensor is logical axis layout[i] of the float tensor

Interval = tuple[float, float]  # of reals

NHWC: Layout = (0, 2, 3, 1)
OUTPUT_BITS = 16
HEADROOM = 2.0  # 16-bit formats can afford to reach beyond what calibration saw


@dataclass(frozen=True, eq=False)
class Tensor:
    """real = clip(scale * (integer - zero_point) + centre, low, high).

    `scale` has one entry, or one per index of the last (physical) axis, and so have the `centres` (see centres.py: they are 0
    but between convolutions and sums). `low` and `high` are what a Relu or Clip asked for
    and the integers do not yet obey: whoever brings the tensor to a format obeys them. `absorbed`: channels were given scales
    of their own because whatever reads the tensor takes them up.
    """

    value: Handle
    scale: FloatArray
    zero_point: int
    layout: Layout
    low: float = -math.inf
    high: float = math.inf
    centres: FloatArray = field(default_factory=lambda: np.zeros(1))
    absorbed: bool = False

    @property
    def centred(self) -> bool:
        """Whether any channel is counted from elsewhere than 0."""
        return bool(np.any(self.centres))

    @property
    def per_tensor(self) -> bool:
        """Whether one scale holds for all."""
        return bool(self.scale.size == 1)

    @property
    def clipped(self) -> bool:
        """Whether a clip is still to be applied."""
        return self.low > -math.inf or self.high < math.inf

    @property
    def integral(self) -> bool:
        """Whether the integers are the reals themselves, as those of indices, counts and truths are."""
        return (
            self.per_tensor
            and float(self.scale[0]) == 1.0
            and self.zero_point == 0
            and not (self.clipped or self.centred)
        )


@dataclass(frozen=True)
class Format:
    """A dtype, a scale for the whole tensor, a zero point, and the least and greatest integer in use."""

    dtype: str
    scale: float
    zero_point: int
    least: int
    most: int

    @property
    def lowest(self) -> float:
        """The least real."""
        return (self.least - self.zero_point) * self.scale


def limits(bits: int) -> tuple[str, int, int]:
    """dtype, least and greatest integer of a signed precision: the whole type at 8 and 16 bits, else +-(2^(bits-1) - 1)."""
    dtype = "i16" if bits > 8 else "i8"
    if bits in (8, 16):
        return dtype, *DTYPE_RANGES[dtype]
    most = 2 ** (bits - 1) - 1
    return dtype, -most, most


def choose_format(
    range_: MeasuredRange,
    bits: int,
    *,
    interval: Interval,
    scales: str,
    scheme: str,
    unsigned: bool = True,
) -> Format:
    """The format of a value with this range: `unsigned` if never negative, else signed around 0 (or anywhere: affine).

    `interval` are the least and the greatest real that any input can make of it.
    """
    dtype, least, most = limits(bits)
    if bits > 8:
        alpha = min(
            max(abs(range_.min), abs(range_.max)) * HEADROOM,
            max(abs(end) for end in interval),
        )
        return Format(dtype, usable_scale(alpha / most, scales), 0, least, most)
    half = 2 ** (bits - 1)
    if interval[0] >= 0 and unsigned:
        return Format(
            dtype,
            usable_scale(range_.hi / (2 * half - 1), scales),
            -half,
            -half,
            half - 1,
        )
    if scheme == "affine":
        low, high = min(range_.lo, 0.0), max(range_.hi, 0.0)
        scale = usable_scale((high - low) / (2 * half - 1), scales)
        zero_point = min(max(math.floor(-low / scale + 0.5) - half, -half), half - 1)
        return Format(dtype, scale, zero_point, -half, half - 1)
    alpha = max(abs(range_.lo), abs(range_.hi))
    return Format(dtype, usable_scale(alpha / (half - 1), scales), 0, least, most)
