"""Gives the columns of input tables one size, by powers of two.

Columns of a raw table may differ by many powers of ten, as an amount and a rate do, and the
input has one format: its integers would leave few steps to the small ones. A product with a
power of two for each column, right behind the input, brings them to one size; the constants
behind it are divided or multiplied by the same. In float nothing changes but numbers too small
to be normal. As integers, the product takes nothing: an integer of a column stands for a real
number by the column's own scale.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import power_of_two_at_least
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.graph.names import fresh_name
from mrt.graph.notes import (
    compared_of,
    has_scaled_columns,
    indices_of,
    is_whole,
    note_scaled_columns,
    picture_layout_of,
    shared_range_of,
)
from mrt.graph.patch import add_constant
from mrt.graph.states import states_of
from mrt.rewrite.file_grids import has_file_grids
from mrt.rewrite.tables.column_reads import (
    ColumnReads,
    Columns,
    ConstantEdit,
    Flags,
    Floats,
    Held,
)

WORTH = 2.0**8
"""How many times as large as another a column must be for columns to get one size."""
MOST_COLUMNS = 2**16
"""The most columns for which a program states scales."""
MOST = 2.0**40
"""The greatest factor of a column."""
MOST_BESIDE = 2.0**24
"""The greatest factor of a column beside computed ones, so that a float32 that stands for a missing number hardly overflows."""
UNREAD = 2.0**-40
"""The factor of a column that nothing reads, so that it takes no steps from the others."""


def scale_columns(model: ir.Model) -> int:
    """Multiply the columns of input tables by powers of two, where they differ much in size and every reader can absorb that."""
    if has_file_grids(model):
        return 0
    states = states_of(model)
    tables = [
        value
        for value in model.graph.inputs
        if _is_table(value) and name_of(value) not in states
    ]
    widths = [shape_of(value)[1] for value in tables]
    starts = accumulate(widths, initial=0)
    first = {
        name_of(value): int(start)
        for value, start in zip(tables, starts, strict=False)
    }
    reads = _reads(model.graph, tables, first)
    if reads is None:
        return 0
    factors = _factors(reads)
    if (factors == 1).all():
        return 0
    for edit in reads.edits:
        _edit_constant(model.graph, edit, factors)
    for value in tables:
        if name_of(value) in reads.held:
            _multiply(
                model.graph, value, factors[reads.held[name_of(value)].columns]
            )
    return 1


def _is_table(value: ir.Value) -> bool:
    """Whether an input is a row of reals, of which nothing else is known."""
    if (
        value.dtype != ir.DataType.FLOAT
        or value.shape is None
        or len(value.shape) != 2
    ):
        return False
    notes = (
        indices_of(value),
        compared_of(value),
        picture_layout_of(value),
        shared_range_of(value),
    )
    if shape_of(value)[1] > MOST_COLUMNS:
        return False
    known = is_whole(value) or any(note is not None for note in notes)
    scaled = any(
        has_scaled_columns(use.node.outputs[0]) for use in value.uses()
    )
    return (
        not (known or scaled) and shape_of(value)[0] == 1 and bool(value.uses())
    )


def _reads(
    graph: ir.Graph, tables: list[ir.Value], first: dict[str, int]
) -> ColumnReads | None:
    """Return what reads the tables, without those that have other readers; None if none is left."""
    kept = list(tables)
    count = sum(shape_of(value)[1] for value in tables)
    while kept:
        held = {name_of(value): _held(value, first) for value in kept}
        reads = ColumnReads(count, dict(held))
        reads.follow(graph)
        if reads.unknown.any():
            kept = [
                value
                for value in kept
                if not reads.unknown[held[name_of(value)].columns].any()
            ]
            continue
        reads.neighbours += [one.columns for one in held.values()]
        return reads
    return None


def _held(value: ir.Value, first: dict[str, int]) -> Held:
    width = shape_of(value)[1]
    start = first[name_of(value)]
    return Held(np.arange(start, start + width), np.zeros(width))


def _factors(reads: ColumnReads) -> Floats:
    """Return the factor of each column: 1 for the smallest of the columns that are used together, so that no number overflows."""
    factors = np.ones(len(reads.sizes))
    for group in _groups(reads):
        sizes = _sizes(reads, group)
        known = sizes[sizes > 0]
        if known.size and known.max() > WORTH * known.min():
            factors[group] = _of_sizes(sizes, group >= reads.count)
    return factors


def _of_sizes(sizes: Floats, computed: Flags) -> Floats:
    """Return the factors of columns of these sizes, 0 of unknown ones.

    Beside computed columns, which have none, others get the size of these.
    """
    powers = np.array([_power(size) for size in sizes])
    is_known = sizes > 0
    if not computed.any():
        factors: Floats = np.minimum(powers[is_known].max() / powers, MOST)
        factors[~is_known] = UNREAD
        factors /= factors.max()
        return factors
    if not (computed & is_known).any():
        return np.ones_like(powers)
    most = powers[computed & is_known].max()
    factors = np.minimum(most / powers, MOST_BESIDE)
    factors[~is_known] = UNREAD
    factors[computed] = 1.0
    return factors


def _power(size: float) -> float:
    """Return the power of two that a size is rounded up to; 1 for an unknown one."""
    return power_of_two_at_least(float(size)) if size > 0 else 1.0


def _sizes(reads: ColumnReads, group: Columns) -> Floats:
    """Return the sizes of columns as far as they are known, else 0; relative ones, where products alone read columns."""
    sizes, weights = reads.sizes[group], reads.weights[group]
    if not sizes.any():
        return np.divide(
            1.0, weights, out=np.zeros_like(weights), where=weights > 0
        )
    if ((sizes == 0) & (weights > 0)).any():
        # Weights give no sizes beside those of thresholds.
        return np.zeros_like(sizes)
    return _with_signs(reads, group, sizes)


def _with_signs(reads: ColumnReads, group: Columns, sizes: Floats) -> Floats:
    """Return sizes of columns that are only compared with 0, too: that of a flag, or the greatest.

    The greatest, if anything is multiplied: a column of great numbers that seems small would take steps from all others.
    """
    greatest = float(sizes.max())
    size = min(1.0, greatest)
    if reads.multiplied[group].any():
        size = greatest
    return np.where((sizes == 0) & reads.signs[group], size, sizes)


def _groups(reads: ColumnReads) -> list[Columns]:
    """Return the columns of each table, those of several together where a value holds these side by side."""
    groups: list[set[int]] = []
    for columns in reads.neighbours:
        together = set(columns.tolist())
        apart = []
        for group in groups:
            if group & together:
                together |= group
            else:
                apart.append(group)
        groups = [*apart, together]
    return [np.array(sorted(group)) for group in groups]


def _edit_constant(
    graph: ir.Graph, edit: ConstantEdit, factors: Floats
) -> None:
    """Multiply a constant by its columns' factors, or divide it by them: both are exact."""
    of_columns = factors[edit.columns]
    if (of_columns == 1).all():
        return
    if edit.squared:
        of_columns = of_columns * of_columns
    node, before = edit.node, edit.node.inputs[edit.index]
    constant = constant_of(before)
    assert constant is not None
    with np.errstate(over="ignore"):  # a threshold may become infinite
        scaled = (
            constant / of_columns if edit.divides else constant * of_columns
        )
        array = scaled.astype(np.float32)
    value = add_constant(graph, array, f"{name_of(before)}.of_columns")
    node.replace_input_with(edit.index, value)


def _multiply(graph: ir.Graph, table: ir.Value, factors: Floats) -> None:
    """Put the product of a table with its factors in the table's place."""
    if (factors == 1).all():
        return
    name = f"{name_of(table)}.columns"
    constant = add_constant(
        graph, factors.astype(np.float32), f"{name}.factors"
    )
    uses = tuple(table.uses())
    product = ir.Node(
        "", "Mul", [table, constant], name=fresh_name(graph, name)
    )
    result = product.outputs[0]
    result.name, result.shape, result.type = (
        product.name,
        table.shape,
        table.type,
    )
    for use in uses:
        use.node.replace_input_with(use.idx, result)
    graph.insert_before(graph[0], product)
    note_scaled_columns(result)
