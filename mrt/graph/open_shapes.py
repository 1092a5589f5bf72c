"""Shapes of inputs that a model's file leaves open, from elsewhere: samples, or a program made from the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Shape = tuple[int, ...]
BATCH = 0
"""In place of a first dimension that counts samples: 1 unless a program or a user has another."""
Sizes = tuple[int | None, ...] | None
"""What is known of an input: its dimensions, None for an unknown one; None where not even their number is."""
FindShapes = Callable[[Mapping[str, Sizes]], Mapping[str, Shape]]
"""From what the file and the user state of every input to the shapes of inputs that are still open."""

OR_DATA = (
    "or --data with samples of it (a folder of pictures needs --crop, too)"
)
"""How a refusal ends whose reader may leave the shape to the samples."""


def is_open(sizes: Sizes) -> bool:
    """Whether more is unknown than how many samples there are."""
    return sizes is None or None in sizes


def is_open_inside(sizes: Sizes) -> bool:
    """Whether more is unknown than a first dimension, whatever it counts."""
    return sizes is None or None in sizes[1:]


_COUNTS_SAMPLES = re.compile(
    r"n|b|bs|m|.*batch.*|.*samples?.*|.*images?.*|.*examples?.*", re.IGNORECASE
)
# As exporters number the dimensions that nobody named.
_WITHOUT_MEANING = re.compile(
    r"none|\?|unk_.*|unknown.*|.*dynamic_axes.*|.*dim.*|\W*\d+|[a-z]_?\d+",
    re.IGNORECASE,
)


def counts_samples(name: str | None) -> bool:
    """Whether a first dimension of this name is the batch."""
    return name is not None and _COUNTS_SAMPLES.fullmatch(name) is not None


def has_meaning(name: str | None) -> bool:
    """Whether somebody named a dimension for what it counts."""
    return bool(name) and _WITHOUT_MEANING.fullmatch(name or "") is None


def complete_shapes(
    given: Mapping[str, Shape],
    stated: Mapping[str, Sizes],
    find: FindShapes | None,
) -> dict[str, Shape]:
    """The shapes that the user gave and, for other inputs, those that are found."""
    if find is None:
        return dict(given)
    sizes = {name: given.get(name, stated[name]) for name in stated}
    return {**find(sizes), **given}
