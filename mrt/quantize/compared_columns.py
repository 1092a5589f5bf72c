"""Columns of a table, each with a scale of its own, where nothing but comparisons with constants reads them.

Columns of a raw table may differ by many powers of ten, as an amount and a rate do. One scale
for all would leave few steps to the small ones, and rows near a threshold would take the other
way through a tree. The integers of a column count steps of its own instead: a power of two, so
that thresholds and most numbers of float32 are exact. Comparisons need no more instructions
for that, since each threshold counts the steps of its column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program import MAX_CHANNELS
from mrt.exact.fixed_point import FloatArray, power_of_two_at_least
from mrt.graph.canonical_values import (
    constant_of,
    integers_of,
    name_of,
    shape_of,
)
from mrt.graph.operators import COMPARISONS
from mrt.quantize.tensor import FINE_BITS, HEADROOM, Format
from mrt.table.table import MeasuredRange

Columns = npt.NDArray[np.int64]

ROOM = 16.0
"""How many times its greatest threshold a column may reach."""
FARTHEST = 2.0**12
"""How many times the range of the input a threshold may be for a column to reach it: the greatest float32 would take all steps."""
WORTH = 2.0**-8
"""Where no column has fewer steps than this share of the widest one's, one scale is enough."""
LEAST = 2.0**-200  # of a factor, so that no scale leaves float64


@dataclass(frozen=True, eq=False)
class ComparedColumns:
    """The columns that each value holds of an input [1, C], by name, and the thresholds of each column."""

    held: Mapping[str, Columns]
    thresholds: tuple[FloatArray, ...]

    def factors(self, measured: MeasuredRange) -> FloatArray | None:
        """Return the scale of each column over that of the widest, [C]; None if one scale is enough.

        `measured` is the range of the whole input, beyond which no column needs to reach.
        """
        widest = measured.magnitude * HEADROOM
        if widest == 0:
            return None
        reaches = [_reach(numbers, widest) for numbers in self.thresholds]
        factors = np.array(reaches) / max(reaches)
        return None if factors.min() > WORTH else np.maximum(factors, LEAST)

    def format(self, measured: MeasuredRange) -> Format:
        """Return the format of the widest column."""
        widest = measured.magnitude * HEADROOM
        reach = max(_reach(numbers, widest) for numbers in self.thresholds)
        return Format(
            "i32", reach / 2**FINE_BITS, 0, -(2**FINE_BITS), 2**FINE_BITS
        )

    def are_endless(self, measured: MeasuredRange) -> bool:
        """Whether all thresholds lie within reach, so that every number beyond it is as good as its end."""
        widest = measured.magnitude * HEADROOM
        every = np.concatenate(self.thresholds)
        finite = np.abs(every[np.isfinite(every)])
        return bool((finite <= FARTHEST * widest).all())

    def factors_of(self, factors: FloatArray) -> dict[str, FloatArray]:
        """Return the factors of the columns that each value holds."""
        return {name: factors[columns] for name, columns in self.held.items()}


def _reach(thresholds: FloatArray, widest: float) -> float:
    """Return the magnitude that a column's integers reach, a power of two above its thresholds."""
    near = np.abs(thresholds[np.abs(thresholds) <= FARTHEST * widest])
    greatest = float(near.max(initial=0.0))
    if greatest == 0:
        return power_of_two_at_least(widest)
    enough = max(2 * greatest, min(ROOM * greatest, widest))
    return power_of_two_at_least(enough)


def compared_columns(
    value: ir.Value, graph: ir.Graph
) -> ComparedColumns | None:
    """Find where the columns of an input are compared with constants; None if anything else reads one."""
    shape = shape_of(value)
    if len(shape) != 2 or shape[0] != 1 or not 1 < shape[1] <= MAX_CHANNELS:
        return None
    held = {name_of(value): np.arange(shape[1])}
    thresholds: list[list[FloatArray]] = [[] for _ in range(shape[1])]
    for node in graph:
        if not any(name_of(operand) in held for operand in node.inputs):
            continue
        columns = _moved(node, held)
        if columns is not None and not node.outputs[0].is_graph_output():
            held[name_of(node.outputs[0])] = columns
        elif not _take_thresholds(node, held, thresholds):
            return None
    return ComparedColumns(held, tuple(map(_joined, thresholds)))


def _joined(arrays: list[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *arrays])


def _moved(node: ir.Node, held: Mapping[str, Columns]) -> Columns | None:
    """Return the columns that a node's result holds; None if the node does not move columns."""
    operand = held.get(name_of(node.inputs[0]))
    if node.op_type == "Concat":
        return _concatenated(node, held)
    if operand is None or len(shape_of(node.outputs[0])) != 2:
        return None
    if node.op_type == "Slice":
        return _sliced(node, operand)
    indices = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.op_type != "Gather" or indices is None or indices.ndim != 1:
        return None
    if node.attributes["axis"].as_int() not in (1, -1):
        return None
    return operand[indices.astype(np.int64)]


def _concatenated(node: ir.Node, held: Mapping[str, Columns]) -> Columns | None:
    operands = [held.get(name_of(value)) for value in node.inputs]
    known = [columns for columns in operands if columns is not None]
    is_of_columns = node.attributes["axis"].as_int() in (1, -1)
    if len(known) < len(operands) or not is_of_columns:
        return None
    return np.concatenate(known)


def _sliced(node: ir.Node, columns: Columns) -> Columns | None:
    starts, stops, axes, steps = (
        integers_of(node, index) for index in (1, 2, 3, 4)
    )
    if len(axes) != 1 or axes[0] not in (1, -1):
        return None
    if steps == (-1,):  # all of them, reversed
        return columns[::-1]
    return columns[starts[0] : stops[0] : steps[0]]


def _take_thresholds(
    node: ir.Node,
    held: Mapping[str, Columns],
    thresholds: list[list[FloatArray]],
) -> bool:
    """Add what a comparison compares each column with; return False for any other node."""
    columns = held.get(name_of(node.inputs[0]))
    constant = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.op_type not in COMPARISONS or columns is None or constant is None:
        return False
    if constant.ndim > 2 or constant.shape[-1:] not in (
        (),
        (1,),
        columns.shape,
    ):
        return False
    if constant.ndim == 2 and constant.shape[0] != 1:
        return False
    by_column = np.broadcast_to(constant.astype(np.float64), (1, len(columns)))
    for column, threshold in zip(columns, by_column.T, strict=True):
        thresholds[column].append(threshold)
    return True
