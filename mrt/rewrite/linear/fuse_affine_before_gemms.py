"""Fuses a BatchNormalization, Mul or Add into every Gemm that reads it, also behind what only moves elements."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.linear.affine import Affine, affine_of, to_single
from mrt.rewrite.linear.even_columns import evens_columns
from mrt.rewrite.linear.fuse_affine_before import scale_inputs, shift_sum


def fuse_affine_before_gemms(model: ir.Model) -> int:
    """x * scale + shift per channel, then Transpose and Reshape, then Gemms -> without the first.

    W' = W * scale and b' = b + sum(W * shift) in each Gemm, as in `fuse_affine_before`.
    Applies when nothing else reads the value, and the channels are the columns of every
    Gemm; not where columns of an input table are scaled to one size, which 8 bits of the
    table itself would not hold. Equal in real numbers; in float32 up to rounding.
    """
    count = 0
    for node in nodes(model, "BatchNormalization", "Mul", "Add"):
        affine = affine_of(node)
        gemms = [] if affine is None else _readers(node.outputs[0], 1)
        if affine is None or not gemms or evens_columns(node, affine):
            continue
        fused = [_fused(gemm, affine) for gemm in gemms]
        if not all(
            np.isfinite(array).all() for pair in fused for array in pair
        ):
            continue
        for gemm, (weight, bias) in zip(gemms, fused, strict=True):
            patch = Patch(gemm)
            gemm.replace_input_with(1, patch.constant(weight, "weight"))
            gemm.replace_input_with(2, patch.constant(bias, "bias"))
        for user, index in list(node.outputs[0].uses()):
            user.replace_input_with(index, first(node))
        count += 1
    return count


def _readers(value: ir.Value, axis: int) -> list[ir.Node]:
    """Return all Gemms that read the value, with its axis as their columns; none if something else reads it."""
    if value.is_graph_output():
        return []
    gemms: list[ir.Node] = []
    for user, index in value.uses():
        behind = [user] if _is_gemm(user, index, axis) else []
        moved = None if behind else _moved(user, index, axis)
        if moved is not None:
            behind = _readers(user.outputs[0], moved)
        if not behind:
            return []
        gemms += behind
    return gemms


def _is_gemm(user: ir.Node, index: int, axis: int) -> bool:
    return (
        user.op_type == "Gemm"
        and (index, axis) == (0, 1)
        and int_attribute(user, "transB", 0) == 1
        and int_attribute(user, "transA", 0) == 0
        and constant(operand(user, 1)) is not None
        and constant(operand(user, 2)) is not None
    )


def _moved(user: ir.Node, index: int, axis: int) -> int | None:
    """Return where an axis lies behind a Transpose, or a Reshape that keeps it last."""
    before, after = shape_of(first(user)), shape_of(user.outputs[0])
    if user.op_type == "Transpose":
        perm = ints_attribute(user, "perm")
        return None if perm is None else perm.index(axis)
    if user.op_type != "Reshape" or index or before is None or after is None:
        return None
    keeps = axis == len(before) - 1 and before[-1:] == after[-1:]
    return len(after) - 1 if keeps else None


def _fused(gemm: ir.Node, affine: Affine) -> tuple[Array, Array]:
    weights, bias = (
        np.asarray(constant(operand(gemm, index)), np.float64)
        for index in (1, 2)
    )
    scaled = scale_inputs(gemm, weights, affine)
    shifted = bias + shift_sum(gemm, weights, affine)
    return to_single(scaled), to_single(shifted)
