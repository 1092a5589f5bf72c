"""Inputs that nothing but comparisons with constants reads, as the columns of a table that trees take.

An integer of 32 bits costs a comparison no more than one of 8 bits. Columns of very different
sizes share the scale of their input, so that 8 bits would leave nothing of the small ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.operators import COMPARISONS
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.sums_of_squares import MOVES
from mrt.quantize.tensor import Format, wide_format
from mrt.table.table import MeasuredRange

_MOVES = MOVES | {"Gather"}
FEW_BITS = 8
"""With fewer bits of values, a program is for a machine that has no more, as an encrypted one."""


@dataclass(frozen=True)
class ComparedInputs:
    """The least and the greatest constant by input, and the names of inputs and of what moves them."""

    limits: Mapping[str, tuple[float, float]]
    wide: frozenset[str]


def compared_inputs(
    graph: ir.Graph, options: QuantizeOptions
) -> ComparedInputs:
    """Find the inputs of floats that only comparisons with constants read, behind movements."""
    limits: dict[str, tuple[float, float]] = {}
    wide: set[str] = set()
    if options.activation_bits >= FEW_BITS and options.sum_bits is None:
        for value in graph.inputs:
            found = _readers(value)
            own = options.layers.get(name_of(value), LayerBits())
            if own.activation_bits is not None or found is None:
                continue
            if value.dtype == ir.DataType.FLOAT:
                moved, limits[name_of(value)] = found
                wide |= moved
    return ComparedInputs(limits, frozenset(wide))


def format_of_compared(
    measured: MeasuredRange, limits: tuple[float, float], scales: str
) -> Format:
    """Return the format of such an input: 30 bits of its range and of what it is compared with."""
    least, most = min(measured.min, limits[0]), max(measured.max, limits[1])
    range_ = MeasuredRange(least, most, least, most)
    return wide_format(range_, (-math.inf, math.inf), scales)


def _readers(
    value: ir.Value,
) -> tuple[set[str], tuple[float, float]] | None:
    """Return what moves the value, and the ends of what it is compared with; None if others read it."""
    waiting, moved = [value], set[str]()
    ends: list[float] = []
    while waiting:
        current = waiting.pop()
        if current.is_graph_output():
            return None
        moved.add(name_of(current))
        for node, index in current.uses():
            if _moves(node, index):
                waiting.append(node.outputs[0])
                continue
            constant = constant_of(node.inputs[-1])
            if node.op_type not in COMPARISONS or index or constant is None:
                return None
            ends += float(constant.min()), float(constant.max())
    return (moved, (min(ends), max(ends))) if ends else None


def _moves(node: ir.Node, index: int) -> bool:
    """Whether the node moves the elements of this operand."""
    return node.op_type == "Concat" or (node.op_type in _MOVES and index == 0)
