"""Lowers greatest and least updates at computed places, as in a softmax over the edges of a graph, to choices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    nodes,
    operand,
    producer,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.computed_scatter import MOST_UPDATES
from mrt.rewrite.lookup.onehot_scatter import from_front
from mrt.rewrite.lookup.scattered_rows import (
    ScatteredRows,
    scattered_rows,
)

_OPPOSITES = {"max": "min", "min": "max"}
_REDUCTIONS = {"max": "ReduceMax", "min": "ReduceMin"}
_COMBINE = {"max": "Max", "min": "Min"}
BEYOND = 1e38  # what no update exceeds


def lower_extreme_scatter(model: ir.Model) -> int:
    """Scatter*(x, indices, updates), reduction "max" -> Max(x, ReduceMax(Where(hits, updates, x))).

    hits[n, e] is whether update e goes to row n. "min" is the same the other way round.
    Applies to more than 32 updates; of constant indices, to those that `onehot_scatter`
    leaves. Equal.
    """
    count = 0
    for node in nodes(model, "ScatterND", "ScatterElements"):
        rows = _rows_of_few_choices(node)
        if rows is None:
            continue
        if rows.count > MOST_UPDATES or rows.has_constant_indices:
            _write(rows)
            count += 1
    return count


def lower_scatter_without_self(model: ir.Model) -> int:
    """Scatter*(Scatter*(x, indices, -3.4e38), indices, updates), reductions "min" and "max" -> choices between updates.

      -> Where(is hit, ReduceMax(Where(hits, updates, least update)), x)

    It is PyTorch's scatter_reduce(include_self=False): x takes no part in rows that are hit,
    and the first scatter, which hides it there, may be folded to a constant. With that, the
    range of the result would be that of float32. Applies to any number of updates; "min" is
    the same the other way round. Equal.
    """
    count = 0
    # The scatter that hides x comes first, and may stand in front of several others.
    for node in reversed(nodes(model, "ScatterND", "ScatterElements")):
        rows = _rows_of_few_choices(node)
        if rows is None:
            continue
        patch = Patch(node)
        hiding, hidden = _hiding(rows), _hidden_constant(rows)
        if hiding is not None:
            _write_without_x(rows, patch, hiding.old(patch))
            count += 1
        elif hidden is not None:
            old = patch.constant(hidden, "old")
            _write_without_x(rows, patch, rows.flat(patch, old, rows.rows))
            count += 1
    return count


def _rows_of_few_choices(node: ir.Node) -> ScatteredRows | None:
    rows = scattered_rows(node)
    size = None if rows is None else size_of_choices(rows)
    is_small = size is not None and size <= LARGEST_RESULT
    return rows if is_small else None


def size_of_choices(rows: ScatteredRows) -> int | None:
    """Return the number of choices that a greatest or least update needs; None if the scatter has none."""
    if _reduction(rows.node) not in _REDUCTIONS:
        return None
    return rows.rows * rows.count * rows.rest


def _reduction(node: ir.Node) -> str:
    return string_attribute(node, "reduction", "none")


def _hiding(rows: ScatteredRows) -> ScatteredRows | None:
    """Return the scatter in front that hides x wherever an update goes; None if there is none."""
    before = producer(first(rows.node), rows.node.op_type)
    if before is None or operand(before, 1) is not operand(rows.node, 1):
        return None
    hiding = scattered_rows(before)
    filled = constant(operand(before, 2))
    if hiding is None or hiding.axis != rows.axis or filled is None:
        return None
    reduction = _reduction(rows.node)
    is_opposite = _reduction(before) == _OPPOSITES[reduction]
    return hiding if is_opposite and _beyond(filled, reduction).all() else None


def _hidden_constant(rows: ScatteredRows) -> Array | None:
    """Return x where it is constant and hidden wherever an update goes, with 0 in these places; None if it is not so."""
    x = constant(first(rows.node))
    indices = constant(operand(rows.node, 1))
    if x is None or indices is None:
        return None
    is_hit = np.zeros(x.shape, np.bool_)
    places = from_front(indices, rows.sizes)
    if rows.node.op_type == "ScatterND":
        is_hit[tuple(np.moveaxis(places, -1, 0))] = True
    else:
        np.put_along_axis(is_hit, places, values=True, axis=rows.axis)
    is_hidden = _beyond(x, _reduction(rows.node))
    if not is_hit.any() or not np.array_equal(is_hit, is_hidden):
        return None
    return np.where(is_hit, 0, x).astype(x.dtype)


def _beyond(array: Array, reduction: str) -> npt.NDArray[np.bool_]:
    """Return where a number is below any update of a maximum, or above any of a minimum."""
    return array <= -BEYOND if reduction == "max" else array >= BEYOND


def _write(rows: ScatteredRows) -> None:
    reduction = _reduction(rows.node)
    patch = Patch(rows.node)
    hits = rows.hits(patch)
    updates = patch.reshape(rows.updates(patch), (1, rows.count, rows.rest))
    old = patch.reshape(rows.old(patch), (rows.rows, 1, rows.rest))
    chosen = patch.add("Where", hits, updates, old)
    best = _reduce(patch, reduction, chosen, axis=1)
    total = patch.add(_COMBINE[reduction], old, best)
    rows.finish(patch, total)


def _write_without_x(rows: ScatteredRows, patch: Patch, old: ir.Value) -> None:
    """Choose between updates alone in rows that are hit, and take the old row of x in others."""
    reduction = _reduction(rows.node)
    hits = rows.hits(patch)
    updates = patch.reshape(rows.updates(patch), (1, rows.count, rows.rest))
    least = _reduce(patch, _OPPOSITES[reduction], updates, axis=1)
    chosen = patch.add("Where", hits, updates, least)
    best = _reduce(patch, reduction, chosen, axis=1)
    numbers = patch.add("Cast", hits, to=int(ir.DataType.FLOAT))
    some = _reduce(patch, "max", numbers, axis=1)
    is_hit = patch.add("Cast", some, to=int(ir.DataType.BOOL))
    apart = patch.reshape(old, (rows.rows, 1, rows.rest))
    rows.finish(patch, patch.add("Where", is_hit, best, apart))


def _reduce(
    patch: Patch, reduction: str, value: ir.Value, axis: int
) -> ir.Value:
    return patch.add(
        _REDUCTIONS[reduction],
        value,
        patch.axes([axis]),
        keepdims=1,
        noop_with_empty_axes=0,
    )
