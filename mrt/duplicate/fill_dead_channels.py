"""Channels that can say nothing give their place to twins of others, whose readers then take half of each.

Training leaves channels that no input can raise above their clip at 0. In float a twin changes nothing; as integers the two
are rounded half a step apart (`mrt.quantize.dither`), so that together they are twice as fine, at no cost.
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
from mrt.duplicate.channel_intervals import Floats, Reach, channel_reach
from mrt.exact.ordered_sum import row_sums
from mrt.graph.notes import DUPLICATES
from mrt.graph.values import ints_attribute


def fill_dead_channels(model: ir.Model) -> int:
    """Fill the places of silent channels, the loudest of the others first; how many."""
    known = channel_reach(model.graph)
    return sum(_fill(chain, known) for chain in channel_chains(model))


def _fill(chain: Chain, known: Mapping[str, Reach]) -> int:
    reach = known.get(str(chain.clipped[-1].name))
    if reach is None or reach[0].size == 1:
        return 0
    padded = any(any(ints_attribute(reader, "pads") or ()) for reader in chain.readers)
    dead = (reach[0] == reach[1]) & ((reach[1] == 0) | (not padded))
    loudness = np.where(dead, -1.0, _loudness(chain, reach[1]))
    places = np.flatnonzero(dead)[: np.count_nonzero(~dead)]
    if not places.size:
        return 0
    duplicates = np.argsort(-loudness, kind="stable")[: places.size]
    for node in chain.convolutions:
        set_weights(
            node,
            *(
                _with_rows(array, places, duplicates)
                for array in (weights_of(node), bias_of(node))
            ),
        )
    for reader in chain.readers:
        set_weights(
            reader,
            *_with_halves(
                weights_of(reader),
                bias_of(reader),
                places,
                duplicates,
                reach[1][places],
            ),
        )
    word = " ".join(
        f"{place}:{duplicate}"
        for place, duplicate in zip(places, duplicates, strict=True)
    )
    for value in chain.clipped:
        value.metadata_props[DUPLICATES] = word
    return int(places.size)


def _loudness(chain: Chain, greatest: Floats) -> Floats:
    """[C]: what the readers make of an error that is as large as the channel may be."""
    weights = [
        np.moveaxis(weights_of(reader).astype(np.float64), 1, 0)
        for reader in chain.readers
    ]
    squares = sum(row_sums((item * item).reshape(len(item), -1)) for item in weights)
    return np.asarray(
        squares * np.square(np.minimum(greatest, np.finfo(np.float32).max))
    )


def _with_rows(
    array: Floats, places: npt.NDArray[np.int64], duplicates: npt.NDArray[np.int64]
) -> Floats:
    array = array.copy()
    array[places] = array[duplicates]
    return array


def _with_halves(
    weights: Floats,
    bias: Floats,
    places: npt.NDArray[np.int64],
    duplicates: npt.NDArray[np.int64],
    said: Floats,
) -> tuple[Floats, Floats]:
    """The reader's weights, halved for both, and its bias with what the silent channels always said."""
    met = (
        weights[:, places].astype(np.float64).reshape(len(weights), len(places), -1)
        * said[:, None]
    )
    added = row_sums(met.reshape(len(weights), -1))
    weights = weights.copy()
    weights[:, duplicates] /= 2
    weights[:, places] = weights[:, duplicates]
    return weights, (bias + added).astype(bias.dtype)
