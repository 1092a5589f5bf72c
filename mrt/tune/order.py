"""The order in which candidates are raised: the most noise removed for each unit of the price first.

The engine multiplies values of 16 bits by weights of 9 bits and more in one product, and
values of 8 bits in two. So weights cost little beside the raised value that they multiply,
and both may be worth more together than one by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mrt.tune.candidates import Candidate
from mrt.tune.sensitivity import Measured

Offer = tuple[Measured, ...]
"""Candidates that are raised together."""


def in_order(found: Sequence[Measured]) -> list[Measured]:
    """Return the candidates, the best offer first at each point."""
    left, ordered = list(found), list[Measured]()
    while left:
        raised = {item.candidate for item in ordered}
        best = max(
            _offers(left, raised), key=lambda offer: _worth(offer, raised)
        )
        ordered += best
        left = [item for item in left if item not in best]
    return ordered


def _offers(
    left: Sequence[Measured], raised: Collection[Candidate]
) -> Iterator[Offer]:
    """Yield each candidate by itself, and each value that is not raised with the weights that multiply it."""
    values = {item.candidate: item for item in left}
    for item in left:
        yield (item,)
        if item.reads is not None and item.reads in values:
            yield (values[item.reads], item)


def _worth(
    offer: Offer, raised: Collection[Candidate]
) -> tuple[float, tuple[str, ...]]:
    """Return the noise removed for each unit of the price; of equal offers, one order is always taken."""
    beside = {*raised, *(item.candidate for item in offer)}
    noise = sum(item.noise for item in offer)
    price = sum(item.price_beside(beside) for item in offer)
    return noise / max(price, 1), offer[0].candidate.names
