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
from mrt.duplicate.add_duplicates import MOST_COPIES, paired_channels
from mrt.duplicate.channel_chains import Chain, channel_chains
from mrt.duplicate.channel_streams import channel_streams
from mrt.duplicate.costs import ProductsAdded, cost_of_copies, products_of
from mrt.duplicate.noise import Floats, noise_of_channels
from mrt.errors import BadModel
from mrt.graph.values import producer, shape_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_scales import candidates
from mrt.table.table import CalibrationTable

BLOCK = 8
"""Channels that are offered together."""

ENOUGH_SAMPLES = 4  # samples to measure the noise on
MOST_COST = 0.15  # the share of all products that duplicates may have
MOST_DUPLICATES = 4096  # so that they fit into a program's provenance
LEAST_GAIN_PER_COST = 5.0
"""The least gain per cost of a duplicate: its share of the noise over its share of products."""

LEAST_GAIN_OF_EXTRA_PRODUCTS = 0.3
"""The same where the user says how many products there may be: what gains less is no use at any price."""

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
    extra_products: float | None = None,
    table: CalibrationTable | None = None,
) -> Choice:
    """Return the channels whose duplicates are worth their products.

    `by_channel`: whether channels will have scales of their own. `extra_products`: the
    share of the model's products that duplicates may add, of values without a clip too
    and several of one channel; else only what is cheap is taken. `table`: of this model,
    with its scales of channels, if they are known.
    """
    chains = list(channel_chains(model))
    if extra_products is not None:
        chains += channel_streams(model)
    if not chains or _bytes(model) > MOST_BYTES:
        return Choice()
    scaled = _values_with_scales(model) if by_channel else frozenset()
    try:
        noise = noise_of_channels(
            model, some_of(samples, ENOUGH_SAMPLES), options, scaled, table
        )
    except BadModel:
        # Either onnxruntime lacks an operator that the derivative needs, or the model
        # itself does not run, which calibration will report.
        return Choice()
    products = products_of(model)
    budget = (
        _Budget(products)
        if extra_products is None
        else _StatedBudget(products, extra_products)
    )
    offers = [
        offer for chain in chains for offer in _offers(chain, noise, budget)
    ]
    return _within_budget(offers, noise, budget)


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

    chain: Chain
    channels: list[int]
    gain: float
    cost: float


class _Budget:
    """What duplicates may cost by default, and the share of all products that those taken so far add: the sum of their costs."""

    def __init__(self, products: int) -> None:
        self.products = products
        self.most = MOST_COST
        self.least_gain = LEAST_GAIN_PER_COST
        self.most_copies = 2
        self.spent = 0.0

    def after(self, offer: _Offer) -> float:
        """Return the share with one more offer."""
        return self.spent + offer.cost

    def take(self, offer: _Offer) -> None:
        """Take an offer."""
        self.spent = self.after(offer)


class _StatedBudget(_Budget):
    """What the user says, with the products of copies that convolutions make of copies."""

    def __init__(self, products: int, most: float) -> None:
        super().__init__(products)
        self.most = most
        self.least_gain = LEAST_GAIN_OF_EXTRA_PRODUCTS
        self.most_copies = MOST_COPIES
        self._added = ProductsAdded()

    def after(self, offer: _Offer) -> float:
        """Return the share with one more offer."""
        total = self._added.add(offer.chain, len(offer.channels))
        self._added.add(offer.chain, -len(offer.channels))
        return total / self.products

    def take(self, offer: _Offer) -> None:
        """Take an offer."""
        total = self._added.add(offer.chain, len(offer.channels))
        self.spent = total / self.products


def _within_budget(
    offers: list[_Offer], noise: Mapping[str, Floats], budget: _Budget
) -> Choice:
    """Take the offers with the greatest gain per cost, as long as the budget lasts."""
    total = math.fsum(float(of_value.sum()) for of_value in noise.values())
    if not math.isfinite(total):
        return Choice()  # calibration reports what is wrong with such samples
    chosen: dict[str, list[int]] = {}
    refused: set[str] = set()
    remaining, count = total, 0
    for offer in sorted(offers, key=lambda offer: -offer.gain / offer.cost):
        name = offer.chain.name
        too_little = offer.gain <= budget.least_gain * offer.cost * remaining
        if too_little or count >= MOST_DUPLICATES:
            break
        if budget.after(offer) > budget.most:
            # Blocks of a chain are taken in order; once one is too dear, later ones are
            # refused too.
            refused.add(name)
        elif name not in refused:
            chosen.setdefault(name, []).extend(offer.channels)
            count += len(offer.channels)
            budget.take(offer)
            remaining -= offer.gain
    channels = {name: sorted(chosen[name]) for name in chosen}
    return Choice(channels, 1 - remaining / (total or 1.0), budget.spent)


def _offers(
    chain: Chain, noise: Mapping[str, Floats], budget: _Budget
) -> list[_Offer]:
    """Return blocks of copies, the most useful first, each with less gain per cost than the one before."""
    total = np.zeros(1)
    for value in chain.rounded:
        total = total + noise.get(str(value.name), np.zeros(1))
    # Of k copies 1/k^2 of the noise is left.
    taken_off = [
        1 / k**2 - 1 / (k + 1) ** 2 for k in range(1, budget.most_copies)
    ]
    gains = np.multiply.outer(taken_off, total).reshape(-1)
    channel_of = np.tile(np.arange(len(total)), budget.most_copies - 1)
    paired = paired_channels(chain.rounded[0])
    order = np.argsort(-gains, kind="stable")
    order = order[~np.isin(channel_of[order], paired)]
    offers: list[_Offer] = []
    start, stop = 0, -chain.channels % BLOCK or BLOCK
    while start < len(order):
        block = order[start:stop]
        cost = (
            cost_of_copies(chain, start, start + len(block)) / budget.products
        )
        gain = float(gains[block].sum())
        channels = channel_of[block].tolist()
        _append(offers, _Offer(chain, channels, gain, cost))
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
            offer.chain,
            last.channels + offer.channels,
            last.gain + offer.gain,
            last.cost + offer.cost,
        )
    offers.append(offer)


def _bytes(model: ir.Model) -> int:
    values = (value for node in model.graph for value in node.outputs)
    return 4 * sum(math.prod(shape_of(value) or ()) for value in values)
