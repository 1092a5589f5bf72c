"""Tensors, formats and layouts: how integers represent reals while a program is written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cvm.program import DTYPE_RANGES, IntArray
from mrt.exact.fixed_point import FloatArray, quantize_array, usable_scale
from mrt.quantize.builder import Handle
from mrt.quantize.octaves import OctaveCode
from mrt.table.table import MeasuredRange

Layout = tuple[int, ...]
"""Physical axis i of the program's tensor is axis layout[i] of the float tensor."""

Interval = tuple[float, float]
"""The least and the greatest of some reals."""

NHWC: Layout = (0, 2, 3, 1)
OUTPUT_BITS = 16
HEADROOM = 2.0
"""A format of 16 bits or more has room for this many times the measured range."""

WIDE_BITS = 30
"""Bits of a wide value at the greatest magnitude expected."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """real = clip(scale * (integer - zero_point) + centre, low, high).

    `scale` has one entry, or one per index of the last (physical) axis, and so have the
    `centres` (see channel_centres.py: they are 0 except between convolutions and sums).
    `low` and `high` are the bounds of a Relu or Clip that the integers do not yet obey:
    requantizing the tensor applies them. `absorbed` marks a tensor whose channels have
    scales of their own because every reader absorbs them. With `octaves`, the integers are
    codes of the integers in this formula.
    """

    value: Handle
    scale: FloatArray
    zero_point: int
    layout: Layout
    low: float = -math.inf
    high: float = math.inf
    centres: FloatArray = field(default_factory=lambda: np.zeros(1))
    absorbed: bool = False
    octaves: OctaveCode | None = None

    @property
    def centred(self) -> bool:
        """Whether any channel has a centre other than 0."""
        return bool(np.any(self.centres))

    @property
    def per_tensor(self) -> bool:
        """Whether all elements share one scale."""
        return bool(self.scale.size == 1)

    @property
    def clipped(self) -> bool:
        """Whether a clip is not applied yet."""
        return self.low > -math.inf or self.high < math.inf

    @property
    def integral(self) -> bool:
        """Whether the integers are the reals themselves (indices, counts, booleans)."""
        if not self.per_tensor or self.clipped or self.centred:
            return False
        return float(self.scale[0]) == 1.0 and self.zero_point == 0


@dataclass(frozen=True)
class Format:
    """A dtype, one scale, a zero point, and the least and greatest integer in use."""

    dtype: str
    scale: float
    zero_point: int
    least: int
    most: int

    @property
    def lowest(self) -> float:
        """The least real."""
        return (self.least - self.zero_point) * self.scale

    @property
    def highest(self) -> float:
        """The greatest real."""
        return (self.most - self.zero_point) * self.scale


def signed_integers(bits: int) -> tuple[str, int, int]:
    """Return the dtype, the least and the greatest integer of a signed precision.

    That is the full type at 8 and 16 bits, else +-(2^(bits-1) - 1).
    """
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
    """Return the format of a value with this measured range.

    `interval` is proven: the least and the greatest real for any input. Up to 8 bits a
    value that is never negative is unsigned if `unsigned`; any other is symmetric, or
    affine if `scheme` is "affine".
    """
    if bits > 8:
        return _format_with_headroom(range_, bits, interval, scales)
    if interval[0] >= 0 and unsigned:
        return _unsigned_format(range_, bits, scales)
    if scheme == "affine":
        return _affine_format(range_, bits, scales)
    dtype, least, most = signed_integers(bits)
    greatest = range_.clipped_magnitude
    scale = usable_scale(greatest / (2 ** (bits - 1) - 1), scales)
    return Format(dtype, scale, 0, least, most)


def _format_with_headroom(
    range_: MeasuredRange, bits: int, interval: Interval, scales: str
) -> Format:
    """Return a symmetric format of more than 8 bits, with headroom up to the interval at most."""
    dtype, least, most = signed_integers(bits)
    possible = max(abs(interval[0]), abs(interval[1]))
    greatest = min(range_.magnitude * HEADROOM, possible)
    return Format(dtype, usable_scale(greatest / most, scales), 0, least, most)


def _unsigned_format(range_: MeasuredRange, bits: int, scales: str) -> Format:
    """Return a format with all 2^bits integers for 0 and above, from the zero point on."""
    half = 2 ** (bits - 1)
    scale = usable_scale(range_.hi / (2 * half - 1), scales)
    return Format("i8", scale, -half, -half, half - 1)


def _affine_format(range_: MeasuredRange, bits: int, scales: str) -> Format:
    """Return a format whose 2^bits integers span the measured range, extended to contain 0."""
    half = 2 ** (bits - 1)
    low, high = min(range_.lo, 0.0), max(range_.hi, 0.0)
    scale = usable_scale((high - low) / (2 * half - 1), scales)
    from_least = math.floor(-low / scale + 0.5)  # of 0 to 2 * half - 1
    return Format("i8", scale, from_least - half, -half, half - 1)


def wide_format(
    range_: MeasuredRange, interval: Interval, scales: str
) -> Format:
    """Return a format of 30 bits, with headroom up to the proven interval at most."""
    expected = range_.magnitude * HEADROOM
    greatest = min(expected, max(abs(interval[0]), abs(interval[1])))
    scale = usable_scale(math.ldexp(greatest, -WIDE_BITS), scales)
    return Format("i32", scale, 0, -(2**WIDE_BITS), 2**WIDE_BITS)


def quantized(reals: npt.ArrayLike, target: Format) -> IntArray:
    """Return the integers nearest to real numbers in a format, half up, in int64."""
    zero = target.zero_point
    least, most = target.least - zero, target.most - zero
    return quantize_array(reals, target.scale, least, most) + zero


def quantized_point(real: float, target: Format) -> int:
    """Return the integer nearest to one real number in a format."""
    return int(quantized(real, target))


def identity(rank: int) -> Layout:
    """Return the layout of a tensor whose axes are in the float model's order."""
    return tuple(range(rank))


def common_layout(tensors: Iterable[Tensor], rank: int) -> Layout:
    """Return the layout in which tensors are combined to a result of this rank.

    It is the first layout of a tensor of that rank that differs from the float model's
    order, so that this tensor need not be transposed.
    """
    float_order = identity(rank)
    for tensor in tensors:
        if len(tensor.layout) == rank and tensor.layout != float_order:
            return tensor.layout
    return float_order


def in_layout(array: IntArray, layout: Layout) -> IntArray:
    """Return a constant in the layout of the tensor that it is combined with."""
    missing = len(layout) - array.ndim
    return array.reshape((1,) * missing + array.shape).transpose(layout)
