"""Finds the constants that a float graph applies to each column of its input tables, and how large numbers follow from them.

A column is compared with thresholds, shifted and multiplied by a scaler, or multiplied by weights. No sample is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.canonical_values import (
    constant_of,
    integers_of,
    name_of,
    shape_of,
)
from mrt.graph.operators import COMPARISONS

Columns = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

DEVIATIONS = 8.0
"""How many of the numbers that a scaler makes 1 a column may be from its middle."""
THRESHOLDS = 16.0
"""How many times its greatest threshold a column may be."""
MOST_WEIGHED = 128
"""The most columns of a table whose sizes are taken from weights; a flat picture has more."""


@dataclass(frozen=True, eq=False)
class Held:
    """The columns that a value holds, by number, and what was added to each."""

    columns: Columns
    added: Floats


@dataclass(frozen=True, eq=False)
class ConstantEdit:
    """A constant operand of a node that has an entry for each of these columns, or one for all.

    It is to be multiplied by the columns' factors, or divided by them.
    """

    node: ir.Node
    index: int
    columns: Columns
    divides: bool


@dataclass(eq=False)
class ColumnReads:
    """What the nodes do with `count` columns of inputs that the values `held` hold at first.

    `sizes` are the greatest that follow from thresholds and scalers, 0 of none; `weights` the
    greatest of products. `signs` are compared with 0, and `multiplied` by a scaler or weights.
    `edits` are the constants that depend on the columns' scales. `neighbours` are columns that
    one value holds together. Of `unknown` ones, some reader would notice factors.
    """

    count: int
    held: dict[str, Held]
    sizes: Floats = field(init=False)
    weights: Floats = field(init=False)
    signs: Flags = field(init=False)
    multiplied: Flags = field(init=False)
    unknown: Flags = field(init=False)
    edits: list[ConstantEdit] = field(default_factory=list)
    neighbours: list[Columns] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sizes, self.weights = np.zeros((2, self.count))
        flags = np.zeros((3, self.count), np.bool_)
        self.signs, self.multiplied, self.unknown = flags

    def follow(self, graph: ir.Graph) -> None:
        """Visit all readers."""
        for node in graph:
            places = [
                index
                for index, value in enumerate(node.inputs)
                if value is not None and value.name in self.held
            ]
            if places:
                self._visit(node, places)

    def _visit(self, node: ir.Node, places: Sequence[int]) -> None:
        operands = [self.held[name_of(node.inputs[place])] for place in places]
        result = self._moved(node, operands, places)
        if result is None and places == [0] and len(node.inputs) > 1:
            result = self._read(node, operands[0])
        if result is NOTHING:
            return
        if result is None or node.outputs[0].is_graph_output():
            for one in operands:
                self.unknown[one.columns] = True
            return
        self.held[name_of(node.outputs[0])] = result

    def _moved(
        self, node: ir.Node, operands: Sequence[Held], places: Sequence[int]
    ) -> Held | None:
        """Return what the result of a movement holds; None for any other node."""
        if len(shape_of(node.outputs[0])) != 2 or node.op_type not in _MOVES:
            return None
        if len(places) < len(node.inputs) and node.op_type == "Concat":
            return None
        chosen = _MOVES[node.op_type](node, operands[0])
        if chosen is None:
            return None
        columns = np.concatenate([one.columns for one in operands])
        added = np.concatenate([one.added for one in operands])
        if node.op_type == "Concat":
            self.neighbours.append(columns)
        return Held(columns[chosen], added[chosen])

    def _read(self, node: ir.Node, operand: Held) -> Held | None:
        """Return what the result still holds, nothing if the factors end in this node; None if it would notice them."""
        constant = constant_of(node.inputs[1])
        if constant is None:
            return None
        if node.op_type == "Gemm":
            return self._weighed(node, operand, _shares(constant).max(axis=0))
        by_column = _by_column(constant, operand)
        if by_column is None:
            return None
        if node.op_type in COMPARISONS:
            self._edit(node, operand, divides=False)
            self._compare(operand, by_column)
            return NOTHING
        if node.op_type == "Add":
            self._edit(node, operand, divides=False)
            return Held(operand.columns, operand.added + by_column)
        if node.op_type == "Mul" and by_column.all():
            self._multiply(node, operand)
            middle = operand.added + _added_behind(node, operand) / by_column
            self._enlarge(
                operand, np.abs(middle) + DEVIATIONS / np.abs(by_column)
            )
            return NOTHING
        return None

    def _weighed(
        self, node: ir.Node, operand: Held, greatest: Floats
    ) -> Held | None:
        if len(operand.columns) > MOST_WEIGHED:
            return None
        self._multiply(node, operand)
        np.maximum.at(self.weights, operand.columns, greatest)
        return NOTHING

    def _compare(self, operand: Held, thresholds: Floats) -> None:
        near = np.abs(thresholds) < FARTHEST  # and finite
        distances = np.abs(np.where(near, thresholds, 0.0) - operand.added)
        zero = near & (distances < NEAREST)
        self.signs[operand.columns[zero]] = True
        self._enlarge(operand, THRESHOLDS * distances * (near & ~zero))

    def _multiply(self, node: ir.Node, operand: Held) -> None:
        self._edit(node, operand, divides=True)
        self.multiplied[operand.columns] = True

    def _edit(self, node: ir.Node, operand: Held, *, divides: bool) -> None:
        self.edits.append(ConstantEdit(node, 1, operand.columns, divides))

    def _enlarge(self, operand: Held, sizes: Floats) -> None:
        np.maximum.at(self.sizes, operand.columns, sizes)


NOTHING = Held(np.zeros(0, np.int64), np.zeros(0))
FARTHEST = 2.0**100
"""A threshold from here on, as the greatest float32, is no measure of a column."""
NEAREST = 2.0**-100
"""A threshold closer to 0, as LightGBM's 1e-35, is no measure either: it separates the numbers above 0."""


