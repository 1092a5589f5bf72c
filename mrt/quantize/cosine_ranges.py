"""Ranges of cosines: an output that is one reaches 1, however little alike the inputs of the samples were."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.cosines import Cosine, cosine
from mrt.graph.values import is_read_elsewhere
from mrt.quantize.score_ranges import LEAST_SCORE
from mrt.table.table import MeasuredRange, Ranges


def ranges_of_cosines(
    graph: ir.Graph, states: Collection[str], ranges: Ranges
) -> dict[str, MeasuredRange]:
    """Return ranges up to 1 of outputs that are cosines, by name, and as far below 0 where the samples reach below 0.

    Also those of the values that an output is moved from, and of the products that it is the sum of: inputs that are
    alike square the greatest numbers of each. Where anything but the output reads a value, its range stays.
    """
    wide: dict[str, MeasuredRange] = {}
    for output in graph.outputs:
        dot = cosine(output) if name_of(output) not in states else None
        if dot is None or output.uses() or _are_read_elsewhere(dot):
            continue
        names = [name_of(value) for value in dot.values]
        if any(name not in ranges for name in names):
            continue
        if ranges[names[0]].magnitude < LEAST_SCORE:
            continue
        wide |= {name: _reaching(ranges[name], 1.0) for name in names}
        wide |= _of_products(dot, ranges)
    return wide


def _of_products(dot: Cosine, ranges: Ranges) -> dict[str, MeasuredRange]:
    if dot.product is None or name_of(dot.product) not in ranges:
        return {}
    sizes = [
        ranges[name_of(factor)].magnitude
        for factor in dot.factors
        if name_of(factor) in ranges
    ]
    if len(sizes) < len(dot.factors):
        return {}
    name = name_of(dot.product)
    return {name: _reaching(ranges[name], min(1.0, sizes[0] * sizes[1]))}


def _are_read_elsewhere(dot: Cosine) -> bool:
    inner = [*dot.values[1:], *([dot.product] if dot.product else [])]
    return any(map(is_read_elsewhere, inner))


def _reaching(range_: MeasuredRange, size: float) -> MeasuredRange:
    """Return a range that reaches a size, if it did not, on each side of 0 on which there is anything."""
    low, high = range_.min, max(range_.max, size)
    low = min(low, -size) if low < 0 else low
    return replace(range_, min=low, max=high, lo=low, hi=high)
