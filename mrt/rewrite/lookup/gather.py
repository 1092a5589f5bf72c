"""Lowers Gather by constant indices to Slice, or to a Concat of Slices."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.canonical_operators import BACKWARDS

# More separate pieces would make the graph large; such a node stays a lookup.
MOST_PIECES = 16


def lower_gather(model: ir.Model) -> int:
    """Gather(x, constant indices) -> Slices, their Concat, and a Reshape.

    Each run of evenly rising or falling indices becomes one Slice. Applies to indices
    inside the dimension, in at most MOST_PIECES runs. Always equal.
    """
    count = 0
    for node in nodes(model, "Gather"):
        shape = shape_of(first(node))
        indices = constant(operand(node, 1))
        result = shape_of(node.outputs[0])
        if (
            not shape
            or indices is None
            or result is None
            or indices.size == 0
            or constant(first(node)) is not None
        ):
            continue
        axis = int_attribute(node, "axis", 0) % len(shape)
        size = shape[axis]
        flat_indices = [int(index) for index in indices.reshape(-1)]
        if not all(-size <= index < size for index in flat_indices):
            continue
        runs = runs_of([index % size for index in flat_indices], MOST_PIECES)
        if len(runs) > MOST_PIECES:
            continue
        patch = Patch(node)
        pieces = [
            patch.slice(first(node), axis, run[0], _end(run), step=run.step)
            for run in runs
        ]
        value = (
            pieces[0]
            if len(pieces) == 1
            else patch.add("Concat", *pieces, axis=axis)
        )
        patch.finish(
            patch.add(
                "Reshape", value, patch.axes(result, "shape"), allowzero=0
            )
        )
        count += 1
    return count


def runs_of(indices: list[int], most: int) -> list[range]:
    """Divide a list into ranges with a step of 1 or more, or of -1.

    Each range is the longest possible, from the front. Stops once there are more than
    `most`.
    """
    runs: list[range] = []
    for index in indices:
        if len(runs) > most:
            break
        last = runs[-1] if runs else None
        if last is not None and len(last) == 1 and index > last[0]:
            runs[-1] = range(last[0], index + 1, index - last[0])
        elif last is not None and len(last) == 1 and index == last[0] - 1:
            runs[-1] = range(last[0], index - 1, -1)
        elif (
            last is not None and len(last) > 1 and index == last[-1] + last.step
        ):
            runs[-1] = range(
                last[0], index + (1 if last.step > 0 else -1), last.step
            )
        else:
            runs.append(range(index, index + 1))
    return runs


def _end(run: range) -> int:
    """Return the end of a Slice of these indices."""
    if run.step > 0:
        return run[-1] + 1
    return run[-1] - 1 if run[-1] > 0 else BACKWARDS
