"""Canonicalizes every Gemm to x @ W.T + b with constant W[N, K] and b[N]."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    int_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.linear.affine import to_single


def canonicalize_gemm(model: ir.Model) -> int:
    """Gemm with any transA, transB, alpha, beta, C -> the plain form, or MatMul.

    When B is constant: a transposed A becomes a Transpose, alpha goes into W and beta
    into b (in float64, rounded once), and a C that varies along the rows or is computed
    becomes an Add after the Gemm. When both operands are computed: MatMul. Equal but
    for that rounding.
    """
    count = 0
    for node in nodes(model, "Gemm"):
        if _is_plain(node) or shape_of(node.outputs[0]) is None:
            continue
        weights = constant(operand(node, 1))
        if weights is None:
            _to_matmul(node)
        else:
            _to_plain(node, weights)
        count += 1
    return count


def _is_plain(node: ir.Node) -> bool:
    bias = constant(operand(node, 2))
    return (
        constant(operand(node, 1)) is not None
        and bias is not None
        and bias.shape == (shape_of(node.outputs[0]) or ())[1:]
        and (int_attribute(node, "transA", 0), int_attribute(node, "transB", 0))
        == (0, 1)
        and (
            float_attribute(node, "alpha", 1.0),
            float_attribute(node, "beta", 1.0),
        )
        == (1.0, 1.0)
    )


def _to_plain(node: ir.Node, weights: Array) -> None:
    patch = Patch(node)
    x = _transposed(patch, first(node), int_attribute(node, "transA", 0))
    plain = weights if int_attribute(node, "transB", 0) else weights.T
    outputs = plain.shape[0]
    bias = _bias(node, outputs)
    value = patch.add(
        "Gemm", x,
        patch.constant(_scaled(plain, float_attribute(node, "alpha", 1.0)), "weight"),
        patch.constant(np.zeros(outputs, np.float32) if bias is None else bias, "bias"),
        transA=0, transB=1, alpha=1.0, beta=1.0,
    )  # fmt: skip
    patch.finish(value if bias is not None else _add_c(patch, node, value))


def _bias(node: ir.Node, outputs: int) -> Array | None:
    """Return beta * C as one number per output.

    None if C is computed or varies along the rows.
    """
    if operand(node, 2) is None:
        return np.zeros(outputs, np.float32)
    c = constant(operand(node, 2))
    if c is None or (c.ndim == 2 and c.shape[0] != 1):
        return None
    return np.broadcast_to(
        _scaled(c, float_attribute(node, "beta", 1.0)).reshape(-1), (outputs,)
    ).copy()


def _to_matmul(node: ir.Node) -> None:
    patch = Patch(node)
    b = node.inputs[1]
    assert b is not None
    a = _transposed(patch, first(node), int_attribute(node, "transA", 0))
    b = _transposed(patch, b, int_attribute(node, "transB", 0))
    value = patch.add("MatMul", a, b)
    alpha = float_attribute(node, "alpha", 1.0)
    if alpha != 1.0:
        value = patch.add(
            "Mul", value, patch.constant(np.array(alpha, np.float32), "alpha")
        )
    patch.finish(_add_c(patch, node, value))


def _add_c(patch: Patch, node: ir.Node, value: ir.Value) -> ir.Value:
    c, beta = operand(node, 2), float_attribute(node, "beta", 1.0)
    if c is None:
        return value
    if beta != 1.0:
        c = patch.add(
            "Mul", c, patch.constant(np.array(beta, np.float32), "beta")
        )
    return patch.add("Add", value, c)


def _transposed(patch: Patch, value: ir.Value, transpose: int) -> ir.Value:
    return patch.add("Transpose", value, perm=(1, 0)) if transpose else value


def _scaled(array: Array, factor: float) -> Array:
    return to_single(array.astype(np.float64) * float(np.float32(factor)))
