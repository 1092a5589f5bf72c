"""Adds copies of channels; every reader that mixes the channels takes an equal part of each copy.

Outlier channel splitting (Zhao et al., arXiv 1901.09504). In float a duplicate changes
nothing; as integers the two are rounded half a step apart (`mrt.quantize.dither`), so
that together they are twice as fine; three are three times as fine. A duplicate costs
the products of one more channel, so only few channels have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from mrt.duplicate.channel_chains import (
    Chain,
    bias_of,
    channel_chains,
    set_weights,
    weights_of,
)
from mrt.duplicate.channel_streams import channel_streams
from mrt.errors import BadData
from mrt.graph.notes import duplicates_of, set_duplicates
from mrt.graph.patch import set_attributes
from mrt.graph.values import int_attribute, shape_of

Duplicates = Mapping[str, Sequence[int]]
"""The channels to duplicate, each as often as it gets a copy, by the first rounded value of their chain."""

MOST_COPIES = 4
"""The most that there are of one channel."""


def add_duplicates(model: ir.Model, duplicates: Duplicates) -> None:
    """Add the copies behind the channels that exist.

    Raise BadData where the model has no such channels.
    """
    if not duplicates:
        return
    chains = {
        chain.name: chain
        for chain in (*channel_chains(model), *channel_streams(model))
    }
    for name, channels in duplicates.items():
        if name not in chains:
            raise BadData(
                f"channels of '{name}' are to be duplicated, of which none can be: "
                "they were chosen for another model"
            )
        _require(chains[name], channels)
        _add(chains[name], list(channels))


def _require(chain: Chain, channels: Sequence[int]) -> None:
    """Raise BadData unless each of the channels can have a duplicate."""
    paired = paired_channels(chain.rounded[0])
    single = set(range(chain.channels)) - set(paired)
    most = max(Counter(channels).values(), default=MOST_COPIES)
    if most < MOST_COPIES and set(channels) <= single:
        return
    raise BadData(
        f"the channels {str(list(channels))[:80]} of '{chain.name}' are to be "
        f"duplicated, where {len(single)} of {chain.channels} channels can be, "
        f"{MOST_COPIES - 1} times each: they were chosen for another model"
    )


def paired_channels(value: ir.Value) -> list[int]:
    """Return the channels of a value that have a duplicate, and the duplicates."""
    channels = (shape_of(value) or (0, 0))[1]
    numbers = [number for pair in duplicates_of(value) for number in pair]
    # Notes may come from a file, so numbers that are not channels are left out.
    return [number for number in numbers if number < channels]


def _add(chain: Chain, channels: list[int]) -> None:
    before = chain.channels
    after = before + len(channels)
    for node in chain.convolutions:
        _repeat_outputs(node, channels)
    for reader in chain.readers:
        _share_inputs(reader, channels)
    _note_pairs(chain, before, channels)
    outputs = [node.outputs[0] for node in chain.convolutions]
    for value in (*outputs, *chain.rounded, *chain.moved):
        shape = shape_of(value)
        if shape is not None:
            count, _, *places = shape
            value.shape = ir.Shape((count, after, *places))


def _repeat_outputs(node: ir.Node, channels: list[int]) -> None:
    """Compute these channels of a convolution once more, behind the others."""
    weights, bias = weights_of(node), bias_of(node)
    more_weights = np.concatenate([weights, weights[channels]])
    set_weights(node, more_weights, np.concatenate([bias, bias[channels]]))
    if int_attribute(node, "group", 1) > 1:
        set_attributes(node, group=len(more_weights))


def _share_inputs(reader: ir.Node, channels: list[int]) -> None:
    """Take an equal part of each of these channels and of its copies."""
    weights = weights_of(reader).copy()
    for channel, copies in Counter(channels).items():
        weights[:, channel] /= 1 + copies
    both = np.concatenate([weights, weights[:, channels]], axis=1)
    set_weights(reader, both, bias_of(reader))


def _note_pairs(chain: Chain, before: int, channels: list[int]) -> None:
    pairs = tuple(
        (before + index, channel) for index, channel in enumerate(channels)
    )
    for value in chain.rounded:
        set_duplicates(value, (*duplicates_of(value), *pairs))
