"""Products of matrices of any rank. MXNet's products do not broadcast; dot sums over last and first axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    ignored,
    integer,
    operator,
    real,
)

TRANSPOSES = {"transpose_a": boolean(False), "transpose_b": boolean(False)}
PRODUCT: dict[str, Attribute] = {**TRANSPOSES, **ignored("forward_stype")}


def move_axes(call: OperatorCall, value: ir.Value, order: Sequence[int]) -> ir.Value:
    """Emit a Transpose, if it moves anything."""
    return (
        value
        if list(order) == sorted(order)
        else call.add("Transpose", value, perm=list(order))
    )


def flipped(call: OperatorCall, value: ir.Value, *, wanted: bool = True) -> ir.Value:
    """The last two axes exchanged, if that is wanted."""
    rank = len(call.shape(value))
    return (
        move_axes(call, value, [*range(rank - 2), rank - 1, rank - 2])
        if wanted
        else value
    )


def _as_matrix(call: OperatorCall, value: ir.Value, split: int) -> ir.Value:
    """The axes in front of `split` as rows, the others as columns."""
    shape = call.shape(value)
    matrix = [math.prod(shape[:split]), math.prod(shape[split:])]
    return value if list(shape) == matrix else call.reshape(value, matrix)


@operator("dot", attributes=PRODUCT, slots=("lhs", "rhs"))
def dot(call: OperatorCall) -> ir.Value:
    """The last axis of the left with the first of the right; transposed, the first of the left, the last of the right."""
    left, right = call.inputs
    ranks = [len(call.shape(value)) for value in call.inputs]
    turned = call.bool_attribute("transpose_a") or call.bool_attribute("transpose_b")
    call.require(
        not turned or ranks != [1, 1],
        "two vectors, one transposed, which MXNet refuses",
    )
    if call.bool_attribute("transpose_a") and ranks[0] > 1:
        left = move_axes(call, left, [*range(1, ranks[0]), 0])
    if call.bool_attribute("transpose_b") and ranks[1] > 1:
        right = move_axes(call, right, [ranks[1] - 1, *range(ranks[1] - 1)])
    rows, columns = call.shape(left)[:-1], call.shape(right)[1:]
    common = call.shape(left)[-1], call.shape(right)[0]
    call.require(
        common[0] == common[1],
        f"axes of {common[0]} and {common[1]} numbers are multiplied",
    )
    product = call.add(
        "MatMul", _as_matrix(call, left, ranks[0] - 1), _as_matrix(call, right, 1)
    )
    shape = [*rows, *columns] or [1]
    return (
        product if list(call.shape(product)) == shape else call.reshape(product, shape)
    )


def _require_matrices(call: OperatorCall, *values: ir.Value) -> None:
    shapes = [call.shape(value) for value in values]
    fits = min(map(len, shapes)) >= 2 and len({shape[:-2] for shape in shapes}) == 1
    call.require(
        fits,
        f"shapes {', '.join(map(str, shapes))}: expected matrices, with the same axes in front of them",
    )


def _product(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
    _require_matrices(call, left, right)
    left = flipped(call, left, wanted=call.bool_attribute("transpose_a"))
    return call.add(
        "MatMul", left, flipped(call, right, wanted=call.bool_attribute("transpose_b"))
    )


@operator("batch_dot", attributes=PRODUCT, slots=("lhs", "rhs"))
def batch_dot(call: OperatorCall) -> ir.Value:
    """MatMul of every matrix with the one in the same place."""
    call.require_rank(3)
    return _product(call, *call.inputs)


def scaled(call: OperatorCall, value: ir.Value, factor: float) -> ir.Value:
    """Times a number, unless it is 1."""
    return value if factor == 1 else call.add("Mul", value, call.constant(factor))


def _rows_axis(call: OperatorCall) -> list[int]:
    """The order of axes that brings the axis of rows, the second last unless said otherwise, in front of the last."""
    rank = len(call.shape())
    call.require_rank(2)
    axis = call.axis(call.int_attribute("axis"))
    call.require(
        axis < rank - 1,
        f"axis={call.int_attribute('axis')} is the last one, that of columns",
    )
    return [*(other for other in range(rank - 1) if other != axis), axis, rank - 1]


def _general_product(call: OperatorCall) -> tuple[ir.Value, list[int]]:
    order = _rows_axis(call)
    ranks = {len(call.shape(value)) for value in call.inputs}
    call.require(
        len(ranks) == 1,
        f"inputs of {' and '.join(map(str, sorted(ranks)))} dimensions; expected as many",
    )
    left, right = (move_axes(call, value, order) for value in call.inputs[:2])
    return scaled(
        call, _product(call, left, right), call.float_attribute("alpha")
    ), order


def _back(call: OperatorCall, value: ir.Value, order: list[int]) -> ir.Value:
    moved = move_axes(call, value, [order.index(place) for place in range(len(order))])
    return call.add("Identity", moved) if moved in call.inputs else moved


GEMM: dict[str, Attribute] = {**TRANSPOSES, "alpha": real(1.0), "axis": integer(-2)}


@operator("_linalg_gemm2", "linalg_gemm2", attributes=GEMM, slots=("A", "B"))
def gemm2(call: OperatorCall) -> ir.Value:
    """alpha * A B of every matrix."""
    product, order = _general_product(call)
    return _back(call, product, order)


@operator(
    "_linalg_gemm",
    "linalg_gemm",
    attributes={**GEMM, "beta": real(1.0)},
    slots=("A", "B", "C"),
)
def gemm(call: OperatorCall) -> ir.Value:
    """alpha * A B + beta * C of every matrix."""
    product, order = _general_product(call)
    added = scaled(
        call, move_axes(call, call.inputs[2], order), call.float_attribute("beta")
    )
    shapes = call.shape(product), call.shape(added)
    call.require(
        shapes[0] == shapes[1],
        f"a product of shape {shapes[0]} and C of shape {shapes[1]} differ",
    )
    return _back(call, call.add("Add", product, added), order)


@operator(
    "_linalg_syrk",
    "linalg_syrk",
    attributes={"transpose": boolean(False), "alpha": real(1.0)},
    slots=("A",),
)
def syrk(call: OperatorCall) -> ir.Value:
    """alpha * A A^T of every matrix; transposed, alpha * A^T A."""
    call.require_rank(2)
    transposed = flipped(call, call.data)
    factors = (
        [transposed, call.data]
        if call.bool_attribute("transpose")
        else [call.data, transposed]
    )
    return scaled(call, call.add("MatMul", *factors), call.float_attribute("alpha"))


@operator(
    "diag", attributes={"k": integer(0), "axis1": integer(0), "axis2": integer(1)}
)
def diag(call: OperatorCall) -> ir.Value:
    """The diagonal k to the right of the main one, as the last axis; of one axis, the matrix that has it."""
    shape, k = call.shape(), call.int_attribute("k")
    call.require(abs(k) < 2**20, f"k={k}: expected less than 2^20")
    if len(shape) == 1:
        return _diagonal_matrix(call, k)
    first, second = (
        call.axis(call.int_attribute("axis1")),
        call.axis(call.int_attribute("axis2")),
    )
    call.require(first != second, f"axis1 and axis2 are both {first}")
    others = [axis for axis in range(len(shape)) if axis not in (first, second)]
    rows, columns = shape[first], shape[second]
    top = max(-k, 0)
    length = min(rows - top, columns - max(k, 0))
    call.require(
        length >= 1, f"k={k} is outside a matrix of {rows} rows and {columns} columns"
    )
    places = (
        top * columns + max(k, 0) + np.arange(length, dtype=np.int64) * (columns + 1)
    )
    moved = move_axes(call, call.data, [*others, first, second])
    flat = call.reshape(moved, [*(shape[axis] for axis in others), rows * columns])
    return call.add("Gather", flat, call.array(places), axis=len(others))


def _diagonal_matrix(call: OperatorCall, k: int) -> ir.Value:
    """As many zeros as it is shifted by, below the numbers or above them; then every row times its unit."""
    size = call.shape()[0] + abs(k)
    call.builder.require_space(size * size)
    pads = [0, k] if k >= 0 else [-k, 0]
    column = call.add("Pad", call.data, call.constant(pads), mode="constant")
    return call.add(
        "Mul",
        call.reshape(column, [size, 1]),
        call.array(np.eye(size, k=k, dtype=np.float32)),
    )
