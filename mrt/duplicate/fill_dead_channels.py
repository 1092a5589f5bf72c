"""Replaces dead channels by duplicates of other channels.

Training leaves channels that no input can raise above their clip at 0. The readers of a
duplicated channel take half of each copy. In float a duplicate changes nothing; as
integers the two are rounded half a step apart (`mrt.quantize.dither`), so that together
they are twice as fine, at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.duplicate.channel_chains import (
    Chain,
    bias_of,
    channel_chains,
    set_weights,
    weights_of,
)
from mrt.duplicate.channel_intervals import (
    ChannelInterval,
    Floats,
    channel_intervals,
)
from mrt.exact.ordered_sum import row_sums
from mrt.graph.notes import set_duplicates
from mrt.graph.values import ints_attribute

Indices = npt.NDArray[np.int64]


def fill_dead_channels(model: ir.Model) -> int:
    """Replace dead channels by duplicates of the others, the most important ones first.

    Return how many were replaced.
    """
    intervals = channel_intervals(model.graph)
    return sum(_fill(chain, intervals) for chain in channel_chains(model))


def _fill(chain: Chain, intervals: Mapping[str, ChannelInterval]) -> int:
    interval = intervals.get(str(chain.rounded[-1].name))
    if interval is None or interval[0].size == 1:
        return 0
    dead = _dead_channels(chain, interval)
    places = np.flatnonzero(dead)[: np.count_nonzero(~dead)]
    if not places.size:
        return 0
    importance = np.where(dead, -1.0, _importance(chain, interval[1]))
    duplicated = np.argsort(-importance, kind="stable")[: places.size]
    for node in chain.convolutions:
        weights = _with_copies(weights_of(node), places, duplicated)
        set_weights(
            node, weights, _with_copies(bias_of(node), places, duplicated)
        )
    for reader in chain.readers:
        bias = _bias_with_constants(reader, places, interval[1][places])
        set_weights(
            reader, _halved(weights_of(reader), places, duplicated), bias
        )
    pairs = zip(places.tolist(), duplicated.tolist(), strict=True)
    noted = tuple(pairs)
    for value in chain.rounded:
        set_duplicates(value, noted)
    return int(places.size)


def _dead_channels(
    chain: Chain, interval: ChannelInterval
) -> npt.NDArray[np.bool_]:
    """Find the channels that are constant for every input, [C].

    Where a reader pads, its bias cannot absorb a constant other than 0.
    """
    low, high = interval
    pads = [ints_attribute(reader, "pads") or () for reader in chain.readers]
    padded = any(map(any, pads))
    constant = low == high
    return np.asarray(constant & (high == 0) if padded else constant)


def _importance(chain: Chain, greatest: Floats) -> Floats:
    """Return the readers' squared error from an error as large as the channel's interval, [C]."""
    squares = np.zeros(len(greatest))
    for reader in chain.readers:
        weights = weights_of(reader).astype(np.float64)
        by_channel = np.moveaxis(weights, 1, 0)
        terms = by_channel * by_channel
        squares = squares + row_sums(terms.reshape(len(terms), -1))
    finite = np.minimum(greatest, np.finfo(np.float32).max)
    return np.asarray(squares * np.square(finite))


def _with_copies(array: Floats, places: Indices, duplicated: Indices) -> Floats:
    array = array.copy()
    array[places] = array[duplicated]
    return array


def _bias_with_constants(
    reader: ir.Node, places: Indices, constants: Floats
) -> Floats:
    """Return the bias of a reader, with the contribution of the dead channels added."""
    weights, bias = weights_of(reader), bias_of(reader)
    of_places = weights[:, places].astype(np.float64)
    taps = of_places.reshape(len(weights), len(places), -1)
    products = taps * constants[:, None]
    added = row_sums(products.reshape(len(weights), -1))
    return (bias + added).astype(bias.dtype)


def _halved(weights: Floats, places: Indices, duplicated: Indices) -> Floats:
    """Return the weights of a reader, which takes half of each copy."""
    weights = weights.copy()
    weights[:, duplicated] /= 2
    weights[:, places] = weights[:, duplicated]
    return weights
