"""Lowers sums of many rows at computed places, as of the messages in a graph network, to a product."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, operand, string_attribute
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.computed_scatter import MOST_UPDATES
from mrt.rewrite.lookup.scattered_rows import (
    ScatteredRows,
    reshape,
    scattered_rows,
)

FEWEST_UPDATES = 9  # fewer are choices: `computed_scatter`
FEWEST_UPDATES_OF_VECTOR = MOST_UPDATES + 1


def lower_summing_scatter(model: ir.Model) -> int:
    """Scatter*(x, computed indices, updates), reduction "add" -> x + MatMul(hits, updates).

    hits[n, e] is 1 where update e goes to row n, else 0. Applies to at least 9 updates of
    whole rows, which ScatterElements has where its indices are the same in all columns,
    and to more than 32 of a vector. Equal up to the order of the sums.
    """
    count = 0
    for node in nodes(model, "ScatterND", "ScatterElements"):
        rows = scattered_rows(node)
        if rows is not None and _applies(rows):
            _write(rows)
            count += 1
    return count


def _applies(rows: ScatteredRows) -> bool:
    if string_attribute(rows.node, "reduction", "none") != "add":
        return False
    if constant(rows.indices) is not None:
        return False
    is_small = rows.rows * rows.count <= LARGEST_RESULT
    return is_small and rows.count >= _fewest(rows)


def _fewest(rows: ScatteredRows) -> int:
    is_vector = (
        rows.node.op_type == "ScatterElements"
        and rows.indices is operand(rows.node, 1)
    )
    return FEWEST_UPDATES_OF_VECTOR if is_vector else FEWEST_UPDATES


def _write(rows: ScatteredRows) -> None:
    patch = Patch(rows.node)
    number = reshape(patch, rows.numbers(patch), (1, rows.count))
    column = np.arange(rows.rows, dtype=np.int64)[:, None]
    hit = patch.add("Equal", number, patch.constant(column, "rows"))
    hits = patch.add("Cast", hit, to=int(ir.DataType.FLOAT))
    updates = rows.updates(patch)
    old = rows.old(patch)
    total = patch.add("Add", old, patch.add("MatMul", hits, updates))
    rows.finish(patch, total)
