"""Columns of a table that a scaler gives to comparisons with constants alone, as to trees behind a StandardScaler.

Their input has all bits (`mrt.quantize.compared_inputs`). With 8 bits for what the scaler gives, a great part of
the rows would lie on the other side of some threshold: 16 cost a comparison hardly more.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.quantize.compared_inputs import (
    ComparedReaders,
    compared_inputs,
    readers_of,
    scales_columns,
)
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.scaled_tables import is_product_with_factors

BITS = 16


def with_scaled_column_bits(
    model: ir.Model, options: QuantizeOptions
) -> tuple[QuantizeOptions, str]:
    """Give BITS to such columns and what moves them, unless they have bits of their own; return a note where they have more."""
    inputs = compared_inputs(model.graph, options)
    if options.activation_bits >= BITS:
        return options, ""
    columns = _compared_columns(model.graph, inputs.moved)
    changed = options.with_bits_of_values(columns, BITS)
    if changed == options:
        return options, ""
    note = (
        f"columns that are scaled and then compared have {BITS} bits: with {options.activation_bits} many rows would take "
        "another way through the trees"
    )
    return changed, note


def _compared_columns(
    graph: ir.Graph, inputs: frozenset[str]
) -> frozenset[str]:
    """Return the names of scaled columns of these inputs, of what moves them, and of thresholds that are looked up for them.

    Only comparisons read them, or scalers whose columns only comparisons read.
    """
    scalers, compared = list(_scalers(graph)), dict[str, ComparedReaders]()
    for node in reversed(scalers):
        readers = readers_of(node.outputs[0])
        if readers is not None and readers.scaled <= compared.keys():
            compared[name_of(node.outputs[0])] = readers
    reached, columns = set(inputs), set[str]()
    for node in scalers:
        readers = compared.get(name_of(node.outputs[0]))
        if readers is not None and name_of(node.inputs[0]) in reached:
            reached |= readers.moved
            columns |= readers.moved | readers.thresholds
    return frozenset(columns)


def _scalers(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes that scale the columns of a table, in order."""
    for node in graph:
        constant = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
        if constant is None or is_product_with_factors(node):
            continue
        if scales_columns(node, constant):
            yield node
