"""Shapes of inputs that a model's file leaves open, from elsewhere: samples, or a program made from the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Shape = tuple[int, ...]
Sizes = tuple[int | None, ...] | None
"""What is known of an input: its dimensions, None for an unknown one; None where not even their number is."""
FindShapes = Callable[[Mapping[str, Sizes]], Mapping[str, Shape]]
"""From what the file and the user say of every input to the shapes of inputs that are still open."""

OR_DATA = (
    "or --data with samples of it (a folder of pictures needs --crop, too)"
)
"""How a refusal ends whose reader may leave the shape to the samples."""


def is_open(sizes: Sizes) -> bool:
    """Whether more is unknown than a first dimension, which counts samples and is 1."""
    return sizes is None or None in sizes[1:]


def with_found(
    given: Mapping[str, Shape],
    stated: Mapping[str, Sizes],
    find: FindShapes | None,
) -> dict[str, Shape]:
    """The shapes that the user gave and, for other inputs, those that are found."""
    if find is None:
        return dict(given)
    sizes = {name: given.get(name, stated[name]) for name in stated}
    return {**find(sizes), **given}
