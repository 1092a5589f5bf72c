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


def in_order(candidates: Sequence[Measured]) -> list[Measured]:
    """Return the candidates, the best offer first at each point."""
    remaining, ordered = list(candidates), list[Measured]()
    while remaining:
        raised = {measured.candidate for measured in ordered}
        best = max(
            _offers(remaining, raised), key=lambda offer: _worth(offer, raised)
        )
        ordered += best
        remaining = [measured for measured in remaining if measured not in best]
    return ordered


def _offers(
    remaining: Sequence[Measured], raised: Collection[Candidate]
) -> Iterator[Offer]:
    """Yield each candidate by itself, and each value that is not raised with the weights that multiply it."""
    values = {measured.candidate: measured for measured in remaining}
    for measured in remaining:
        yield (measured,)
        if measured.reads is not None and measured.reads in values:
            yield (values[measured.reads], measured)


def _worth(
    offer: Offer, raised: Collection[Candidate]
) -> tuple[float, tuple[str, ...]]:
    """Return the noise removed for each unit of the price; of equal offers, one order is always taken."""
    beside = {*raised, *(measured.candidate for measured in offer)}
    noise = sum(measured.noise for measured in offer)
    price = sum(measured.price_beside(beside) for measured in offer)
    return noise / max(price, 1), offer[0].candidate.names
