"""Channels that are the same as others (`mrt.duplicate.fill_dead_channels`) are rounded half a step apart from them.

One is raised by a quarter of a step and the other lowered by as much, in the bias; so the mean of the two is as fine as half
a step.
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


def dither_offsets(net: LoweringContext, node: ir.Node) -> FloatArray:
    """[O], or [1] of 0: what is added to a convolution's outputs, of which 8 bits or less are kept behind a clip."""
    readers = [use.node for use in node.outputs[0].uses()]
    word = (
        readers[0].outputs[0].metadata_props.get(DUPLICATES)
        if len(readers) == 1
        else None
    )
    if word is None:
        return np.zeros(1)
    value = readers[0].outputs[0]
    name, bits = name_of(value), net.options.activation_bits_of(name_of(value))
    if bits > 8:
        return np.zeros(1)
    target = net.format_for(name, bits, interval=(0.0, math.inf))
    steps = target.scale * np.array(
        net.channel_factors(name, target) or (1.0,) * shape_of(value)[1]
    )
    found = np.zeros(steps.size)
    for one, other in _pairs(word, name, steps.size):
        found[one], found[other] = steps[one] / 4, -steps[other] / 4
    return found


def _pairs(word: str, name: str, channels: int) -> list[tuple[int, int]]:
    """What the graph says, which may have come from a file."""
    try:
        pairs = [
            (int(one), int(other))
            for one, other in (pair.split(":") for pair in word.split())
        ]
    except ValueError:
        pairs = [(-1, -1)]
    if any(not 0 <= channel < channels for pair in pairs for channel in pair):
        raise BadModel(
            f"'{name}' has the metadata {DUPLICATES} = '{word[:80]}'; expected pairs of its {channels} channels"
        )
    return pairs
