"""The channels whose twins take off most noise for their products, up to a share of all products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import onnx_ir as ir

from mrt.calibrate.samples import Samples, evenly_spaced
from mrt.duplicate.add_duplicates import paired_channels
from mrt.duplicate.channel_chains import Chain, channel_chains
from mrt.duplicate.noise import Floats, noise_of_channels
from mrt.errors import BadModel
from mrt.graph.values import nodes, producer, shape_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_scales import candidates

BLOCK = 8  # channels that machines compute together: of fewer, the rest would take as long and say nothing
ENOUGH_SAMPLES = 4  # that the noise is taken from
MOST_COST = 0.15  # of all products, for twins
MOST_DUPLICATES = 4096  # so that a program can say them in its provenance
WORTH = (
    1.5  # share of the noise that a twin must take off, over its share of the products
)
TAKEN_OFF = 3 / 4  # of the noise of a channel that gets a twin
MOST_BYTES = (
    2**28
)  # of values of one sample, of which the derivatives take as much again


def choose_duplicates(
    model: ir.Model, samples: Samples, options: QuantizeOptions, *, by_channel: bool
) -> dict[str, list[int]]:
    """For `add_duplicates`: channels by the chain that they are of. `by_channel`: they will have scales of their own."""
    chains = list(channel_chains(model))
    if not chains or _bytes(model) > MOST_BYTES:
        return {}
    scaled = _scaled(model) if by_channel else frozenset()
    chosen = set(evenly_spaced(len(samples), ENOUGH_SAMPLES))
    few = (
        sample
        for index, sample in enumerate(islice(samples, max(chosen) + 1))
        if index in chosen
    )
    try:
        noise = noise_of_channels(model, few, options, scaled)
    except BadModel:  # the model runs, as calibration will see; but onnxruntime lacks what its derivative needs
        return {}
    return _within_budget(model, chains, noise)


def _scaled(model: ir.Model) -> frozenset[str]:
    """The values that will have a scale for each channel: candidates, and what is joined to one of them."""
    found = set(candidates(model))
    joined = (value for item in found for value in _operands_of_join(item))
    return frozenset(str(value.name) for value in (*found, *joined))


def _operands_of_join(value: ir.Value) -> list[ir.Value]:
    node = producer(value, "Concat")
    return [] if node is None else [item for item in node.inputs if item is not None]


def _within_budget(
    model: ir.Model, chains: list[Chain], noise: Mapping[str, Floats]
) -> dict[str, list[int]]:
    """The best for its products first."""
    left, products = (
        math.fsum(float(item.sum()) for item in noise.values()),
        _products_of(model),
    )
    if not math.isfinite(left):
        return {}  # of such samples calibration will say what is wrong
    offers = [offer for chain in chains for offer in _offers(chain, noise, products)]
    found: dict[str, list[int]] = {}
    spent, refused = (
        0.0,
        set(),
    )  # of a chain that is refused a block, a later one would lie beyond a gap
    for offer in sorted(offers, key=lambda offer: -offer.gain / offer.cost):
        if (
            offer.gain <= WORTH * offer.cost * left
            or sum(map(len, found.values())) >= MOST_DUPLICATES
        ):
            break
        if spent + offer.cost > MOST_COST:
            refused.add(offer.name)
        elif offer.name not in refused:
            found.setdefault(offer.name, []).extend(offer.channels)
            spent, left = spent + offer.cost, left - offer.gain
    return {name: sorted(channels) for name, channels in found.items()}


@dataclass(frozen=True)
class _Offer:
    """Twins for some channels of a chain: the noise they take off, and their share of all products."""

    name: str
    channels: list[int]
    gain: float
    cost: float


def _offers(
    chain: Chain, noise: Mapping[str, Floats], products: int
) -> Iterator[_Offer]:
    """The loudest channels first, as many together as fill a block of channels."""
    gains = TAKEN_OFF * sum(
        (noise.get(str(value.name), np.zeros(1)) for value in chain.clipped),
        np.zeros(1),
    )
    paired = set(paired_channels(chain.clipped[0]))
    order = [
        int(channel)
        for channel in np.argsort(-gains, kind="stable")
        if channel not in paired
    ]
    start, stop, cost = 0, -chain.channels % BLOCK or BLOCK, _cost(chain) / products
    while start < len(order):
        some = order[start:stop]
        yield _Offer(chain.name, some, float(gains[some].sum()), len(some) * cost)
        start, stop = stop, stop + BLOCK


def _cost(chain: Chain) -> float:
    """Products of one channel: of what computes it, and of what reads it."""
    return sum(map(_products, (*chain.convolutions, *chain.readers))) / chain.channels


def _products_of(model: ir.Model) -> int:
    return max(
        1,
        sum(_products(node) for node in nodes(model, "Conv", "Gemm", "ConvTranspose")),
    )


def _products(node: ir.Node) -> int:
    """Of one run: each weight meets each place of the outputs, or of the inputs where those are spread out."""
    weights = shape_of(node.inputs[1]) or ()
    places = (
        shape_of(node.inputs[0] if node.op_type == "ConvTranspose" else node.outputs[0])
        or (1, 1)
    )[2:]
    return math.prod(weights) * math.prod(places)


def _bytes(model: ir.Model) -> int:
    return 4 * sum(
        math.prod(shape_of(value) or ())
        for node in model.graph
        for value in node.outputs
    )
