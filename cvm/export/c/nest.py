"""Nests of loops with literal bounds over views: where a value's elements lie, seen from a common space of indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

INDENT = "  "


@dataclass(frozen=True)
class View:
    """The element at indices i of the space lies at offset + the sum of strides[k] * i[k]."""

    strides: tuple[int, ...]
    offset: int = 0

    def index(self, *variables: str) -> str:
        """The place as a C expression of the variables; i0, i1, ... if none are named."""
        names = variables or [f"i{axis}" for axis in range(len(self.strides))]
        terms = [
            f"{stride} * {name}" if stride != 1 else name
            for name, stride in zip(names, self.strides, strict=True)
            if stride
        ]
        if self.offset or not terms:
            terms.insert(0, str(self.offset))
        return " + ".join(terms)


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def contiguous(shape: Sequence[int]) -> View:
    """A row-major tensor in a space of its own shape."""
    return View(strides_of(shape))


def broadcast(shape: Sequence[int]) -> View:
    """A row-major tensor whose axes of size 1 repeat."""
    pairs = zip(strides_of(shape), shape, strict=True)
    return View(tuple(stride if size > 1 else 0 for stride, size in pairs))


def collapsed(
    counts: Sequence[int], views: Sequence[View]
) -> tuple[list[int], list[View]]:
    """The same walk with as few axes as possible: those of size 1 go, and neighbours join where every view steps evenly."""
    kept = [axis for axis, count in enumerate(counts) if count > 1]
    last_axes = [
        axis
        for axis, after in pairwise(kept)
        if not all(
            view.strides[axis] == view.strides[after] * counts[after]
            for view in views
        )
    ] + kept[-1:]
    merged, begin = [], 0
    for end in last_axes:
        merged.append(prod(counts[begin : end + 1]))
        begin = end + 1
    fewer_axes = [
        replace(view, strides=tuple(view.strides[end] for end in last_axes))
        for view in views
    ]
    return merged, fewer_axes


def indented(lines: Sequence[str]) -> list[str]:
    """The lines, one step further in."""
    return [f"{INDENT}{line}" if line else line for line in lines]


def loop(variable: str, count: int | str, body: Sequence[str]) -> list[str]:
    """A counted loop around the lines."""
    head = f"for (int32_t {variable} = 0; {variable} < {count}; {variable}++)"
    return [f"{head} {{", *indented(body), "}"]


def nest(counts: Sequence[int], body: Sequence[str]) -> list[str]:
    """Loops over i0, i1, ... around the lines."""
    lines = list(body)
    for axis in reversed(range(len(counts))):
        lines = loop(f"i{axis}", counts[axis], lines)
    return lines


def copy(
    counts: Sequence[int], to: View, source: View, target: str, origin: str
) -> list[str]:
    """Element after element from one view to another."""
    merged, (to, source) = collapsed(counts, [to, source])
    line = f"{target}[{to.index()}] = {origin}[{source.index()}];"
    return nest(merged, [line])
