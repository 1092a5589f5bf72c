"""Lowers OneHot, GatherND and scattering by constant indices.

They become comparisons and plain lookups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    scalar,
    shape_of,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.row_numbers import number_rows


def lower_onehot_scatter(model: ir.Model) -> int:
    """OneHot, GatherND, ScatterND and ScatterElements -> plain operators.

      OneHot -> Where(index = 0, 1, 2, ..)
      GatherND -> Gather along a flattened axis; by single indices, along the first
      Scatter* -> Gather from the old and the new elements
      Scatter* with a reduction -> that reduction of x and the gathered updates

    The last is repeated as often as one index occurs. Applies to a constant depth,
    and for ScatterND and ScatterElements to constant indices, all different if nothing
    is reduced. Equal, up to the order of sums and products.
    """
    lower = {
        "OneHot": _one_hot,
        "GatherND": _gather_nd,
        "ScatterND": _scatter,
        "ScatterElements": _scatter,
    }
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _one_hot(node: ir.Node) -> bool:
    depth = scalar(operand(node, 1))
    values = constant(operand(node, 2))
    shape = shape_of(node.outputs[0])
    indices, index_shape = first(node), shape_of(first(node))
    if (
        depth is None
        or values is None
        or shape is None
        or index_shape is None
        or not 0 < depth <= LARGEST_RESULT
    ):
        return False
    axis = int_attribute(node, "axis", -1) % len(shape)
    patch = Patch(node)
    apart = patch.add(
        "Reshape",
        indices,
        patch.axes((*index_shape[:axis], 1, *index_shape[axis:]), "apart"),
        allowzero=0,
    )
    assert indices.dtype is not None
    numbers = (
        np.arange(int(depth))
        .reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        .astype(indices.dtype.numpy())
    )
    hit = _equal(patch, apart, numbers)
    if (
        indices.dtype.numpy().kind != "u"
    ):  # a negative index counts from the end
        hit = patch.add(
            "Or",
            hit,
            _equal(patch, apart, numbers - numbers.dtype.type(int(depth))),
        )
    off, on = (
        patch.constant(values[index].reshape(()), role)
        for index, role in ((0, "off"), (1, "on"))
    )
    patch.finish(patch.add("Where", hit, on, off))
    return True


def _equal(patch: Patch, value: ir.Value, numbers: Array) -> ir.Value:
    return patch.add("Equal", value, patch.constant(numbers, "numbers"))


def _gather_nd(node: ir.Node) -> bool:
    """Flatten the batch axes and the indexed axes to one, and gather along it.

    x is [batch.., d1, .., dk, rest] and the indices are [batch.., w.., k]. One index is
    computed from each tuple of k.
    """
    x, indices = shape_of(first(node)), shape_of(operand(node, 1))
    batch = int_attribute(node, "batch_dims", 0)
    if x is None or indices is None or math.prod(x[:batch]) > LARGEST_RESULT:
        return False
    looked_up, rest = x[batch : batch + indices[-1]], x[batch + indices[-1] :]
    patch = Patch(node)
    if len(looked_up) == 1 and not batch:
        patch.finish(_gathered_rows(patch, node, indices[:-1]))
        return True
    flat = patch.add(
        "Reshape",
        first(node),
        patch.axes((math.prod(x[: len(x) - len(rest)]), *rest), "flat"),
        allowzero=0,
    )
    total = number_rows(
        patch, operand(node, 1), looked_up, axis=len(indices) - 1
    )
    if batch:
        starts = np.arange(math.prod(x[:batch]), dtype=np.int64).reshape(
            x[:batch]
        ) * math.prod(looked_up)
        starts = starts.reshape(x[:batch] + (1,) * (len(indices) - 1 - batch))
        total = patch.add("Add", total, patch.constant(starts, "starts"))
    patch.finish(patch.add("Gather", flat, total, axis=0))
    return True


def _gathered_rows(
    patch: Patch, node: ir.Node, places: tuple[int, ...]
) -> ir.Value:
    """Gather by single indices as they are, so that an input of them is seen to hold indices."""
    alone = patch.add(
        "Reshape", operand(node, 1), patch.axes(places, "alone"), allowzero=0
    )
    return patch.add("Gather", first(node), alone, axis=0)


_REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_NEUTRAL = {"add": 0, "mul": 1}
MOST_ROUNDS = 16  # of updates to one element


def _scatter(node: ir.Node) -> bool:
    """Flatten the indexed axes to rows, and gather an update for each row.

    Each element of a constant is the number of the update that the row takes.
    """
    x = shape_of(first(node))
    indices = constant(operand(node, 1))
    updates = operand(node, 2)
    if (
        x is None
        or indices is None
        or updates is None
        or math.prod(x) > LARGEST_RESULT
        or not shape_of(updates)
    ):
        return False
    if node.op_type == "ScatterND":
        depth = indices.shape[-1]
        places = np.ravel_multi_index(
            tuple(np.moveaxis(from_front(indices, x[:depth]), -1, 0)),
            x[:depth],
        ).reshape(-1)
        rows, rest = math.prod(x[:depth]), x[depth:]
    else:
        places = _places_of_elements(node, indices, x)
        rows = math.prod(x)
        rest = ()
    rounds = _rounds(places)
    reduction = string_attribute(node, "reduction", "none")
    if len(rounds) > (1 if reduction == "none" else MOST_ROUNDS):
        return False
    patch = Patch(node)
    old = patch.add(
        "Reshape", first(node), patch.axes((rows, *rest), "old"), allowzero=0
    )
    new = patch.add(
        "Reshape", updates, patch.axes((places.size, *rest), "new"), allowzero=0
    )
    for order in rounds:
        old = _update(
            patch, old, new, _Update(reduction, places, order, rows, rest)
        )
    patch.finish(patch.add("Reshape", old, patch.axes(x, "shape"), allowzero=0))
    return True


def _rounds(places: Array) -> list[Array]:
    """Divide the updates into rounds in which no place occurs twice.

    Each round is a list of the numbers of its updates.
    """
    seen: dict[int, int] = {}
    turns = []
    for place in places.tolist():
        turns.append(seen.get(place, 0))
        seen[place] = turns[-1] + 1
    return [
        np.flatnonzero(np.array(turns) == turn)
        for turn in range(max(turns, default=0) + 1)
    ]


@dataclass(frozen=True)
class _Update:
    reduction: str
    places: Array
    order: Array  # the updates that take part
    rows: int
    rest: tuple[int, ...]


def _update(
    patch: Patch, old: ir.Value, new: ir.Value, update: _Update
) -> ir.Value:
    """Apply one round of updates.

    A row without an update takes part as itself or, in sums and products, as 0 or 1.
    """
    neutral = _NEUTRAL.get(update.reduction)
    behind = update.places[update.order]
    if neutral is None:
        sources = np.arange(update.rows, dtype=np.int64)
        sources[behind] = update.rows + update.order
        both = patch.add("Concat", old, new, axis=0)
    else:
        sources = np.full(update.rows, update.places.size, np.int64)
        sources[behind] = update.order
        assert patch.output.dtype is not None
        row = np.full((1, *update.rest), neutral, patch.output.dtype.numpy())
        both = patch.add("Concat", new, patch.constant(row, "neutral"), axis=0)
    chosen = patch.add(
        "Gather", both, patch.constant(sources, "sources"), axis=0
    )
    return (
        chosen
        if update.reduction == "none"
        else patch.add(_REDUCTIONS[update.reduction], old, chosen)
    )


def from_front(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Count each index of a tuple from the front and clip it to its own axis."""
    limits = np.array(sizes, np.int64)
    return np.where(indices < 0, indices + limits, indices).clip(0, limits - 1)


def _places_of_elements(
    node: ir.Node, indices: Array, x: tuple[int, ...]
) -> Array:
    axis = int_attribute(node, "axis", 0) % len(x)
    grid: list[Array] = list(np.indices(indices.shape))
    grid[axis] = np.where(indices < 0, indices + x[axis], indices).clip(
        0, x[axis] - 1
    )
    return np.ravel_multi_index(tuple(grid), x).reshape(-1)
