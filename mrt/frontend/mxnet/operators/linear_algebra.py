"""Products of matrices of any rank, and diagonals.

MXNet's products do not broadcast; dot sums over the last and the first axis.
"""

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
from mrt.graph.values import Array

TRANSPOSES = {"transpose_a": boolean(False), "transpose_b": boolean(False)}
PRODUCT: dict[str, Attribute] = {**TRANSPOSES, **ignored("forward_stype")}


def move_axes(
    call: OperatorCall, value: ir.Value, order: Sequence[int]
) -> ir.Value:
    """Write a Transpose, or return the value itself where the order moves nothing."""
    if list(order) == sorted(order):
        return value
    return call.transpose(value, order)


def swap_last_axes(call: OperatorCall, value: ir.Value) -> ir.Value:
    """Transpose every matrix."""
    rank = call.rank(value)
    return move_axes(call, value, [*range(rank - 2), rank - 1, rank - 2])


def _as_matrix(call: OperatorCall, value: ir.Value, split: int) -> ir.Value:
    """Reshape to a matrix: the axes in front of `split` are its rows, the others its columns."""
    shape = call.shape(value)
    rows = math.prod(shape[:split])
    columns = math.prod(shape[split:])
    if shape == (rows, columns):
        return value
    return call.reshape(value, [rows, columns])


@operator("dot", attributes=PRODUCT, slots=("lhs", "rhs"))
def dot(call: OperatorCall) -> ir.Value:
    """Multiply the last axis of the left by the first axis of the right.

    A transposed left is summed over its first axis, a transposed right over its last.
    """
    left, right = call.inputs
    left_rank, right_rank = call.rank(left), call.rank(right)
    transpose_left = call.bool_attribute("transpose_a")
    transpose_right = call.bool_attribute("transpose_b")
    is_transposed = transpose_left or transpose_right
    are_vectors = left_rank == right_rank == 1
    call.require(
        not (is_transposed and are_vectors),
        "two vectors, one transposed, which MXNet refuses",
    )
    if transpose_left and left_rank > 1:
        left = move_axes(call, left, [*range(1, left_rank), 0])
    if transpose_right and right_rank > 1:
        right = move_axes(call, right, [right_rank - 1, *range(right_rank - 1)])
    *rows, left_size = call.shape(left)
    right_size, *columns = call.shape(right)
    call.require(
        left_size == right_size,
        f"axes of {left_size} and {right_size} numbers are multiplied",
    )
    left_matrix = _as_matrix(call, left, left_rank - 1)
    right_matrix = _as_matrix(call, right, 1)
    product = call.add("MatMul", left_matrix, right_matrix)
    shape = [*rows, *columns] or [1]
    if list(call.shape(product)) == shape:
        return product
    return call.reshape(product, shape)


def _require_matrices(
    call: OperatorCall, left: ir.Value, right: ir.Value
) -> None:
    left_shape, right_shape = call.shape(left), call.shape(right)
    are_matrices = len(left_shape) >= 2 and len(right_shape) >= 2
    fits = are_matrices and left_shape[:-2] == right_shape[:-2]
    call.require(
        fits,
        f"shapes {left_shape}, {right_shape}: expected matrices, "
        "with the same axes in front of them",
    )


def _matrix_products(
    call: OperatorCall, left: ir.Value, right: ir.Value
) -> ir.Value:
    """Write products of the matrices at the same index, transposed as the attributes require."""
    _require_matrices(call, left, right)
    if call.bool_attribute("transpose_a"):
        left = swap_last_axes(call, left)
    if call.bool_attribute("transpose_b"):
        right = swap_last_axes(call, right)
    return call.add("MatMul", left, right)


@operator("batch_dot", attributes=PRODUCT, slots=("lhs", "rhs"))
def batch_dot(call: OperatorCall) -> ir.Value:
    """Write a MatMul of every matrix with the one at the same index."""
    call.require_rank(3)
    left, right = call.inputs
    return _matrix_products(call, left, right)


def scaled(call: OperatorCall, value: ir.Value, factor: float) -> ir.Value:
    """Write the value times a number; return the value itself where that is 1."""
    if factor == 1:
        return value
    return call.add("Mul", value, call.constant(factor))


def _rows_second_last(call: OperatorCall) -> list[int]:
    """Return the order of axes in which the axis of rows is the second last."""
    rank = call.rank()
    call.require_rank(2)
    axis = call.axis_attribute()
    call.require(
        axis < rank - 1,
        f"axis={call.int_attribute('axis')} is the last one, that of columns",
    )
    others = [other for other in range(rank - 1) if other != axis]
    return [*others, axis, rank - 1]


