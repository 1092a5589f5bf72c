"""Outputs of very different sizes, as a detector joins boxes in pixels and scores up to 1, or a regressor prices and rooms.

One scale of 16 bits for 640 pixels has 51 steps for a score, and for prices of 200,000 none for a count of rooms. Such
outputs have 30 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of, shape_of
from mrt.quantize.compared_inputs import has_few_bits
from mrt.quantize.context import LoweringContext
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.sums_of_squares import MOVES
from mrt.quantize.tensor import Tensor
from mrt.table.table import CalibrationTable

ROW_RANK = 2
UNEVEN = 64
"""The greatest part over the least, beyond which 16 bits leave the least fewer than 10."""


def uneven_outputs(
    graph: ir.Graph, table: CalibrationTable, options: QuantizeOptions
) -> frozenset[str]:
    """Return the names of these outputs, and of the values in front of them from the Concat on.

    There are none where values have so few bits that the program is for a machine that has no more.
    """
    if has_few_bits(options):
        return frozenset()
    wide: set[str] = set()
    for value in graph.outputs:
        if value.dtype == ir.DataType.FLOAT:
            wide.update(_wide_way(value, table))
    return frozenset(wide)


def has_uneven_columns(net: LoweringContext, value: ir.Value) -> bool:
    """Whether an output is a row whose columns, as they are computed, can reach very different sizes."""
    tensor = net.as_computed(value)
    if tensor.integral or net.is_requantized(tensor):
        return False
    return len(shape_of(value)) == ROW_RANK and are_uneven(net, tensor)


def are_uneven(net: LoweringContext, tensor: Tensor) -> bool:
    """Whether the channels of a tensor can reach very different sizes, which follows from the weights in front of it.

    It does not matter where a program is for a machine that has no more bits.
    """
    if has_few_bits(net.options):
        return False
    proven = net.builder.bounds[tensor.value]
    reaches = np.maximum(-proven.lo, proven.hi) * tensor.scale
    reaches = reaches[reaches > 0]
    return bool(reaches.size) and reaches.max() > UNEVEN * reaches.min()


def _wide_way(value: ir.Value, table: CalibrationTable) -> list[str]:
    """Return the names from an output to the first Concat of uneven parts; none if there is none in front of it."""
    way: list[str] = []
    node = value.producer()
    while node is not None and node.op_type in MOVES:
        way.append(name_of(node.outputs[0]))
        value = node.inputs[0] or value
        node = value.producer()
    if node is None or node.op_type != "Concat":
        return []
    operands = [operand for operand in node.inputs if operand is not None]
    inner = [name for operand in operands for name in _wide_way(operand, table)]
    parts = [part for operand in operands for part in _parts(operand)]
    if inner or _are_uneven(parts, table):
        return [*way, name_of(node.outputs[0]), *inner]
    return []


def _parts(value: ir.Value) -> Iterator[ir.Value]:
    """Yield the values of which a value is joined, before they are moved."""
    waiting: list[ir.Value | None] = [value]
    while waiting:
        current = waiting.pop()
        node = None if current is None else current.producer()
        if node is not None and node.op_type in MOVES:
            waiting += node.inputs[:1]
        elif node is not None and node.op_type == "Concat":
            waiting += node.inputs
        elif current is not None and not is_constant(current):
            yield current


def _are_uneven(parts: Iterable[ir.Value], table: CalibrationTable) -> bool:
    ranges = [table.ranges.get(name_of(part)) for part in parts]
    sizes = [
        max(abs(range_.min), abs(range_.max)) for range_ in ranges if range_
    ]
    sizes = [size for size in sizes if size]
    return bool(sizes) and max(sizes) > UNEVEN * min(sizes)
