"""Writes in an input's metadata what its integers index or are compared with.

Calibration and quantization read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.graph.notes import indices_of, set_compared, set_indices
from mrt.graph.operators import COMPARISONS, LOOKUPS, MOVEMENT
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    operand,
    producer,
    scalar,
    shape_of,
)
from mrt.rewrite.canonical_operators import INTEGER_NUMBERS

INTEGERS: frozenset[ir.DataType | None] = frozenset(INTEGER_NUMBERS)
# Pad is not among them: it adds elements of its own; nor is Floor, since numbers that are
# floored may have fractions.
_MOVES = (MOVEMENT - {"Pad"}) | {"Cast", "Clip"}


@dataclass(frozen=True)
class Limits:
    """Which numbers have a meaning of their own to a reader, by what is in front of it.

    `least` is -n where the model itself adds n to negative numbers, what a Clip leaves of
    them, or None where the reader decides. `is_least_clipped` and `is_most_clipped` are
    whether a Clip is in front, so that numbers beyond have a meaning, too, `is_wrapped`
    whether anything was added.
    """

    least: int | None = None
    is_least_clipped: bool = False
    is_most_clipped: bool = False
    is_wrapped: bool = False

    @property
    def take_all(self) -> bool:
        """Whether all numbers have a meaning."""
        return self.is_least_clipped and self.is_most_clipped

    def behind_wrap(self, size: int) -> Limits:
        """Return the limits behind what adds `size` to negative numbers, after which a Clip cuts other numbers than these."""
        least = -size if self.least is None else self.least
        return replace(self, least=least, is_wrapped=True)

    def behind_clip(self, node: ir.Node) -> Limits:
        """Return the limits behind a Clip: a bound that is not constant is none."""
        low, high = (scalar(operand(node, place)) for place in (1, 2))
        limits = self
        if high is not None:
            limits = replace(limits, is_most_clipped=True)
        if low is None or self.is_wrapped:
            return limits
        least = max(low, -(2.0**31) if self.least is None else self.least)
        return replace(
            limits, least=min(0, math.floor(least)), is_least_clipped=True
        )


@dataclass(frozen=True)
class Use:
    """A reader of a value.

    `place` is the operand that the value is. `is_cast` and `is_sliced` are whether it was cast
    to an integer or sliced before.
    """

    node: ir.Node
    place: int
    is_cast: bool
    limits: Limits
    is_sliced: bool


def note_inputs(model: ir.Model) -> int:
    """Write "mrt.indices" on inputs used as indices, "mrt.compared" on compared ones.

    "mrt.indices" has the interval of the indices: "-100 99" for an axis of 100, counted
    from the end or the front, whether the lookup or the model itself adds 100 to a
    negative one, "0 99" where a Clip to 0..99 comes first, which suits axes of 50, too, if
    Clips come first there. Of an input whose slices
    are looked up in axes of 100 and 300 it is "-100 299": each slice has its own axis,
    and 0..99 suits them all. "mrt.compared" has the least and the greatest constant that
    the input is compared with.

    A float input has "mrt.indices" if it is used for nothing else, an integer input if
    it is used as an index at all, unless Clips come first and others read it, too: to these
    numbers beyond the axis are numbers like any other. A float input that every reader casts to integers is
    taken to be integral: it gets "mrt.compared", with "0 0" where it is compared with
    nothing.
    """
    count = 0
    for value in model.graph.inputs:
        uses = list(_uses(value, is_cast=value.dtype != ir.DataType.FLOAT))
        lookups = [use for use in uses if _size(use) is not None]
        only_indexes = len(lookups) == len(uses)
        takes_all = all(use.limits.take_all for use in lookups)
        if lookups and (
            only_indexes or (value.dtype != ir.DataType.FLOAT and not takes_all)
        ):
            set_indices(value, (_least(uses), _longest(uses) - 1))
            count += 1
        bounds = [bound for use in uses for bound in _compared_numbers(use)]
        is_integral = bool(uses) and all(map(_is_of_integer_numbers, uses))
        if (
            is_integral or (bounds and value.dtype != ir.DataType.FLOAT)
        ) and indices_of(value) is None:
            set_compared(
                value, (min(bounds, default=0), max(bounds, default=0))
            )
            count += 1
    return count


def _least(uses: list[Use]) -> int:
    """Return the least index that every lookup of the value accepts, or the least that a Clip leaves if all are clipped."""
    lookups = [(use.limits, size) for use in uses if (size := _size(use))]
    accepted = [
        -size if limits.least is None else limits.least
        for limits, size in lookups
        if not limits.is_least_clipped
    ]
    clipped = [limits.least or 0 for limits, _ in lookups]
    return max(accepted) if accepted else min(clipped, default=0)


def _longest(uses: list[Use]) -> int:
    """Return the size of the longest axis in which an element of the value may be looked up."""
    sizes = [
        (use.is_sliced or use.limits.is_most_clipped, size)
        for use in uses
        if (size := _size(use)) is not None
    ]
    of_all = [size for is_of_some, size in sizes if not is_of_some]
    return min(of_all, default=max(size for _, size in sizes))


def _uses(value: ir.Value, *, is_cast: bool) -> Iterator[Use]:
    """List the readers of a value, looking through movement, casts, clips and wraps.

    A wrap adds n to negative indices. Each value is visited once for each way in which
    it was changed, without recursion: chains may be long, and their branches may meet
    again.
    """
    waiting = [(value, is_cast, Limits(), False)]
    visited = set(waiting)
    while waiting:
        value, is_cast, limits, is_sliced = waiting.pop()
        for use in value.uses():
            node = use.node
            moved = node.outputs[0]
            wrapped = _wrapped(value, node)
            if _serves_wraps(value, node):
                continue
            if wrapped is None and (
                node.op_type not in _MOVES
                or use.idx != 0
                or moved.is_graph_output()
            ):
                yield Use(node, use.idx, is_cast, limits, is_sliced)
                continue
            now_limits = limits
            if wrapped is not None:
                now_limits = limits.behind_wrap(wrapped)
            elif node.op_type == "Clip":
                now_limits = limits.behind_clip(node)
            now_cast = is_cast or moved.dtype in INTEGERS
            now_sliced = is_sliced or node.op_type == "Slice"
            behind = (moved, now_cast, now_limits, now_sliced)
            if behind not in visited:
                visited.add(behind)
                waiting.append(behind)


_NEGATIVE = {"Less": 0, "LessOrEqual": -1}
_NOT_NEGATIVE = {"GreaterOrEqual": 0, "Greater": -1}


def _serves_wraps(value: ir.Value, node: ir.Node) -> bool:
    """Whether a reader compares a value or adds to it for wraps alone."""
    result = node.outputs[0]
    if node.op_type not in {"Add", *_NEGATIVE, *_NOT_NEGATIVE}:
        return False
    readers = [use.node for use in result.uses()]
    if result.is_graph_output() or not readers:
        return False
    return all(_wrapped(value, reader) is not None for reader in readers)


def _wrapped(value: ir.Value, node: ir.Node) -> int | None:
    """Return n of Where(value < 0, value + n, value); None for any other node."""
    if node.op_type != "Where" or node.outputs[0].is_graph_output():
        return None
    condition, if_true, if_false = node.inputs
    for signs, added, kept in (
        (_NEGATIVE, if_true, if_false),
        (_NOT_NEGATIVE, if_false, if_true),
    ):
        compare = producer(condition, *signs)
        add = producer(added, "Add")
        if kept is not value or compare is None or add is None:
            continue
        if first(compare) is not value or value not in add.inputs:
            continue
        size = scalar(operand(add, 1 if first(add) is value else 0))
        if (
            size is None
            or scalar(operand(compare, 1)) != signs[compare.op_type]
        ):
            continue
        if size > 0 and size == int(size):
            return int(size)
    return None


def _is_of_integer_numbers(use: Use) -> bool:
    """Whether a reader computes with integers.

    A reader that casts back to floats may use the cast to truncate any number.
    """
    operand_read = use.node.inputs[use.place]
    return (
        use.is_cast
        and operand_read is not None
        and operand_read.dtype in INTEGERS
        and use.node.op_type != "Cast"
    )


def _size(use: Use) -> int | None:
    """Return the size of the axis in which a reader looks this operand up, or None."""
    if use.node.op_type not in LOOKUPS or use.place != 1 or not use.is_cast:
        return None
    shape = shape_of(first(use.node))
    return None if shape is None else shape[int_attribute(use.node, "axis", 0)]


def _compared_numbers(use: Use) -> Iterator[int]:
    compared = (
        use.node.op_type in COMPARISONS and use.place == 0 and use.is_cast
    )
    array = constant(operand(use.node, 1)) if compared else None
    if array is not None and array.size:
        yield int(np.floor(array.min()).clip(-(2**31), 2**31 - 1))
        yield int(np.ceil(array.max()).clip(-(2**31), 2**31 - 1))
