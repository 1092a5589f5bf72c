"""Reductions, of matrices' rows alone: Cortex's `sum` and `max` go wrong where other axes have the size 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import (
    MAX_ATTRIBUTE,
    CortexGraph,
    CortexValue,
    Refused,
)
from cvm.export.cortex.instruction import CortexInstruction
from cvm.export.cortex.movement import reshaped, rows_of


def sum_of_rows(graph: CortexGraph, rows: CortexValue) -> CortexValue:
    """A vector."""
    count, n = rows.shape
    if n == 1:
        return reshaped(graph, rows, (count,))
    axis = 1
    if count == 1:
        axis, rows = 0, reshaped(graph, rows, (n,))
    low, high = rows.interval
    interval = min(n * low, low), max(n * high, high)
    rows = graph.tight(rows, 32 - n.bit_length())
    precision = rows.precision + n.bit_length()
    axes = f"({axis},)"
    return graph.node(
        "sum", (rows,), precision, interval, (count,), axis=axes, keepdims=False
    )


def greatest_of_rows(graph: CortexGraph, rows: CortexValue) -> CortexValue:
    """A vector, by a window as long as a row: Cortex's `max` of everything starts from 0."""
    count, n = rows.shape
    if n > MAX_ATTRIBUTE:
        raise Refused(
            f"it goes along {n} elements; Cortex's windows {MAX_ATTRIBUTE}"
        )
    image = reshaped(graph, rows, (count, 1, n, 1))
    greatest = graph.node(
        "max_pool2d",
        (image,),
        rows.precision,
        rows.interval,
        (count, 1, 1, 1),
        pool_size=(n, 1),
        strides=(1, 1),
        padding=(0, 0),
    )
    return reshaped(graph, greatest, (count,))


def _least_of_rows(graph: CortexGraph, rows: CortexValue) -> CortexValue:
    greatest = greatest_of_rows(graph, exact.negative(graph, rows))
    return exact.negative(graph, greatest)


def _along(
    function: Callable[[CortexGraph, CortexValue], CortexValue],
) -> Callable[[CortexInstruction], CortexValue]:
    """A writer that reduces an axis, whatever lies before and behind it."""

    def write(instruction: CortexInstruction) -> CortexValue:
        rows = rows_of(
            instruction.graph, instruction.value(0), instruction.integer("axis")
        )
        return reshaped(
            instruction.graph,
            function(instruction.graph, rows),
            instruction.shape,
        )

    return write


def _first_greatest(graph: CortexGraph, rows: CortexValue) -> CortexValue:
    """n - 1 less the greatest of n - 1 - i over the places i that hold the greatest: x > greatest - 1."""
    count, n = rows.shape
    greatest = reshaped(graph, greatest_of_rows(graph, rows), (count, 1))
    below = exact.add_number(graph, greatest, -1)
    equal = graph.tight(exact.greater(graph, rows, below), 2)
    backwards = graph.parameter(np.arange(n)[::-1].reshape(1, n))
    most = greatest_of_rows(graph, exact.mul(graph, equal, backwards))
    return exact.sub(graph, graph.number(n - 1, 1), most)


reduce_sum = _along(sum_of_rows)
reduce_max = _along(greatest_of_rows)
reduce_min = _along(_least_of_rows)
argmax = _along(_first_greatest)
