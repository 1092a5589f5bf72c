"""Rounds equal channels (`mrt.duplicate`) a part of a step apart.

A dither offset of a quarter step is added to the bias of one channel and subtracted
from the bias of the other. So the mean of the two is as fine as half a step (Roberts
1962, IRE Trans. Inf. Theory 8(2)); that of three, a third of a step apart, as a third.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of, shape_of
from mrt.graph.notes import Pairs, duplicates_of
from mrt.graph.operators import CLIPS
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.context import LoweringContext

NO_OFFSETS = np.zeros(1)


def dither_offsets(net: LoweringContext, node: ir.Node) -> FloatArray:
    """Return the offsets of a convolution's outputs: [O], or [1] of 0 if there are none.

    A convolution has offsets if the value to which its outputs are rounded has
    duplicated channels and 8 bits or less. The note of these channels may come from a
    file, where it may stand on a value of any other shape.
    """
    value = _rounded_value(node)
    pairs = () if value is None else duplicates_of(value)
    if value is None or not pairs:
        return NO_OFFSETS
    name = name_of(value)
    if net.options.activation_bits_of(name) > 8:
        return NO_OFFSETS
    steps = _steps_of_channels(net, value)
    _check_pairs(pairs, name, steps.size)
    return steps * _shifts(pairs, steps.size)


def _rounded_value(node: ir.Node) -> ir.Value | None:
    """Return the value with duplicated channels to which a convolution's outputs are rounded, if any.

    It is the output, or what a clip or a sum, each the only reader, makes of it: a sum
    is rounded once, behind it.
    """
    value = node.outputs[0]
    while not duplicates_of(value):
        readers = [use.node for use in value.uses()]
        if len(readers) != 1 or not _passes_on(readers[0], value):
            return None
        value = readers[0].outputs[0]
    return value


def _passes_on(reader: ir.Node, value: ir.Value) -> bool:
    """Whether the offsets of a value, but of no other operand, are those of the reader's output."""
    if reader.op_type in CLIPS:
        return True
    if reader.op_type != "Add" or not is_sum(reader):
        return False
    return value is next(filter(_is_of_convolution, reader.inputs), None)


def _is_of_convolution(value: ir.Value | None) -> bool:
    """Whether a convolution computes a value for one reader alone."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.op_type != "Conv":
        return False
    return len(value.uses()) == 1


def _shifts(pairs: Pairs, channels: int) -> FloatArray:
    """Return the part of a step by which each channel is moved, [C]: a channel and its copies stand at equal distances."""
    copies: dict[int, list[int]] = {}
    for copy, channel in pairs:
        copies.setdefault(channel, [channel]).append(copy)
    shifts = np.zeros(channels)
    for group in copies.values():
        middle = (len(group) - 1) / 2
        shifts[group] = (np.arange(len(group)) - middle) / len(group)
    return shifts


def _steps_of_channels(net: LoweringContext, value: ir.Value) -> FloatArray:
    """Return the scale of each channel, [C], of a value that is never negative behind a clip."""
    name = name_of(value)
    bits = net.options.activation_bits_of(name)
    node = value.producer()
    is_clipped = node is not None and node.op_type in CLIPS
    least = 0.0 if is_clipped else -math.inf
    target = net.format_for(name, bits, interval=(least, math.inf))
    factors = net.channel_factors(name, target)
    if not factors:
        return np.full(shape_of(value)[1], target.scale)
    return target.scale * np.array(factors)


def _check_pairs(pairs: Pairs, name: str, channels: int) -> None:
    """Raise BadModel for pairs of channels that do not exist: the note may come from a file."""
    for pair in pairs:
        if max(pair) >= channels:
            raise BadModel(
                f"'{name}' has the metadata mrt.twins with the pair {pair[0]}:{pair[1]}; "
                f"expected pairs of its {channels} channels"
            )
