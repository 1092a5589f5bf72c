"""Rounds two equal channels (`mrt.duplicate`) half a step apart.

A dither offset of a quarter step is added to one of them in its bias and taken off the
other; so the mean of the two is as fine as half a step (Roberts 1962, IRE Trans. Inf.
Theory 8(2)).
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of, shape_of
from mrt.graph.notes import DUPLICATES
from mrt.quantize.context import LoweringContext

NO_OFFSETS = np.zeros(1)


def dither_offsets(context: LoweringContext, node: ir.Node) -> FloatArray:
    """[O]: the offsets of a convolution's outputs; [1] of 0 if there are none.

    There are offsets where the clip that alone reads the convolution has duplicated
    channels and 8 bits or less.
    """
    readers = [use.node for use in node.outputs[0].uses()]
    if len(readers) != 1:
        return NO_OFFSETS
    value = readers[0].outputs[0]
    text = value.metadata_props.get(DUPLICATES)
    if text is None:
        return NO_OFFSETS
    name = name_of(value)
    if context.options.activation_bits_of(name) > 8:
        return NO_OFFSETS
    steps = _steps_of_channels(context, value)
    offsets = np.zeros(steps.size)
    for one, other in _pairs(text, name, steps.size):
        offsets[one] = steps[one] / 4
        offsets[other] = -steps[other] / 4
    return offsets


def _steps_of_channels(context: LoweringContext, value: ir.Value) -> FloatArray:
    """[C]: the scale of each channel of a value that is never negative."""
    name = name_of(value)
    bits = context.options.activation_bits_of(name)
    target = context.format_for(name, bits, interval=(0.0, math.inf))
    factors = context.channel_factors(name, target)
    if not factors:
        return np.full(shape_of(value)[1], target.scale)
    return target.scale * np.array(factors)


def _pairs(text: str, name: str, channels: int) -> list[tuple[int, int]]:
    """The pairs in the metadata of a value, which may have come from a file."""
    pairs: list[tuple[int, int]] = []
    for word in text.split():
        pair = _pair(word, channels)
        if pair is None:
            raise BadModel(
                f"'{name}' has the metadata {DUPLICATES} = '{text[:80]}'; "
                f"expected pairs of its {channels} channels"
            )
        pairs.append(pair)
    return pairs


def _pair(word: str, channels: int) -> tuple[int, int] | None:
    """Two of the channels as "7:1"; None for anything else."""
    try:
        one, other = (int(number) for number in word.split(":"))
    except ValueError:
        return None
    if not (0 <= one < channels and 0 <= other < channels):
        return None
    return one, other
