"""Finds the constants that a float graph applies to each column of its input tables, and how large numbers follow from them.

A column is compared with thresholds, shifted and multiplied by a scaler, or multiplied by weights. No sample is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
    """The columns that the last axis of a value holds, by number, and what was added to each, [..., columns].

    They may be `squared`.
    """

    columns: Columns
    added: Floats
    squared: bool = False

    def beside(self, width: int) -> Held | None:
        """Return what is held where the last axis meets one of this width; None if they do not fit."""
        count = len(self.columns)
        if width in (1, count):
            return self
        if count > 1:
            return None
        every = np.zeros(width, np.int64)
        return replace(
            self, columns=self.columns[every], added=self.added[..., every]
        )


@dataclass(frozen=True, eq=False)
class ConstantEdit:
    """A constant operand of a node whose last axis has an entry for each of these columns, or one for all.

    It is to be multiplied by the columns' factors, or divided by them; by their squares if they are `squared`.
    """

    node: ir.Node
    index: int
    columns: Columns
    squared: bool
    divides: bool


@dataclass(eq=False)
class ColumnReads:
    """What the nodes do with `count` columns of inputs that the values `held` hold at first.

    `sizes` are the greatest that follow from thresholds and scalers, 0 of none; `weights` the
    greatest of products. `signs` are compared with 0, and `multiplied` by a scaler or weights.
    `edits` are the constants that depend on the columns' scales. `neighbours` are columns that
    one value holds together. Of `unknown` ones, some reader would notice factors. Behind the
    first `count` come columns that nodes compute, joined with some of these: they have no factors.
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
        if result is None:
            result = self._read(node, operands[0], places)
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
        operand = operands[0]
        shape = shape_of(node.outputs[0])
        if node.op_type == "Reshape":
            is_row = math.prod(shape) == shape[-1] == len(operand.columns)
            return (
                operand if is_row and operand.added.size == shape[-1] else None
            )
        if len(shape) != 2 or any(one.squared for one in operands):
            return None
        if node.op_type == "Concat":
            return self._joined(node, places)
        if node.op_type not in _MOVES or places != [0]:
            return None
        chosen = _MOVES[node.op_type](node, operand)
        if chosen is None:
            return None
        return Held(operand.columns[chosen], operand.added[..., chosen])

    def _joined(self, node: ir.Node, places: Sequence[int]) -> Held | None:
        """Return what a Concat of columns holds, computed ones among them."""
        if node.attributes["axis"].as_int() not in (1, -1):
            return None
        operands = [
            self.held[name_of(value)]
            if place in places
            else self._computed(shape_of(value)[-1])
            for place, value in enumerate(node.inputs)
        ]
        columns = np.concatenate([one.columns for one in operands])
        added = np.concatenate([one.added.reshape(-1) for one in operands])
        self.neighbours.append(columns)
        return Held(columns, added) if added.size == columns.size else None

    def _computed(self, width: int) -> Held:
        """Number columns that a node computes."""
        first = len(self.sizes)
        self.sizes, self.weights = (
            np.append(array, np.zeros(width))
            for array in (self.sizes, self.weights)
        )
        self.signs, self.multiplied, self.unknown = (
            np.append(array, np.zeros(width, np.bool_))
            for array in (self.signs, self.multiplied, self.unknown)
        )
        return Held(np.arange(first, first + width), np.zeros(width))

    def _read(
        self, node: ir.Node, operand: Held, places: Sequence[int]
    ) -> Held | None:
        """Return what the result still holds, nothing if the factors end in this node; None if it would notice them."""
        if node.op_type == "Mul" and list(places) == [0, 1]:
            is_square = node.inputs[0] is node.inputs[1]
            if operand.squared or not is_square:
                return None
            return replace(operand, squared=True)
        constant = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
        if constant is None or places != [0]:
            return None
        if node.op_type == "Gemm":
            return self._weighed(node, operand, constant)
        width = constant.shape[-1] if constant.ndim else 1
        beside = operand.beside(width)
        if beside is None:
            return None
        if node.op_type == "Mul" and constant.all():
            return self._multiplied(node, beside, constant)
        if operand.squared:
            return None
        if node.op_type in COMPARISONS:
            self._edit(node, beside, divides=False)
            self._compare(beside, constant)
            return NOTHING
        if node.op_type == "Add":
            self._edit(node, beside, divides=False)
            return replace(beside, added=beside.added + constant)
        return None

    def _multiplied(
        self, node: ir.Node, operand: Held, constant: Floats
    ) -> Held:
        """Take the size of columns from what a scaler multiplies them by: most of what it gives is below DEVIATIONS."""
        self._edit(node, operand, divides=True)
        self.multiplied[operand.columns] = True
        magnitudes = np.abs(constant)
        middle = operand.added
        if not operand.squared:
            behind = _added_behind(node, len(operand.columns))
            middle = middle + behind / constant
        else:
            magnitudes = np.sqrt(magnitudes)
        self._enlarge(operand, np.abs(middle) + DEVIATIONS / magnitudes)
        return NOTHING

    def _weighed(
        self, node: ir.Node, operand: Held, weights: Floats
    ) -> Held | None:
        if len(operand.columns) > MOST_WEIGHED or operand.squared:
            return None
        self._edit(node, operand, divides=True)
        self.multiplied[operand.columns] = True
        shares = _shares(weights).max(axis=0)
        np.maximum.at(self.weights, operand.columns, shares)
        return NOTHING

    def _compare(self, operand: Held, thresholds: Floats) -> None:
        near = np.abs(thresholds) < FARTHEST  # and finite
        distances = np.abs(np.where(near, thresholds, 0.0) - operand.added)
        zero = near & (distances < NEAREST)
        count = len(operand.columns)
        signs = np.broadcast_to(zero, distances.shape).reshape(-1, count)
        self.signs[operand.columns[signs.any(axis=0)]] = True
        self._enlarge(operand, THRESHOLDS * distances * (near & ~zero))

    def _edit(self, node: ir.Node, operand: Held, *, divides: bool) -> None:
        edit = ConstantEdit(node, 1, operand.columns, operand.squared, divides)
        self.edits.append(edit)

    def _enlarge(self, operand: Held, sizes: Floats) -> None:
        """Raise the sizes of columns to these, [..., columns]."""
        count = len(operand.columns)
        wide = np.broadcast_to(sizes, (*sizes.shape[:-1], count))
        of_columns = wide.reshape(-1, count).max(axis=0)
        np.maximum.at(self.sizes, operand.columns, of_columns)


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


def _added_behind(node: ir.Node, count: int) -> Floats:
    """Return what the only reader of a product adds to its columns; 0 if it adds nothing, or makes more columns of one."""
    uses = list(node.outputs[0].uses())
    if len(uses) == 1 and uses[0].node.op_type == "Add" and not uses[0].idx:
        constant = constant_of(uses[0].node.inputs[1])
        fits = constant is not None and constant.size in (1, count)
        if constant is not None and fits:
            return constant.reshape(-1)
    return np.zeros(())


def _gathered(node: ir.Node, operand: Held) -> Columns | slice | None:
    indices = constant_of(node.inputs[1])
    is_of_columns = node.attributes["axis"].as_int() in (1, -1)
    if indices is None or indices.ndim != 1 or not is_of_columns:
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


_MOVES = {"Gather": _gathered, "Slice": _sliced}
"""What each operator that chooses columns takes of those of its operand."""
