"""Sees, while calibration runs the float model, which ranges rest on one sample alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.samples import Sample

LONE = 2.0
"""A value that is more than twice as great in one sample as in any other may be as much greater in the next one."""


class LoneMaxima:
    """A calibration callback that keeps how great each value is in the two samples where it is greatest."""

    def __init__(self) -> None:
        self._greatest: dict[str, tuple[float, float]] = {}

    def observe(
        self, index: int, sample: Sample, name: str, tensor: ObservedTensor
    ) -> None:
        """Take one value of one run of the float model."""
        self._add(name, max(map(abs, tensor.range)))

    def for_block(self) -> LoneMaxima:
        """Return an empty callback."""
        return LoneMaxima()

    def merge(self, block: LoneMaxima) -> None:
        """Take what a block's callback has seen, as if its samples had come here."""
        for name, sizes in block._greatest.items():
            for size in sizes:
                self._add(name, size)

    def _add(self, name: str, size: float) -> None:
        if math.isfinite(size):
            sizes = (*self._greatest.get(name, (0.0, 0.0)), size)
            _, second, first = sorted(sizes)
            self._greatest[name] = first, second

    def worst(self, names: Iterable[str]) -> str | None:
        """Return which of these values is the most alone in one sample; None if none is alone."""
        worst, most = None, LONE
        for name in sorted(names):
            ratio = _ratio(*self._greatest.get(name, (0.0, 0.0)))
            if ratio > most:
                worst, most = name, ratio
        return worst


def _ratio(first: float, second: float) -> float:
    if second == 0:
        return math.inf if first > 0 else 0.0
    return first / second