def _scaled_products(call: OperatorCall) -> tuple[ir.Value, list[int]]:
    """Write alpha * A B with rows in the second last axis; return it and the order of axes used."""
    order = _rows_second_last(call)
    ranks = sorted({call.rank(value) for value in call.inputs})
    text = " and ".join(str(rank) for rank in ranks)
    call.require(
        len(ranks) == 1,
        f"inputs of {text} dimensions; expected the same number",
    )
    left = move_axes(call, call.inputs[0], order)
    right = move_axes(call, call.inputs[1], order)
    product = _matrix_products(call, left, right)
    return scaled(call, product, call.float_attribute("alpha")), order


def _to_original_order(
    call: OperatorCall, value: ir.Value, order: list[int]
) -> ir.Value:
    inverse = [order.index(axis) for axis in range(len(order))]
    moved = move_axes(call, value, inverse)
    if moved in call.inputs:
        return call.add("Identity", moved)
    return moved


GEMM: dict[str, Attribute] = {
    **TRANSPOSES,
    "alpha": real(1.0),
    "axis": integer(-2),
}


@operator("_linalg_gemm2", "linalg_gemm2", attributes=GEMM, slots=("A", "B"))
def gemm2(call: OperatorCall) -> ir.Value:
    """Write alpha * A B of every matrix."""
    product, order = _scaled_products(call)
    return _to_original_order(call, product, order)


@operator(
    "_linalg_gemm",
    "linalg_gemm",
    attributes={**GEMM, "beta": real(1.0)},
    slots=("A", "B", "C"),
)
def gemm(call: OperatorCall) -> ir.Value:
    """Write alpha * A B + beta * C of every matrix."""
    product, order = _scaled_products(call)
    summand = move_axes(call, call.inputs[2], order)
    summand = scaled(call, summand, call.float_attribute("beta"))
    product_shape, shape = call.shape(product), call.shape(summand)
    call.require(
        product_shape == shape,
        f"a product of shape {product_shape} and C of shape {shape} differ",
    )
    return _to_original_order(call, call.add("Add", product, summand), order)


@operator(
    "_linalg_syrk",
    "linalg_syrk",
    attributes={"transpose": boolean(False), "alpha": real(1.0)},
    slots=("A",),
)
def syrk(call: OperatorCall) -> ir.Value:
    """Write alpha * A A^T of every matrix; with transpose, alpha * A^T A."""
    call.require_rank(2)
    transposed = swap_last_axes(call, call.data)
    if call.bool_attribute("transpose"):
        product = call.add("MatMul", transposed, call.data)
    else:
        product = call.add("MatMul", call.data, transposed)
    return scaled(call, product, call.float_attribute("alpha"))


@operator(
    "diag",
    attributes={"k": integer(0), "axis1": integer(0), "axis2": integer(1)},
)
def diag(call: OperatorCall) -> ir.Value:
    """Write the diagonal k to the right of the main one, as the last axis.

    A vector becomes the matrix whose diagonal k it is.
    """
    shape = call.shape()
    k = call.int_attribute("k")
    call.require(abs(k) < 2**20, f"k={k}: expected less than 2^20")
    if len(shape) == 1:
        return _diagonal_matrix(call, k)
    row_axis = call.axis_attribute("axis1")
    column_axis = call.axis_attribute("axis2")
    call.require(
        row_axis != column_axis, f"axis1 and axis2 are both {row_axis}"
    )
    others = [
        axis
        for axis in range(len(shape))
        if axis not in (row_axis, column_axis)
    ]
    positions = _diagonal_positions(
        call, shape[row_axis], shape[column_axis], k
    )
    moved = move_axes(call, call.data, [*others, row_axis, column_axis])
    other_sizes = [shape[axis] for axis in others]
    flat = call.reshape(
        moved, [*other_sizes, shape[row_axis] * shape[column_axis]]
    )
    return call.add("Gather", flat, call.array(positions), axis=len(others))


def _diagonal_positions(
    call: OperatorCall, rows: int, columns: int, k: int
) -> Array:
    """Return the indices of diagonal k in a matrix flattened row by row."""
    top, left = max(-k, 0), max(k, 0)
    length = min(rows - top, columns - left)
    call.require(
        length >= 1,
        f"k={k} is outside a matrix of {rows} rows and {columns} columns",
    )
    steps = np.arange(length, dtype=np.int64)
    return top * columns + left + steps * (columns + 1)


def _diagonal_matrix(call: OperatorCall, k: int) -> ir.Value:
    """Write the vector, padded by |k| zeros to a column, times ones on diagonal k."""
    size = call.shape()[0] + abs(k)
    call.builder.require_space(size * size)
    pads = [0, k] if k >= 0 else [-k, 0]
    padded = call.add("Pad", call.data, call.constant(pads), mode="constant")
    column = call.reshape(padded, [size, 1])
    diagonal = call.array(np.eye(size, k=k, dtype=np.float32))
    return call.add("Mul", column, diagonal)
