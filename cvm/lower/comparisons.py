"""Extremes and comparisons of secrets: a look-up of a difference, added to one of the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cvm.lower.functions import MOST_INDEX_BITS
from cvm.lower.secret_steps import NOTHING, SecretValue, TableLookUp, TooWide
from cvm.lower.stored import Stored, bits_between
from cvm.lower.sums import combined
from cvm.lower.writer import StepWriter
from cvm.program import Instruction, IntArray

Choice = Callable[[IntArray], IntArray]


def _above(x: IntArray) -> IntArray:
    return np.maximum(x, 0)


COMPARING: Mapping[str, Choice] = {  # as functions of x - y
    "equal": lambda apart: (apart == 0).astype(np.int64),
    "greater": lambda apart: (apart > 0).astype(np.int64),
    "greater_equal": lambda apart: (apart >= 0).astype(np.int64),
}


def compared(
    writer: StepWriter, name: str, x: SecretValue, y: SecretValue, value: int
) -> SecretValue:
    """A boolean, from the difference of values in the same units."""
    difference = combined(writer, x, y, -1)
    ones = np.ones_like(difference.stored.low)
    booleans = Stored(0 * ones, ones, ones, 0 * ones)
    return _function(writer, difference, COMPARING[name], booleans, value)


def greatest(
    writer: StepWriter, parts: Sequence[SecretValue], value: int
) -> SecretValue:
    """Of values in the same units, in rounds of pairs: x + max(y - x, 0)."""
    remaining = list(parts)
    while len(remaining) > 1:
        pairs = [remaining[i : i + 2] for i in range(0, len(remaining), 2)]
        remaining = [_greatest_of(writer, pair, value) for pair in pairs]
    return remaining[0]


def least(
    writer: StepWriter, parts: Sequence[SecretValue], value: int
) -> SecretValue:
    """The greatest of the numbers of opposite sign, turned again."""
    turned = [_turned(writer, part) for part in parts]
    return _turned(writer, greatest(writer, turned, value))


def _turned(writer: StepWriter, x: SecretValue) -> SecretValue:
    stored = x.stored
    return writer.sum(
        [x],
        [np.array([-1])],
        np.zeros(1, np.int64),
        (stored.factor, -stored.offset),
    )


def _greatest_of(
    writer: StepWriter, pair: Sequence[SecretValue], value: int
) -> SecretValue:
    if len(pair) == 1:
        return pair[0]
    x, y = pair
    x_stored, y_stored = x.stored, y.stored
    difference = combined(writer, y, x, -1)
    stored_difference = difference.stored
    interval = (
        np.maximum(stored_difference.low, 0),
        np.maximum(stored_difference.high, 0),
    )
    above = Stored(
        *interval, stored_difference.factor, stored_difference.offset
    )
    excess = _function(writer, difference, _above, above, value)
    larger = combined(writer, x, excess, 1)
    low = np.maximum(x_stored.low, y_stored.low)
    high = np.maximum(x_stored.high, y_stored.high)
    stored = Stored(low, high, x_stored.factor, x_stored.offset)
    return SecretValue(larger.number, larger.shape, stored)


def same_units(
    writer: StepWriter, parts: Sequence[SecretValue]
) -> list[SecretValue]:
    """Values of one shape, all in the units common to them and counted from one offset."""
    stored = [part.stored for part in parts]
    first = stored[0].offset
    distances = [units.offset - first for units in stored]
    unit = np.gcd.reduce([*(units.factor for units in stored), *distances])
    size = np.maximum(unit, 1)
    return [
        writer.sum(
            [part],
            [np.where(units.factor > 0, units.factor // size, 1)],
            distance // size,
            (unit, first),
        )
        for part, units, distance in zip(parts, stored, distances, strict=True)
    ]


def windows(instruction: Instruction, shape: tuple[int, ...]) -> list[IntArray]:
    """For each place of a pooling window the elements there, of all outputs; one inside stands for those outside."""
    kernel, stride, pad = (
        instruction.integers(name) for name in ("kernel", "stride", "pad")
    )
    edges = ((0, 0), (pad[0], pad[1]), (pad[2], pad[3]), (0, 0))
    places = np.arange(int(np.prod(shape))).reshape(shape)
    padded = np.pad(places, edges, constant_values=NOTHING)
    patches = np.lib.stride_tricks.sliding_window_view(padded, kernel, (1, 2))
    patches = patches[:, :: stride[0], :: stride[1]]
    patches = patches.reshape(*patches.shape[:4], -1)
    inside = patches.max(axis=-1)
    return [
        np.where(patches[..., i] == NOTHING, inside, patches[..., i])
        for i in range(patches.shape[-1])
    ]


def _function(
    writer: StepWriter,
    x: SecretValue,
    choice: Choice,
    stored: Stored,
    value: int,
) -> SecretValue:
    """A look-up of a function of the stored integers."""
    low, high = int(x.stored.low.min()), int(x.stored.high.max())
    bits = bits_between(0, high - low)
    if bits > MOST_INDEX_BITS:
        raise TooWide(bits)
    arguments = np.minimum(np.arange(1 << bits) + low, high)
    ones = np.ones(1, np.int64)
    step = TableLookUp(
        x.number,
        np.zeros(1, np.int64),
        ones,
        -low * ones,
        bits,
        0,
        choice(arguments)[None],
        value,
        value,
    )
    return writer.add(step, x.shape, stored)
