"""Read the text of an attribute as a value of the type that the operator declares.

Every function raises ValueError with the form that it expected.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reals:
    """Several real numbers."""

    numbers: tuple[float, ...]


Literal = bool | int | float | str | tuple[int | None, ...] | Reals | None

MAX_LENGTH = 10_000
LARGEST_FLOAT = 3.4028234663852886e38  # the largest float32
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}L?")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?(inf|infinity)", re.IGNORECASE)
_FLAGS = {
    "True": True,
    "true": True,
    "TRUE": True,
    "1": True,
    "False": False,
    "false": False,
    "FALSE": False,
    "0": False,
}


def parse_flag(text: str) -> bool:
    """Read a boolean: True, true, TRUE, 1 or False, false, FALSE, 0."""
    if text.strip() not in _FLAGS:
        raise ValueError("expected True or False")
    return _FLAGS[text.strip()]


def parse_integer(text: str) -> int:
    """Read a decimal integer of 64 bits, also as Python 2 wrote it (3L)."""
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        raise ValueError("expected an integer")
    value = int(text.rstrip("L"))
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected an integer of 64 bits")
    return value


def parse_real(text: str) -> float:
    """Read a decimal number that fits float32."""
    value = parse_bound(text)
    if math.isinf(value):
        raise ValueError("expected a finite number")
    if abs(value) > LARGEST_FLOAT:
        raise ValueError("expected a number that fits float32")
    return value


def parse_bound(text: str) -> float:
    """Read a decimal number or an infinity."""
    text = text.strip()
    if len(text) > MAX_LENGTH or not (
        _REAL.fullmatch(text) or _INFINITE.fullmatch(text)
    ):
        raise ValueError("expected a number")
    return float(text)


def parse_integers(text: str) -> tuple[int, ...]:
    """Read integers: (3, 3), [3,3], (3L, 3L), (3,), () or 3, which is (3,)."""
    return tuple(parse_integer(element) for element in _items(text))


def parse_optional_integers(text: str) -> tuple[int | None, ...]:
    """Read integers as `parse_integers` does, where an element may be None."""
    return tuple(
        None if element == "None" else parse_integer(element)
        for element in _items(text)
    )


def parse_reals(text: str) -> Reals:
    """Read real numbers: (0.5, 1), [0.5], () or 0.5."""
    return Reals(tuple(parse_real(element) for element in _items(text)))


def _items(text: str) -> list[str]:
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise ValueError("too long")
    if text[:1] + text[-1:] in ("()", "[]"):
        text = text[1:-1].strip()
        if not text:
            return []
        text = text.removesuffix(",")
    return [element.strip() for element in text.split(",")]
