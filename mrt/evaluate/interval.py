"""What a fraction that was counted in a sample leaves open about all others (Wilson 1927; Brown, Cai, DasGupta 2001)."""

from __future__ import annotations

import math

STANDARD_DEVIATIONS = (
    1.959964  # of a normal distribution, on both sides of 95 %
)


def wilson_interval(fraction: float, count: int) -> tuple[float, float]:
    """The 95 % confidence interval of a fraction of `count` samples, by Wilson's score."""
    squared = STANDARD_DEVIATIONS**2
    middle = (fraction + squared / (2 * count)) / (1 + squared / count)
    variance = fraction * (1 - fraction) / count + squared / (4 * count**2)
    half = STANDARD_DEVIATIONS * math.sqrt(variance) / (1 + squared / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def samples_to_tell(fraction: float) -> int:
    """The least number of samples of which a fraction below 1 can be seen to be missed by one of them."""
    return math.ceil(1 / (1 - fraction) - 1e-9)
