"""Inputs that nothing but comparisons with constants reads, as the columns of a table that trees take.

An integer of 32 bits costs a comparison no more than one of 8 bits. Columns of very different
sizes share the scale of their input, so that 8 bits would leave nothing of the small ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.operators import COMPARISONS
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.sums_of_squares import MOVES
from mrt.quantize.tensor import FINE_BITS, OUTPUT_BITS, Format, wide_format
from mrt.table.table import MeasuredRange

_MOVES = MOVES | {"Gather"}
FEW_BITS = 8
"""With fewer bits of values, a program is for a machine that has no more, as an encrypted one."""


@dataclass(frozen=True)
class ComparedInputs:
    """The least and the greatest constant by input, the bits of each, and the names of inputs and of what moves them."""

    limits: Mapping[str, tuple[float, float]]
    bits: int
    moved: frozenset[str]

    def note(self) -> str:
        """What was decided, why, and how to have fewer bits."""
        names = ", ".join(f"'{name}'" for name in self.limits)
        inputs = "input" if len(self.limits) == 1 else "inputs"
        return (
            f"{inputs} {names}: {self.bits} bits, since only comparisons read them, which cost a processor no more than with "
            f"{FEW_BITS} (--compared-bits {FEW_BITS} for encryption and proofs)"
        )

    def format(self, measured: MeasuredRange, name: str, scales: str) -> Format:
        """Return the format of an input: all bits for its range and what it is compared with."""
        limits = self.limits[name]
        least = min(measured.min, limits[0])
        most = max(measured.max, limits[1])
        range_ = MeasuredRange(least, most, least, most)
        return wide_format(range_, (-math.inf, math.inf), scales)


def with_compared_bits(
    model: ir.Model, options: QuantizeOptions
) -> tuple[QuantizeOptions, str]:
    """Give `compared_bits` of 16 or fewer to these inputs and what moves them; return a note where they have more.

    An input with activation bits of its own keeps them.
    """
    bits = options.compared_bits
    if bits is None or bits > OUTPUT_BITS:
        compared = compared_inputs(model.graph, options)
        return options, compared.note() if compared.limits else ""
    layers = dict(options.layers)
    wide = replace(options, compared_bits=FINE_BITS)
    for name in compared_inputs(model.graph, wide).moved:
        own = layers.get(name, LayerBits())
        if own.activation_bits is None:
            layers[name] = replace(own, activation_bits=bits)
    return replace(options, layers=layers, compared_bits=None), ""


def compared_inputs(
    graph: ir.Graph, options: QuantizeOptions
) -> ComparedInputs:
    """Find the inputs of floats that only comparisons with constants read, behind movements.

    There is none where they have as few bits as other values.
    """
    limits: dict[str, tuple[float, float]] = {}
    moved: set[str] = set()
    bits = _bits(options)
    for value in graph.inputs if bits > OUTPUT_BITS else ():
        found = _readers(value)
        own = options.layers.get(name_of(value), LayerBits())
        if own.activation_bits is not None or found is None:
            continue
        if value.dtype == ir.DataType.FLOAT:
            movers, limits[name_of(value)] = found
            moved |= movers
    return ComparedInputs(limits, bits, frozenset(moved))


def _bits(options: QuantizeOptions) -> int:
    if options.compared_bits is not None:
        return options.compared_bits
    is_narrow = options.activation_bits < FEW_BITS
    if is_narrow or options.sum_bits is not None:
        return options.activation_bits
    return FINE_BITS


def _readers(
    value: ir.Value,
) -> tuple[set[str], tuple[float, float]] | None:
    """Return what moves the value, and the ends of what it is compared with; None if others read it.

    Each value is visited once: what moves it may meet again.
    """
    waiting, moved = [value], set[str]()
    ends: list[float] = []
    while waiting:
        current = waiting.pop()
        if current.is_graph_output():
            return None
        if name_of(current) in moved:
            continue
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
