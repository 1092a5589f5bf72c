"""Rounds two equal channels (`mrt.duplicate`) half a step apart.

A dither offset of a quarter step is added to the bias of one channel and subtracted
from the bias of the other. So the mean of the two is as fine as half a step (Roberts
1962, IRE Trans. Inf. Theory 8(2)).
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
from mrt.quantize.context import LoweringContext

NO_OFFSETS = np.zeros(1)


def dither_offsets(context: LoweringContext, node: ir.Node) -> FloatArray:
    """Return the offsets of a convolution's outputs: [O], or [1] of 0 if there are none.

    A convolution has offsets if its only reader is a clip whose value has duplicated
    channels and 8 bits or less. The note of these channels may come from a file, where
    it may stand on a value of any other shape.
    """
    readers = [use.node for use in node.outputs[0].uses()]
    if len(readers) != 1 or readers[0].op_type not in CLIPS:
        return NO_OFFSETS
    value = readers[0].outputs[0]
    pairs = duplicates_of(value)
    if not pairs:
        return NO_OFFSETS
    name = name_of(value)
    if context.options.activation_bits_of(name) > 8:
        return NO_OFFSETS
    steps = _steps_of_channels(context, value)
    offsets = np.zeros(steps.size)
    _check_pairs(pairs, name, steps.size)
    for first, second in pairs:
        offsets[first] = steps[first] / 4
        offsets[second] = -steps[second] / 4
    return offsets


def _steps_of_channels(context: LoweringContext, value: ir.Value) -> FloatArray:
    """Return the scale of each channel, [C], of a value that is never negative."""
    name = name_of(value)
    bits = context.options.activation_bits_of(name)
    target = context.format_for(name, bits, interval=(0.0, math.inf))
    factors = context.channel_factors(name, target)
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
