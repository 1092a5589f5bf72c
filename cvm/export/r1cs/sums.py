"""Rows of sums, movements and extremes: indices of places are moved by the reference machine itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cvm.export.r1cs import division, system
from cvm.export.r1cs.instruction import (
    Interval,
    NoRows,
    SecretInstruction,
    Writer,
)
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System, in_interval, positive_part
from cvm.program import DTYPE_RANGES, IntArray
from cvm.reference.registry import RULES as REFERENCE

OUTSIDE = -1  # the number of a place beyond the edge of an image


def conv2d(instruction: SecretInstruction) -> Secret:
    """One row for each output: places beyond the edge hold the zero point, which adds nothing."""
    x, weights = _wires(instruction), instruction.constant(1)
    bias = instruction.constant(2)
    outputs, height, width, channels = weights.shape
    _require_few_terms(instruction, height * width * channels)
    places = _windows(
        np.arange(x.constants.size).reshape(x.shape),
        (height, width),
        instruction.integers("pad"),
        instruction.integers("stride"),
        instruction.integers("dilation"),
    )
    groups = instruction.integer("groups")
    outputs_per_group = outputs // groups
    columns = []
    for output in range(outputs):
        first = output // outputs_per_group * channels
        taps = places[..., first : first + channels]
        columns.append(
            _weighted(
                x, taps.reshape(-1, weights[0].size), weights[output]
            ).plus(bias[output])
        )
    sums = _stacked(columns)
    return instruction.system.single(sums.reshaped(instruction.result.shape))


def dense(instruction: SecretInstruction) -> Secret:
    """One row for each output."""
    x, weights = _wires(instruction), instruction.constant(1)
    bias = instruction.constant(2)
    _require_few_terms(instruction, weights.shape[1])
    places = np.arange(x.constants.size).reshape(x.shape)
    columns = [
        _weighted(x, places, row).plus(offset)
        for row, offset in zip(weights, bias, strict=True)
    ]
    sums = _stacked(columns)
    return instruction.system.single(sums.reshaped(instruction.result.shape))


def _require_few_terms(instruction: SecretInstruction, each: int) -> None:
    """Raise `NoRows` if the sums alone have more terms than a program may have: they would take gigabytes before that is found."""
    terms = instruction.result.elements * each
    if terms > system.MOST_TERMS:
        raise NoRows(
            f"it has {terms:,} terms, and a whole program at most {system.MOST_TERMS:,}"
        )


def _wires(instruction: SecretInstruction) -> Secret:
    """The first operand without its zero point, one wire for each element."""
    x = instruction.system.single(instruction.operands[0])
    return x.minus(instruction.integer("input_zp"))


def _weighted(x: Secret, places: IntArray, weights: IntArray) -> Secret:
    """A row of `places`, without those outside, times the weights: one sum for each row."""
    inside = places != OUTSIDE
    factors = np.where(inside, weights.reshape(-1), 0)
    terms = x.flat().at(np.where(inside, places, 0))
    return terms.times(factors).total()


def _stacked(columns: Sequence[Secret]) -> Secret:
    """Vectors of equal length side by side, along a new last axis."""
    long = joined(columns)
    count = len(columns[0].constants)
    order = np.arange(len(columns) * count).reshape(len(columns), count)
    return long.at(order.T)


def _windows(
    places: IntArray,
    kernel: Sequence[int],
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> IntArray:
    """The places that each output reads: [N,OH,OW,KH,KW,C]."""
    edges = [(0, 0), (pad[0], pad[1]), (pad[2], pad[3]), (0, 0)]
    padded = np.pad(places, edges, constant_values=OUTSIDE)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(
        padded, extent, axis=(1, 2)
    )  # [N,H,W,C,KH,KW]
    views = views[:, :: stride[0], :: stride[1]]
    views = views[..., :: dilation[0], :: dilation[1]]
    return np.moveaxis(views, 3, -1)


def reduce_sum(instruction: SecretInstruction) -> Secret:
    """No row."""
    return _last(instruction).total().reshaped(instruction.result.shape)


def _last(instruction: SecretInstruction) -> Secret:
    """The operand with the axis of the reduction at the end."""
    x, axis = instruction.operands[0], instruction.integer("axis")
    places = np.arange(x.constants.size).reshape(x.shape)
    return x.flat().at(np.moveaxis(places, axis, -1))


def reduce_max(instruction: SecretInstruction) -> Secret:
    """The greater of two, again and again."""
    greatest = _greatest(instruction, _last(instruction))
    return greatest.reshaped(instruction.result.shape)


def reduce_min(instruction: SecretInstruction) -> Secret:
    """The greatest of the numbers of opposite sign."""
    least = _greatest(instruction, _last(instruction).times(-1)).times(-1)
    return least.reshaped(instruction.result.shape)


def max_pool2d(instruction: SecretInstruction) -> Secret:
    """The greatest of a window."""
    return _greatest(instruction, windows(instruction))


def windows(instruction: SecretInstruction) -> Secret:
    """The windows of a max_pool2d along a new last axis; a place of the window stands for those outside."""
    x, pad = instruction.operands[0], instruction.integers("pad")
    places = _windows(
        np.arange(x.constants.size).reshape(x.shape),
        instruction.integers("kernel"),
        pad,
        instruction.integers("stride"),
        (1, 1),
    )
    places = np.moveaxis(places, -1, 3)  # [N,OH,OW,C,KH,KW]
    places = places.reshape(*places.shape[:4], -1)
    most = places.max(-1, keepdims=True)
    if (most == OUTSIDE).any():
        raise NoRows("a window lies outside the image")
    inside = np.where(places == OUTSIDE, most, places)
    return x.flat().at(inside)


def argmax(instruction: SecretInstruction) -> Secret:
    """The greatest of x * n + n - 1 - index, which are n different numbers, and its remainder by n."""
    x = _last(instruction)
    count, (low, high) = x.shape[-1], instruction.intervals[0]
    backwards = count - 1 - np.arange(count)
    interval = low * count, high * count + count - 1
    keys = x.times(count).plus(np.broadcast_to(backwards, x.shape))
    greatest = greatest_in(instruction.system, keys, interval)
    system = instruction.system
    quotient = system.new(greatest.values // count)
    in_interval(system, quotient, low, high)
    rest = greatest.minus(quotient.times(count))
    in_interval(system, rest, 0, count - 1)
    index = rest.times(-1).plus(count - 1)
    return system.single(index.reshaped(instruction.result.shape))


def avg_pool2d(instruction: SecretInstruction) -> Secret:
    """A sum, and a division by the number of places that are inside the image."""
    x = _wires(instruction)
    places = _windows(
        np.arange(x.constants.size).reshape(x.shape),
        instruction.integers("kernel"),
        instruction.integers("pad"),
        instruction.integers("stride"),
        (1, 1),
    )
    places = np.moveaxis(places, -1, 3)  # [N,OH,OW,C,KH,KW]
    places = places.reshape(-1, places.shape[-2] * places.shape[-1])
    inside = places != OUTSIDE
    counts = inside.sum(-1)
    terms = x.flat().at(np.where(inside, places, 0))
    total = terms.times(inside.astype(np.int64)).total()
    # TOSA's reciprocal, as the specification has it.
    bits = np.array([int(count - 1).bit_length() for count in counts])
    slopes = ((2**30 + 1) << bits) // counts
    shifts = 30 + bits
    low, high = (
        end - instruction.integer("input_zp")
        for end in instruction.intervals[0]
    )
    most = int(counts.max())
    interval = min(low * most, low), max(high * most, high)
    zero_point = instruction.integer("output_zp")
    least, greatest = DTYPE_RANGES[instruction.result.dtype]
    mean = division.written(
        instruction.system,
        instruction.system.single(total),
        interval,
        (slopes, np.int64(1) << (shifts - 1), shifts),
        (least - zero_point, greatest - zero_point),
    )
    return mean.plus(zero_point).reshaped(instruction.result.shape)


def _greatest(instruction: SecretInstruction, x: Secret) -> Secret:
    return greatest_in(instruction.system, x, instruction.intervals[0])


def greatest_in(system: System, x: Secret, interval: Interval) -> Secret:
    """The greatest along the last axis, as a tree."""
    low, high = interval
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        left = x.at((..., slice(0, half)))
        right = x.at((..., slice(half, 2 * half)))
        over = positive_part(system, left.minus(right), low - high, high - low)
        rest = x.at((..., slice(2 * half, None)))
        x = joined([right.plus(over), rest])
    return x.reshaped(x.shape[:-1])


def move(instruction: SecretInstruction) -> Secret:
    """No row: the reference moves the numbers of the places, and the elements follow."""
    flat = [operand.flat() for operand in instruction.operands]
    numbers, first = [], 0
    for operand in instruction.operands:
        count = operand.constants.size
        numbers.append(np.arange(first, first + count).reshape(operand.shape))
        first += count
    attributes = dict(instruction.attributes)
    if instruction.name == "pad":
        value = instruction.integer("value")
        flat.append(constant(np.array([value])))
        attributes["value"] = first
    moved = REFERENCE[instruction.name].run(*numbers, **attributes)
    return joined(flat).at(moved)


def gather(instruction: SecretInstruction) -> Secret:
    """A movement, if the indices are constant."""
    values, indices = instruction.operands[0], instruction.constant(1)
    places = np.arange(values.constants.size).reshape(values.shape)
    moved = REFERENCE["gather"].run(places, indices)
    return values.flat().at(moved)


RULES: Mapping[str, Writer] = {
    "conv2d": conv2d,
    "dense": dense,
    "reduce_sum": reduce_sum,
    "reduce_max": reduce_max,
    "reduce_min": reduce_min,
    "argmax": argmax,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "gather": gather,
    "reshape": move,
    "transpose": move,
    "concat": move,
    "slice": move,
    "pad": move,
    "tile": move,
    "reverse": move,
}
