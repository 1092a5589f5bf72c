"""Numbers rows by tuples of computed indices, as GatherND and ScatterND have them."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch


def number_rows(
    patch: Patch, indices: ir.Value | None, sizes: tuple[int, ...], axis: int
) -> ir.Value:
    """Return one number for each tuple of indices along the axis, which goes away.

    The tuple (i, j, ..) has the number that it has in row-major order of axes of these
    sizes. A negative index counts from the end.
    """
    index = count_from_front(patch, indices, sizes)
    strides = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    steps = patch.add("Mul", index, patch.axes(strides, "strides"))
    return patch.add(
        "ReduceSum",
        steps,
        patch.axes([axis]),
        keepdims=0,
        noop_with_empty_axes=0,
    )


def count_from_front(
    patch: Patch, indices: ir.Value | None, sizes: tuple[int, ...]
) -> ir.Value:
    """Count each index of a tuple from the front, in int64, and clip it to its own axis."""
    if indices is not None and indices.dtype != ir.DataType.INT64:
        indices = patch.add("Cast", indices, to=int(ir.DataType.INT64))
    zero = patch.constant(np.array(0, np.int64), "zero")
    negative = patch.add("Less", indices, zero)
    behind = patch.add("Add", indices, patch.axes(sizes, "sizes"))
    chosen = patch.add("Where", negative, behind, indices)
    limits = patch.axes([size - 1 for size in sizes], "limits")
    return patch.add("Min", chosen, limits)
