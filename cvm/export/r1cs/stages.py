"""A chain with a rounding inside its bend, such as a leaky ReLU of a sum and its rescale: z by a division of x, then a line of z.

The last member of the chain is the line, of the member before it. Its steps begin at z = T, those of the whole chain at x = t. So
a division (m * x + b) / d is right for them all if m * t + b >= d * T and m * (t - 1) + b < d * T hold for each pair: it need
not be the division of the chain, and its d is far smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import gcd

import numpy as np

from cvm.export.r1cs.bend import Bend, reach_of
from cvm.export.r1cs.fit import (
    MOST_EDGES,
    Edges,
    Line,
    choices,
    clipped,
    edges_of,
)
from cvm.export.r1cs.fractions import Division
from cvm.lower.lowering import ValueFunction
from cvm.lower.runnable import RunnableFunction, runnable
from cvm.lower.step_function import StepFunction, step_function
from cvm.program import IntArray

MOST_STEP = 2**18
LINES_TRIED = 16
PAIRS_TRIED = 16


@dataclass(frozen=True)
class Stages:
    """The last member of a chain as a function of the one before: its steps, and the class of each class of the chain."""

    steps: StepFunction
    classes: IntArray

    def edges(self, which: int) -> Edges | None:
        """Where the last member steps up, for a class of the chain."""
        return edges_of(*self.steps.of(int(self.classes[which])))


def stages_of(function: RunnableFunction) -> Stages | None:
    """The last two stages of a chain; None if its last member reads another."""
    members = function.function.members
    if len(members) < 2:
        return None
    last = function.instruction(members[-1])
    if [value for value in last.operands if value in members] != [members[-2]]:
        return None
    outer = ValueFunction(members[-1], members[-2], members[-1:])
    ready = runnable(function.lowering, outer)
    steps = step_function(ready)
    if steps is None:
        return None
    firsts = np.unique(function.classes.reshape(-1), return_index=True)[1]
    return Stages(steps, ready.classes.reshape(-1)[firsts])


def bend_inside(
    whole: Edges, outer: Edges, interval: tuple[int, int]
) -> Bend | None:
    """The bend inside a chain with the edges `whole` of x, of which the last stage has the edges `outer` of z.

    None if there is none at x = 0.
    """
    inner = _same(whole, outer)
    if inner is None or len(outer) > MOST_EDGES:
        return None
    after = int(np.searchsorted(whole.starts, 1))
    if not 1 < after < len(whole) - 1:
        return None
    above, below = (
        _Ratio(whole.starts[here], inner.starts[here])
        for here in (slice(after, None), slice(0, after))
    )
    pairs = list(islice(_pairs(above, below), PAIRS_TRIED))
    bends: list[Bend] = []
    for choice in islice(choices(outer), LINES_TRIED):
        line = choice.line(choice.most[0])
        suited = [pair for pair in pairs if gcd(pair[0].step, line.slope) == 1]
        of_line = (_bend(whole, after, line, pair, interval) for pair in suited)
        bends += islice((bend for bend in of_line if bend is not None), 1)
    return min(bends, key=lambda bend: bend.rows, default=None)


def _same(whole: Edges, outer: Edges) -> Edges | None:
    """The edges of the last stage that the chain has."""
    first = int(whole.values[0] - outer.values[0])
    shared = outer.part(first, first + len(whole)) if first >= 0 else outer
    return shared if np.array_equal(shared.values, whole.values) else None


@dataclass(frozen=True)
class _Ratio:
    """Pairs t and T, to which a division (m * x + b) / d is to be fitted."""

    starts: IntArray
    images: IntArray

    @cached_property
    def slope_bounds(self) -> tuple[float, float]:
        """Approximate bounds of the slopes m / d that are right."""
        run = self.starts[None] - self.starts[:, None]
        rise = self.images[None] - self.images[:, None]
        later = run > 0
        wide, high = run[later], rise[later].astype(float)
        most = (high / np.maximum(wide - 1, 1e-9)).min()
        return float((high / (wide + 1)).max()), float(most)

    def division(self, step: int) -> Division | None:
        """A division with this step; None if there is none."""
        low, high = self.slope_bounds
        for slope in range(int(low * step), int(high * step) + 2):
            least = int((step * self.images - slope * self.starts).max())
            most = (step * self.images - slope * (self.starts - 1)).min() - 1
            if least <= most:
                return Division(slope, least, step)
        return None


def _pairs(above: _Ratio, below: _Ratio) -> Iterator[tuple[Division, Division]]:
    """Divisions of both sides with one step, of growing steps."""
    steps = np.arange(1, MOST_STEP)
    right = np.ones(len(steps), bool)
    for side in (above, below):
        low, high = side.slope_bounds
        right &= np.ceil(low * steps - 1e-9) <= np.floor(high * steps + 1e-9)
    for step in steps[right].tolist():
        pair = above.division(step), below.division(step)
        if pair[0] is not None and pair[1] is not None:
            yield pair[0], pair[1]


def _bend(
    whole: Edges,
    after: int,
    line: Line,
    inner: tuple[Division, Division],
    interval: tuple[int, int],
) -> Bend | None:
    """The bend of these stages, if both sides of it are right (`bend.py`)."""
    values = whole.values
    first = int(values[0]) - 1
    at = int(values[after]) - 1
    last = int(values[-1])
    z_interval = inner[1].at(interval[0]), inner[0].at(interval[1])
    above = clipped(line, (at, last), 0, z_interval[1])
    below = clipped(line, (first, at), z_interval[0], 0)
    if above is None or below is None:
        return None
    reach = reach_of((first, at, last), above, below, z_interval)
    t, u = int(whole.starts[after - 1]), int(whole.starts[after])
    start = -(line.rest(0, at) // line.slope)  # of z, at the value `at`
    begins = inner[0].first(start)
    if reach is None or not t <= begins <= u:
        return None
    # With s = 0 as far as the argument before, and not as far as u.
    least = max(line.rest(inner[1].at(begins - 1), at), line.most // 2)
    most = min(
        line.rest(inner[1].at(u), at) - 1,
        2 ** (line.most.bit_length() - 1) - 1,
    )
    if least > most:
        return None
    excess = max(above.over, below.under)
    return Bend(
        line, line, at - 1 - reach, at, at + reach, least, excess, inner
    )