def _shares(weights: Floats) -> Floats:
    """Return the magnitudes of weights [O, K] over the greatest of their output, since outputs may differ in size."""
    magnitudes = np.abs(weights.astype(np.float64))
    most = magnitudes.max(axis=1, keepdims=True)
    shares: Floats = magnitudes / np.where(most > 0, most, 1.0)
    return shares


def _by_column(constant: Floats, operand: Held) -> Floats | None:
    """Return a constant as one number for each column, if it has no other axis."""
    count = len(operand.columns)
    if constant.size not in (1, count) or constant.shape[-1:] not in (
        (),
        (1,),
        (count,),
    ):
        return None
    return np.broadcast_to(constant.reshape(-1).astype(np.float64), (count,))


def _added_behind(node: ir.Node, operand: Held) -> Floats:
    """Return what the only reader of a product adds to each column; 0 if it adds nothing."""
    uses = list(node.outputs[0].uses())
    added = np.zeros(len(operand.columns))
    if len(uses) != 1 or uses[0].node.op_type != "Add" or uses[0].idx:
        return added
    constant = constant_of(uses[0].node.inputs[1])
    by_column = None if constant is None else _by_column(constant, operand)
    return added if by_column is None else by_column


def _all(node: ir.Node, operand: Held) -> Columns | slice | None:
    return slice(None) if node.attributes["axis"].as_int() in (1, -1) else None


def _gathered(node: ir.Node, operand: Held) -> Columns | slice | None:
    indices = constant_of(node.inputs[1])
    if indices is None or indices.ndim != 1 or _all(node, operand) is None:
        return None
    count = len(operand.columns)
    if (indices < -count).any() or (indices >= count).any():
        return None
    return indices.astype(np.int64)


def _sliced(node: ir.Node, operand: Held) -> Columns | slice | None:
    starts, stops, axes, steps = (
        integers_of(node, index) for index in (1, 2, 3, 4)
    )
    if len(axes) != 1 or axes[0] not in (1, -1):
        return None
    if steps == (-1,):  # all of them, reversed
        return slice(None, None, -1)
    return slice(starts[0], stops[0], steps[0])


_MOVES = {"Concat": _all, "Gather": _gathered, "Slice": _sliced}
"""What each operator that moves columns takes of those of its operands, one behind the other."""
