"""Seeded choices: numbers with ties, zeros and negatives, small shapes, attributes that may be left out."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
OMIT = object()  # an attribute that is not written, so that its default holds
FINENESS = 4  # data lie on multiples of 1/4: ties are common and decimals short


class Draw:
    """All choices of one case; the same words give the same choices, whatever other cases there are."""

    def __init__(self, *words: str | int) -> None:
        self.random = np.random.default_rng(zlib.crc32(repr(words).encode()))

    def integer(self, least: int, most: int) -> int:
        """Both ends included."""
        return int(self.random.integers(least, most + 1))

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def one(self, *items: T) -> T:
        return items[self.integer(0, len(items) - 1)]

    def maybe(self, *values: Any) -> Any:
        """One of the values, or left out about as often as any of them."""
        return (
            self.one(OMIT, *values)
            if len(values) > 1
            else self.one(OMIT, values[0])
        )

    def real(self, least: float, most: float) -> float:
        """With two decimals."""
        return round(float(self.random.uniform(least, most)), 2)

    def shape(self, least: int, most: int, largest: int = 5) -> tuple[int, ...]:
        """Between `least` and `most` dimensions."""
        return tuple(
            self.integer(1, largest) for _ in range(self.integer(least, most))
        )

    def image(
        self, rank: int = 2, *, channels: int = 0, least: int = 3, most: int = 9
    ) -> tuple[int, ...]:
        """Batch, channels, then `rank` spatial dimensions."""
        most = min(most, {1: 16, 2: 9, 3: 6}[rank])
        return (
            self.integer(1, 2),
            channels or self.integer(1, 5),
            *(self.integer(least, most) for _ in range(rank)),
        )

    def axis(self, rank: int) -> int:
        """From the front or from the back."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> tuple[int, ...]:
        """Several different axes in any order, some counted from the back."""
        chosen = self.random.permutation(rank)[: self.integer(least, rank)]
        return tuple(int(axis) - rank * self.chance(0.25) for axis in chosen)

    def order(self, rank: int) -> tuple[int, ...]:
        return tuple(int(axis) for axis in self.random.permutation(rank))

    def data(self, shape: Sequence[int], kind: str = "any") -> np.ndarray:
        """any: about normal; positive: from 0.25; indices: integers, some fractional or outside of 0..4."""
        normal = self.random.standard_normal(tuple(shape))
        if kind == "any" and self.chance(0.3):
            return normal.astype(np.float32).round(3)
        values = np.round(normal * 1.5 * FINENESS) / FINENESS + 0.0
        if kind == "positive":
            values = np.abs(values) + 1 / FINENESS
        return values.astype(np.float32)

    def whole(self, shape: Sequence[int], least: int, most: int) -> np.ndarray:
        """Integers as floats."""
        return self.random.integers(least, most + 1, tuple(shape)).astype(
            np.float32
        )

    def texts(self, attributes: Mapping[str, Any]) -> dict[str, str]:
        """As a symbol file writes them, in any of the forms that MXNet reads; what is omitted is not there."""
        return {
            name: self.text(value)
            for name, value in attributes.items()
            if value is not OMIT
        }

    def text(self, value: Any) -> str:
        match value:
            case bool():
                return (
                    self.one("True", "true", "1")
                    if value
                    else self.one("False", "false", "0")
                )
            case tuple() if None not in value and len(value) > 1:
                items = [str(item) for item in value]
                forms = [f"({', '.join(items)})", f"[{','.join(items)}]"]
                if all(isinstance(item, int) for item in value):
                    forms.append(f"({'L, '.join(items)}L)")
                return self.one(*forms)
        return str(value)
