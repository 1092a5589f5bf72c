"""Chooses the channels whose duplicates remove the most noise for their products.

The duplicates have at most a share of all products of the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mrt.calibrate.samples import Samples, some_of
from mrt.duplicate.add_duplicates import paired_channels
from mrt.duplicate.channel_chains import Chain, channel_chains
from mrt.duplicate.noise import Floats, noise_of_channels
from mrt.errors import BadModel
from mrt.graph.values import nodes, producer, shape_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_scales import candidates

BLOCK = 8
"""Channels that are offered together."""

VECTOR = 16
"""Channels that a vector of sums holds: the engine takes as long for a part of a vector as for all of it."""

ENOUGH_SAMPLES = 4  # samples to measure the noise on
MOST_COST = 0.15  # the share of all products that duplicates may have
MOST_DUPLICATES = 4096  # so that they fit into a program's provenance
LEAST_GAIN_PER_COST = 5.0
"""The least gain per cost of a duplicate: its share of the noise over its share of products."""

TAKEN_OFF = 3 / 4  # the share of its noise that a duplicated channel loses
MOST_BYTES = 2**28
"""The most bytes of the values of one sample; the derivatives take as much again."""


@dataclass(frozen=True)
class Choice:
    """The channels for `add_duplicates`, by the chain to which they belong.

    `noise_removed` is a share of the noise that 8 bits cause at the outputs, and
    `products_added` a share of the model's products.
    """

    channels: dict[str, list[int]] = field(default_factory=dict)
    noise_removed: float = 0.0
    products_added: float = 0.0


def choose_duplicates(
    model: ir.Model,
    samples: Samples,
    options: QuantizeOptions,
    *,
    by_channel: bool,
) -> Choice:
    """Return the channels whose duplicates are worth their products.

    `by_channel`: whether channels will have scales of their own.
    """
    chains = list(channel_chains(model))
    if not chains or _bytes(model) > MOST_BYTES:
        return Choice()
    scaled = _values_with_scales(model) if by_channel else frozenset()
    try:
        noise = noise_of_channels(
            model, some_of(samples, ENOUGH_SAMPLES), options, scaled
        )
    except BadModel:
        # Either onnxruntime lacks an operator that the derivative needs, or the model
        # itself does not run, which calibration will report.
        return Choice()
    return _within_budget(model, chains, noise)


def _values_with_scales(model: ir.Model) -> frozenset[str]:
    """Return the values that will have a scale for each channel.

    These are the candidates, and the operands of a Concat that is a candidate.
    """
    names: set[str] = set()
    for value in candidates(model):
        names.add(str(value.name))
        join = producer(value, "Concat")
        if join is not None:
            operands = [
                operand for operand in join.inputs if operand is not None
            ]
            names.update(str(operand.name) for operand in operands)
    return frozenset(names)


@dataclass(frozen=True)
class _Offer:
    """Duplicates of some channels of a chain.

    `gain` is the noise that they remove, `cost` their share of all products.
    """

    name: str
    channels: list[int]
    gain: float
    cost: float


def _within_budget(
    model: ir.Model, chains: list[Chain], noise: Mapping[str, Floats]
) -> Choice:
    """Take the offers with the greatest gain per cost, as long as the budget lasts."""
    total = math.fsum(float(of_value.sum()) for of_value in noise.values())
    if not math.isfinite(total):
        return Choice()  # calibration reports what is wrong with such samples
    products = _products_of(model)
    offers = [
        offer for chain in chains for offer in _offers(chain, noise, products)
    ]
    chosen: dict[str, list[int]] = {}
    refused: set[str] = set()
    remaining, spent, count = total, 0.0, 0
    for offer in sorted(offers, key=lambda offer: -offer.gain / offer.cost):
        too_little = offer.gain <= LEAST_GAIN_PER_COST * offer.cost * remaining
        if too_little or count >= MOST_DUPLICATES:
            break
        if spent + offer.cost > MOST_COST:
            # Blocks of a chain are taken in order; once one is too dear, later ones are
            # refused too.
            refused.add(offer.name)
        elif offer.name not in refused:
            chosen.setdefault(offer.name, []).extend(offer.channels)
            count += len(offer.channels)
            spent += offer.cost
            remaining -= offer.gain
    channels = {name: sorted(chosen[name]) for name in chosen}
    return Choice(channels, 1 - remaining / (total or 1.0), spent)


def _offers(
    chain: Chain, noise: Mapping[str, Floats], products: int
) -> list[_Offer]:
    """Return blocks of channels, the noisiest first, each with less gain per cost than the one before."""
    total = np.zeros(1)
    for value in chain.rounded:
        total = total + noise.get(str(value.name), np.zeros(1))
    gains = TAKEN_OFF * total
    paired = set(paired_channels(chain.rounded[0]))
    noisiest_first = np.argsort(-gains, kind="stable").tolist()
    order = [channel for channel in noisiest_first if channel not in paired]
    offers: list[_Offer] = []
    start, stop = 0, -chain.channels % BLOCK or BLOCK
    while start < len(order):
        channels = order[start:stop]
        cost = _cost(chain, start, start + len(channels)) / products
        gain = float(gains[channels].sum())
        _append(offers, _Offer(chain.name, channels, gain, cost))
        start, stop = stop, stop + BLOCK
    return offers


def _append(offers: list[_Offer], offer: _Offer) -> None:
    """Append an offer, together with those before it that have less gain per cost.

    The first block that opens a vector pays for all of it; the next one makes it pay.
    """
    while (
        offers and offers[-1].gain * offer.cost < offer.gain * offers[-1].cost
    ):
        last = offers.pop()
        offer = _Offer(
            offer.name,
            last.channels + offer.channels,
            last.gain + offer.gain,
            last.cost + offer.cost,
        )
    offers.append(offer)


def _cost(chain: Chain, start: int, stop: int) -> float:
    """Return the products of the duplicates from `start` to `stop`.

    Convolutions that compute the channels do so by vectors; in those that read them,
    each channel counts.
    """
    slots = _slots(chain.channels + stop) - _slots(chain.channels + start)
    computed = slots * sum(map(_products, chain.convolutions))
    read = (stop - start) * sum(map(_products, chain.readers))
    return max(1, computed + read) / chain.channels


def _slots(channels: int) -> int:
    """Return the number of channels with the last vector filled."""
    return -(-channels // VECTOR) * VECTOR


def _products_of(model: ir.Model) -> int:
    layers = nodes(model, "Conv", "Gemm", "ConvTranspose")
    return max(1, sum(map(_products, layers)))


def _products(node: ir.Node) -> int:
    """Return the products of one run: each weight counts once for each position.

    The positions are those of the outputs, or those of the inputs of a ConvTranspose.
    """
    weights = shape_of(node.inputs[1]) or ()
    transposed = node.op_type == "ConvTranspose"
    value = node.inputs[0] if transposed else node.outputs[0]
    places = (shape_of(value) or (1, 1))[2:]
    return math.prod(weights) * math.prod(places)


def _bytes(model: ir.Model) -> int:
    values = (value for node in model.graph for value in node.outputs)
    return 4 * sum(math.prod(shape_of(value) or ()) for value in values)
