"""Lowers sums of many updates at computed places, as of the messages in a graph network, to products or sums of choices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, operand, string_attribute
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.computed_scatter import MOST_UPDATES
from mrt.rewrite.lookup.scattered_rows import (
    ScatteredRows,
    scattered_rows,
)

FEWEST_UPDATES = 9  # of whole rows; fewer are choices: `computed_scatter`


def lower_summing_scatter(model: ir.Model) -> int:
    """Scatter*(x, indices, updates), reduction "add" -> a product, or a sum of choices.

      of whole rows, or into a vector -> x + MatMul(hits, updates)
      at an index for each element -> x + ReduceSum(Where(hits, updates, 0))

    hits[n, e] is 1 where update e goes to row n, else 0; ScatterElements has whole rows
    where its indices are the same in all columns. Integers are chosen and summed as well.
    Applies to at least 9 updates of whole rows, and to more than 32 else; of constant
    indices, to those that `onehot_scatter` leaves. Equal up to the order of the sums.
    """
    count = 0
    for node in nodes(model, "ScatterND", "ScatterElements"):
        rows = scattered_rows(node)
        size = None if rows is None else size_of_sums(rows)
        if rows is None or size is None or size > LARGEST_RESULT:
            continue
        if rows.count >= _fewest(rows):
            write = _multiply if _is_product(rows) else _choose
            write(rows)
            count += 1
    return count


def size_of_sums(rows: ScatteredRows) -> int | None:
    """Return the number of comparisons or choices that sums need; None if the scatter has no sums."""
    if string_attribute(rows.node, "reduction", "none") != "add":
        return None
    columns = 1 if _is_product(rows) else rows.rest
    return rows.rows * rows.count * columns


def _is_product(rows: ScatteredRows) -> bool:
    return rows.is_whole and first(rows.node).dtype == ir.DataType.FLOAT


def _fewest(rows: ScatteredRows) -> int:
    """Return the fewest updates that are no choices of `computed_scatter`, which takes no constant indices."""
    if rows.has_constant_indices:
        return 1
    is_repeated = rows.indices is not operand(rows.node, 1)
    if rows.node.op_type == "ScatterND" or is_repeated:
        return FEWEST_UPDATES
    return MOST_UPDATES + 1


def _multiply(rows: ScatteredRows) -> None:
    patch = Patch(rows.node)
    number = patch.reshape(rows.numbers(patch), (1, rows.count))
    column = np.arange(rows.rows, dtype=np.int64)[:, None]
    hit = patch.add("Equal", number, patch.constant(column, "rows"))
    hits = patch.add("Cast", hit, to=int(ir.DataType.FLOAT))
    updates = rows.updates(patch)
    old = rows.old(patch)
    total = patch.add("Add", old, patch.add("MatMul", hits, updates))
    rows.finish(patch, total)


def _choose(rows: ScatteredRows) -> None:
    patch = Patch(rows.node)
    kind = first(rows.node).dtype
    assert kind is not None
    hits = rows.hits(patch)
    shape = (1, rows.count, rows.rest)
    updates = patch.reshape(rows.updates(patch), shape)
    zero = patch.constant(np.array(0, kind.numpy()), "zero")
    chosen = patch.add("Where", hits, updates, zero)
    sums = patch.add(
        "ReduceSum",
        chosen,
        patch.axes([1]),
        keepdims=0,
        noop_with_empty_axes=0,
    )
    rows.finish(patch, patch.add("Add", rows.old(patch), sums))
