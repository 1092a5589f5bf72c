"""Outputs of very different sizes, as a detector joins boxes in pixels and scores up to 1, or a regressor prices and rooms.

One scale of 16 bits for 640 pixels has 51 steps for a score, and for prices of 200,000 none for a count of rooms. Such
outputs have 30 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of, shape_of
from mrt.graph.operators import MOVES_OF_ONE
from mrt.graph.values import TABLE_RANK, moved_from, producer
from mrt.quantize.context import LoweringContext
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.tensor import Tensor
from mrt.table.table import CalibrationTable

UNEVEN = 64
"""The greatest part over the least, beyond which 16 bits leave the least fewer than 10."""


def uneven_outputs(
    graph: ir.Graph, table: CalibrationTable, options: QuantizeOptions
) -> frozenset[str]:
    """Return the names of these outputs, and of the values in front of them from the Concat on.

    There are none where values have so few bits that the program is for a machine that has no more.
    """
    if options.has_few_bits:
        return frozenset()
    sizes = _sizes_of_parts(graph, table)
    wide: set[str] = set()
    waiting = [
        value for value in graph.outputs if value.dtype == ir.DataType.FLOAT
    ]
    seen = set(waiting)
    while waiting:
        path = moved_from(waiting.pop())
        joined = path[-1]
        if producer(joined, "Concat") is None:
            continue
        if not _are_uneven(sizes[joined]):
            continue
        wide.update(map(name_of, path))
        parts = [part for part in _inputs(joined) if part not in seen]
        seen.update(parts)
        waiting += parts
    return frozenset(wide)


def has_uneven_columns(net: LoweringContext, value: ir.Value) -> bool:
    """Whether an output is a row whose columns, as they are computed, can reach very different sizes."""
    tensor = net.as_computed(value)
    if tensor.integral or net.is_requantized(tensor):
        return False
    return len(shape_of(value)) == TABLE_RANK and are_uneven(net, tensor)


def are_uneven(net: LoweringContext, tensor: Tensor) -> bool:
    """Whether the channels of a tensor can reach very different sizes, which follows from the weights in front of it.

    It does not matter where a program is for a machine that has no more bits.
    """
    if net.options.has_few_bits:
        return False
    proven = net.builder.bounds[tensor.value]
    reaches = np.maximum(-proven.lo, proven.hi) * tensor.scale
    reaches = reaches[reaches > 0]
    return bool(reaches.size) and reaches.max() > UNEVEN * reaches.min()


@dataclass(frozen=True)
class _Sizes:
    """The least and the greatest range among the parts of which a value is joined; those that are 0 do not count."""

    least: float = math.inf
    greatest: float = 0.0

    def merged(self, other: _Sizes) -> _Sizes:
        least = min(self.least, other.least)
        return _Sizes(least, max(self.greatest, other.greatest))


def _sizes_of_parts(
    graph: ir.Graph, table: CalibrationTable
) -> dict[ir.Value, _Sizes]:
    """Return the sizes behind every Concat, and behind what only moves such values."""
    sizes: dict[ir.Value, _Sizes] = {}
    for node in graph:
        if node.op_type not in MOVES_OF_ONE | {"Concat"}:
            continue
        total = _Sizes()
        for part in _inputs(node.outputs[0]):
            of_part = sizes.get(part) or _own_size(part, table)
            total = total.merged(of_part)
        sizes[node.outputs[0]] = total
    return sizes


def _own_size(value: ir.Value, table: CalibrationTable) -> _Sizes:
    range_ = table.ranges.get(name_of(value))
    if range_ is None or is_constant(value):
        return _Sizes()
    size = range_.magnitude
    return _Sizes(size, size) if size else _Sizes()


def _inputs(value: ir.Value) -> list[ir.Value]:
    """Return the values of which a Concat joins one, or the value that is moved."""
    node = value.producer()
    if node is None:
        return []
    taken = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    return [part for part in taken if part is not None]


def _are_uneven(sizes: _Sizes) -> bool:
    return sizes.greatest > UNEVEN * sizes.least
