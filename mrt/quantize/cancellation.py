"""Values of which differences leave little: they keep 16 bits.

The waves of a pulse are 300 of 50,000 counts, and temperatures between 250 and 310 kelvin differ
by 60. A value has one scale from 0 on, so that 8 bits would leave few or none for what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.operators import GREATEST_OF, MOVES_OF_ONE
from mrt.graph.values import moved_from
from mrt.quantize.options import QuantizeOptions
from mrt.table.table import Ranges

BITS = 16
LITTLE = 1 / 16
"""Of a term; what a sum leaves is then as exact as 4 bits of 8 are."""
NARROW = 1 / 4
"""Of an input's greatest magnitude; the rest of its range is never used."""

_CHOOSING = (
    MOVES_OF_ONE
    | GREATEST_OF
    | {
        "Clip",
        "Concat",
        "Gather",
        "Min",
        "Pad",
        "ReduceMin",
        "Relu",
    }
)
"""Operators of which each result is an element of an operand, or a constant."""


def with_bits_for_differences(
    graph: ir.Graph, options: QuantizeOptions, ranges: Ranges
) -> QuantizeOptions:
    """Give 16 bits to the terms of sums that leave little of them, and to inputs far from 0, where the options choose none."""
    if options.has_few_bits or options.activation_bits >= BITS:
        return options
    terms = _cancelled_terms(graph, ranges)
    sources = {it for term in terms for it in moved_from(term)}
    values = sources | _values_far_from_0(graph, ranges)
    return options.with_bits_of_values(map(name_of, values), BITS)


def _values_far_from_0(graph: ir.Graph, ranges: Ranges) -> set[ir.Value]:
    """Return the inputs far from 0, and what is chosen from them.

    Where that is not far from 0 it has few bits, and so has what it is chosen from.
    """
    far = {it for it in graph.inputs if _is_far_from_0(it, ranges)}
    choices: list[tuple[ir.Value, ir.Value]] = []
    for node in graph:
        if node.op_type not in _CHOOSING:
            continue
        result = node.outputs[0]
        choices += [(it, result) for it in node.inputs if it in far]
        if not far.isdisjoint(node.inputs) and _is_far_from_0(result, ranges):
            far.add(result)
    for operand, result in reversed(choices):
        if result not in far:
            far.discard(operand)
    return far


def _is_far_from_0(value: ir.Value, ranges: Ranges) -> bool:
    measured = ranges.get(name_of(value))
    if measured is None or value.dtype not in (None, ir.DataType.FLOAT):
        return False
    span = measured.max - measured.min
    return 0 < span <= NARROW * measured.magnitude


def _cancelled_terms(
    nodes: Iterable[ir.Node], ranges: Ranges
) -> Iterator[ir.Value]:
    """Yield the computed terms of which a sum or a difference is much smaller."""
    for node in nodes:
        left = ranges.get(name_of(node.outputs[0]))
        if node.op_type not in ("Add", "Sub") or left is None:
            continue
        for term in node.inputs:
            measured = ranges.get(name_of(term))
            if term is None or constant_of(term) is not None or not measured:
                continue
            if left.magnitude <= LITTLE * measured.magnitude:
                yield term
