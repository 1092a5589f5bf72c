"""Lowers MatMul by a constant matrix to Gemm."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    nodes,
    operand,
    shape_of,
    sole_user,
)


def lower_matmul(model: ir.Model) -> int:
    """MatMul(x, W), with an Add of a vector after it -> Gemm(x, W.T, b).

    Between two Reshapes unless x and the product have rank 2. Applies when W is a constant matrix or
    vector and shapes are known. Safe because the rows of x are independent. A product
    with the constant in front (W @ x) is transposed: (x.T @ W.T).T.
    """
    count = 0
    transposed: dict[ir.Value, ir.Value] = {}
    for node in nodes(model, "MatMul"):
        left, right = constant(operand(node, 0)), constant(operand(node, 1))
        if (
            right is not None
            and right.ndim in (1, 2)
            and right.size
            and shape_of(node.outputs[0]) is not None
        ):
            _to_gemm(node, right.reshape(len(right), -1), transposed)
        elif (
            left is not None
            and left.ndim in (1, 2)
            and left.size
            and shape_of(operand(node, 1))
        ):
            _swap_operands(node, left)
        else:
            continue
        count += 1
    return count


def _to_gemm(
    node: ir.Node, matrix: Array, transposed: dict[ir.Value, ir.Value]
) -> None:
    """Replace the node; `transposed` holds the matrices transposed so far, which the steps of a recurrence share."""
    inputs, outputs = matrix.shape
    shape = shape_of(first(node)) or ()
    rows = math.prod(shape) // inputs
    last, bias = _with_bias(node, outputs)
    patch = Patch(last)
    x = first(node)
    if len(shape) != 2:
        x = patch.add(
            "Reshape",
            x,
            patch.axes((rows, inputs), "rows"),
            allowzero=0,
        )
    source = node.inputs[1]
    assert source is not None
    weight = transposed.get(source)
    if weight is None or weight.graph is not patch.graph:
        weight = patch.constant(np.ascontiguousarray(matrix.T), "weight")
        transposed[source] = weight
    value = patch.add(
        "Gemm", x, weight, patch.constant(bias, "bias"), transA=0, transB=1, alpha=1.0, beta=1.0
    )  # fmt: skip
    result = shape_of(last.outputs[0])
    if result is not None and result != (rows, outputs):
        value = patch.add(
            "Reshape", value, patch.axes(result, "shape"), allowzero=0
        )
    patch.finish(value)
    if last is not node:
        assert node.graph is not None
        node.graph.remove(node, safe=True)


def _with_bias(node: ir.Node, outputs: int) -> tuple[ir.Node, Array]:
    """Return the Add that reads a MatMul, and its constant as one number per output.

    Without such an Add, return the MatMul itself and zeros.
    """
    user = sole_user(node.outputs[0])
    if user is not None and user.op_type == "Add" and user.domain == "":
        other = constant(
            user.inputs[1]
            if user.inputs[0] is node.outputs[0]
            else user.inputs[0]
        )
        fits = other is not None and shape_of(user.outputs[0]) == shape_of(
            node.outputs[0]
        )
        if (
            other is not None
            and fits
            and other.size in (1, outputs)
            and other.size == (other.shape or (1,))[-1]
        ):
            return user, np.broadcast_to(other.reshape(-1), (outputs,)).astype(
                np.float32
            )
    return node, np.zeros(outputs, np.float32)


def _swap_operands(node: ir.Node, matrix: Array) -> None:
    """Put the constant behind; of a vector, which is its own transpose, nothing is transposed."""
    patch, x = Patch(node), node.inputs[1]
    *outer, columns = range(len(shape_of(x) or ()))
    swapped = (*outer[:-1], columns, *outer[-1:])
    if outer:
        x = patch.add("Transpose", x, perm=swapped)
    constants = patch.constant(np.ascontiguousarray(matrix.T), "matrix")
    product = patch.add("MatMul", x, constants)
    if outer and matrix.ndim == 2:
        product = patch.add("Transpose", product, perm=swapped)
    patch.finish(product)
