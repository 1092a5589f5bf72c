"""Tables for operands of 16 bits: straight lines between 513 points, or an entry for each integer.

Lines are taken where they are close at every integer that can occur: no further from the
entry than one step of the result plus what one step of the operand changes. Rounding
before and after the table may do half as much already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvm.program import DTYPE_RANGES, DTYPES, IntArray, arithmetic, dtype_name
from mrt.exact.fixed_point import multipliers_and_shifts, usable_scale
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import Format

LEAST, MOST = DTYPE_RANGES["i16"]
SEGMENT = 128
"""Integers from one point to the next."""


@dataclass(frozen=True)
class IndexSpread:
    """Which integer of the instruction stands for x: 2^`bits` times what x, held in an interval, is above `low`."""

    low: int = LEAST
    high: int = MOST
    bits: int = 0

    @property
    def reach(self) -> int:
        """Integers of x from one point to the next."""
        return SEGMENT >> self.bits

    def index(self, places: IntArray) -> IntArray:
        """Return the integers for some of x."""
        held = places.astype(np.int64).clip(self.low, self.high)
        return ((held - self.low) << self.bits) + LEAST


@dataclass(frozen=True)
class Lines:
    """513 points, which count in `step` steps of the result; the dtype and the zero point of the result."""

    points: IntArray
    step: float
    dtype: str
    zero_point: int = 0
    spread: IndexSpread = IndexSpread()

    @property
    def allowed(self) -> bool:
        """Whether the instruction takes these points: 16 bits, and no jump of more."""
        both = np.append(self.points, np.diff(self.points))
        return bool(both.min() >= LEAST and both.max() <= MOST)

    @property
    def factors(self) -> tuple[IntArray, IntArray]:
        """Multiplier and shift from 128ths of a point's step to the result's."""
        return multipliers_and_shifts([self.step / SEGMENT])

    def at(self, places: IntArray) -> IntArray:
        """Return the result at some integers."""
        index, rest = np.divmod(self.spread.index(places) - LEAST, SEGMENT)
        rises = np.diff(self.points)
        between = self.points[index] * SEGMENT + rises[index] * rest
        multiplier, shift = (array.astype(np.int64) for array in self.factors)
        nearest = arithmetic.rescale(between, multiplier, shift)
        return (nearest + self.zero_point).clip(*DTYPE_RANGES[self.dtype])

    def are_close(
        self, places: IntArray, entries: IntArray, tolerance: int = 1
    ) -> bool:
        """Whether they may stand for the entries at places in order, up to so many steps beside what neighbours differ by."""
        wide = entries.astype(np.int64)
        changes = np.abs(np.diff(wide))
        before, after = np.append(0, changes), np.append(changes, 0)
        error = np.abs(self.at(places) - wide)
        return bool((error <= tolerance + np.maximum(before, after)).all())


def close_lines(
    target: Format,
    entries: IntArray,
    first: int,
    sample: Callable[[Format], IntArray],
    scales: str,
    tolerance: int = 1,
) -> Lines | None:
    """Return lines that are close to the entries of a format, as `are_close` defines it; None if there are none.

    The entries are those of the integers that can occur, from `first` on; `sample` gives
    those of other formats. The points use all of their 16 bits. Where points 128 apart
    are too few, they stand closer if the curve is flat at its ends.
    """
    counts = entries.astype(np.int64) - target.zero_point
    places = first + np.arange(len(entries))
    for spread in (IndexSpread(), _between_flat_ends(counts, first)):
        greatest = int(np.abs(_points(counts, first, spread)).max())
        step = usable_scale(max(greatest, 1) / MOST, scales)
        fine = sample(_in_steps(target, step)).astype(np.int64)
        points = _points(fine, first, spread).clip(LEAST, MOST)
        for chosen in (_moved(points), points):
            lines = Lines(chosen, step, target.dtype, target.zero_point, spread)
            close = lines.allowed and lines.are_close(
                places, entries, tolerance
            )
            if close:
                return lines
    return None


def close_points(entries: IntArray) -> IntArray | None:
    """Return 513 points in steps of the entries of i16, if lines between them are close; else None."""
    points = _points(entries.astype(np.int64), LEAST, IndexSpread())
    for chosen in (_moved(points), points):
        lines = Lines(chosen, 1.0, "i32")
        if lines.allowed and lines.are_close(
            np.arange(LEAST, MOST + 1), entries
        ):
            return narrowed(chosen)
    return None


def _between_flat_ends(counts: IntArray, first: int) -> IndexSpread:
    """Return the integers between which counts change, spread by the greatest power of two, 128 at most."""
    changes = np.flatnonzero(np.diff(counts))
    if not changes.size:
        return IndexSpread()
    low, high = first + int(changes[0]), first + int(changes[-1]) + 1
    bits = ((MOST - LEAST) // (high - low)).bit_length() - 1
    bits = min(bits, SEGMENT.bit_length() - 1)
    return IndexSpread(low, high, bits) if bits else IndexSpread()


def _in_steps(target: Format, step: float) -> Format:
    """Return a format of 16 bits, without zero point, for points."""
    least = math.floor((target.least - target.zero_point) / step)
    most = math.ceil((target.most - target.zero_point) / step)
    scale = target.scale * step
    return Format("i16", scale, 0, max(LEAST, least), min(MOST, most))


def _points(counts: IntArray, first: int, spread: IndexSpread) -> IntArray:
    """Return the counts at 513 points; beyond those given they follow the outermost as far as a point."""
    places = spread.low - first + spread.reach * np.arange(513)
    last = len(counts) - 1
    width = min(spread.reach, last)
    fall, rise = counts[0] - counts[width], counts[-1] - counts[last - width]
    before = (-places).clip(0, spread.reach)
    after = (places - last).clip(0, spread.reach)
    beyond = (fall * before + rise * after) // max(width, 1)
    points: IntArray = counts[places.clip(0, last)] + beyond
    return points


def _moved(points: IntArray) -> IntArray:
    """Return the points with lines that err to both sides.

    Lines between points of a curve that bends evenly lie on one side of it, up to an
    eighth of the second difference of the points. The points move by half of that.
    """
    bends = np.zeros_like(points)
    bends[1:-1] = np.diff(points, 2)
    moved: IntArray = points - (bends + 8) // 16
    return moved.clip(points.min(), points.max())


def emit_lines(net: LoweringContext, index: Handle, lines: Lines) -> Handle:
    """Emit the lines, and the rescale of what they give."""
    points = net.constant(narrowed(lines.points))
    place = _emit_spread(net, index, lines.spread)
    handle = net.builder.emit("interpolate", place, points)
    multiplier, shift = (net.constant(array) for array in lines.factors)
    return net.builder.emit(
        "rescale",
        handle,
        multiplier,
        shift,
        input_zp=0,
        output_zp=lines.zero_point,
        dtype=lines.dtype,
    )


def _emit_spread(
    net: LoweringContext, index: Handle, spread: IndexSpread
) -> Handle:
    if spread == IndexSpread():
        return index
    emit = net.builder.emit
    a = Arithmetic(net.builder, net.builder.types[index].rank)
    held = a.clamp(emit("cast", index, dtype="i32"), spread.low, spread.high)
    start = LEAST - (spread.low << spread.bits)
    place = a.add_number(a.left(held, spread.bits), start)
    return emit("cast", place, dtype="i16")


def emit_entries(
    net: LoweringContext, index: Handle, entries: IntArray
) -> Handle:
    """Emit a table of the narrowest dtype, and a cast to that of the entries if it is another."""
    narrow = narrowed(entries)
    handle = net.builder.emit("table", index, net.constant(narrow))
    if narrow.dtype == entries.dtype:
        return handle
    return net.builder.emit("cast", handle, dtype=dtype_name(entries))


def narrowed(entries: IntArray) -> IntArray:
    """Return the entries in the narrowest dtype that holds them."""
    least, most = int(entries.min()), int(entries.max())
    fitting = (
        dtype
        for dtype in ("i8", "i16", "i32")
        if DTYPE_RANGES[dtype][0] <= least and most <= DTYPE_RANGES[dtype][1]
    )
    return entries.astype(DTYPES[next(fitting)])
