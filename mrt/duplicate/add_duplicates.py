"""Second copies of channels that were found to say too little in 8 bits; whatever mixes the channels takes half of each.

In float a twin changes nothing; as integers the two are rounded half a step apart (`mrt.quantize.dither`), so that together they
are twice as fine. It costs the products of one channel more, which is why only few have one.
"""

from __future__ import annotations

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
from mrt.errors import BadData
from mrt.graph.notes import DUPLICATES
from mrt.graph.patch import set_attributes
from mrt.graph.values import int_attribute, shape_of

Duplicates = Mapping[str, Sequence[int]]
"""Channels that get a twin, by the first clipped value of the chain of convolutions that they go through."""


def add_duplicates(model: ir.Model, duplicates: Duplicates) -> None:
    """Write the copies behind the channels there are; BadData where the model has no such channels."""
    chains = (
        {chain.name: chain for chain in channel_chains(model)} if duplicates else {}
    )
    for name, channels in duplicates.items():
        _require(name, channels, chains.get(name))
        _add(chains[name], list(channels))


def _require(name: str, channels: Sequence[int], chain: Chain | None) -> None:
    if chain is None:
        raise BadData(
            f"twins are wanted for channels of '{name}', which can have none: they were chosen for another model"
        )
    single = sorted(set(range(chain.channels)) - set(paired_channels(chain.clipped[0])))
    if (
        not channels
        or len(set(channels)) != len(channels)
        or not set(channels) <= set(single)
    ):
        raise BadData(
            f"twins are wanted for the channels {str(list(channels))[:80]} of '{name}', where {len(single)} of "
            f"{chain.channels} channels can have one each: they were chosen for another model"
        )


def paired_channels(value: ir.Value) -> list[int]:
    """The channels of a clipped value that have a twin by now, and those that are one."""
    known = {str(channel): channel for channel in range((shape_of(value) or (0, 0))[1])}
    words = value.metadata_props.get(DUPLICATES, "").replace(":", " ").split()
    return [known[word] for word in words if word in known]  # a file may say anything


def _add(chain: Chain, channels: list[int]) -> None:
    before = chain.channels
    for node in chain.convolutions:
        weights, bias = weights_of(node), bias_of(node)
        set_weights(
            node,
            np.concatenate([weights, weights[channels]]),
            np.concatenate([bias, bias[channels]]),
        )
        if int_attribute(node, "group", 1) > 1:
            set_attributes(node, group=before + len(channels))
    for reader in chain.readers:
        weights = weights_of(reader).copy()
        weights[:, channels] /= 2
        set_weights(
            reader,
            np.concatenate([weights, weights[:, channels]], axis=1),
            bias_of(reader),
        )
    pairs = " ".join(
        f"{before + index}:{channel}" for index, channel in enumerate(channels)
    )
    for value in chain.clipped:
        value.metadata_props[DUPLICATES] = (
            f"{value.metadata_props.get(DUPLICATES, '')} {pairs}".strip()
        )
    for value in (
        *(node.outputs[0] for node in chain.convolutions),
        *chain.clipped,
        *chain.pooled,
    ):
        shape = shape_of(value)
        if shape is not None:
            value.shape = ir.Shape((shape[0], before + len(channels), *shape[2:]))
