"""Fuses a BatchNormalization, Mul or Add into the sum of products after it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    producer,
    sole_user,
)
from mrt.rewrite.linear.affine import Affine, Real, affine_of, to_single
from mrt.rewrite.linear.even_columns import evens_columns


def fuse_affine_before(model: ir.Model) -> int:
    """x * scale + shift per channel, then Conv, ConvTranspose or Gemm -> one node.

    W' = W * scale and b' = b + sum(W * shift), summed in float64 in index order.
    Applies when weights and bias are constant and nothing else reads the value in
    between. With a shift that is not 0 it applies only without padding, since padding
    is not shifted, and not to a ConvTranspose, whose borders add fewer terms; nor where it
    evens the columns of an input table. Equal in real numbers; in float32 up to rounding.
    """
    count = 0
    for node in nodes(model, "Conv", "ConvTranspose", "Gemm"):
        source = producer(node.inputs[0], "BatchNormalization", "Mul", "Add")
        affine = None if source is None else affine_of(source)
        if (
            source is None
            or affine is None
            or sole_user(source.outputs[0]) is not node
            or evens_columns(source, affine)
        ):
            continue
        weights, bias = constant(operand(node, 1)), constant(operand(node, 2))
        if weights is None or bias is None or not _may_shift(node, affine):
            continue
        scaled = to_single(
            scale_inputs(node, weights.astype(np.float64), affine)
        )
        shifted = to_single(
            bias.astype(np.float64)
            + shift_sum(node, weights.astype(np.float64), affine)
        )
        if not (np.isfinite(scaled).all() and np.isfinite(shifted).all()):
            continue
        patch = Patch(node)
        node.replace_input_with(0, first(source))
        node.replace_input_with(1, patch.constant(scaled, "weight"))
        node.replace_input_with(2, patch.constant(shifted, "bias"))
        count += 1
    return count


def _may_shift(node: ir.Node, affine: Affine) -> bool:
    if node.op_type == "Gemm":
        return (
            int_attribute(node, "transB", 0) == 1
            and int_attribute(node, "transA", 0) == 0
        )
    if not affine.shift.any():
        return True
    return (
        node.op_type == "Conv"
        and not any(ints_attribute(node, "pads") or ())
        and "auto_pad" not in node.attributes
    )


def _per_weight(node: ir.Node, weights: Real, vector: Real) -> Real:
    """Reshape `vector`, one number per input channel, to broadcast against weights."""
    if node.op_type == "ConvTranspose":
        return vector.reshape(-1, *(1,) * (weights.ndim - 1))
    group = int_attribute(node, "group", 1)
    outputs, inputs, *kernel = weights.shape
    blocks = np.repeat(vector.reshape(group, inputs), outputs // group, axis=0)
    return blocks.reshape(outputs, inputs, *(1,) * len(kernel))


def scale_inputs(node: ir.Node, weights: Real, affine: Affine) -> Real:
    """Return the weights times the scale of the channel that each reads."""
    return weights * _per_weight(node, weights, affine.scale)


def shift_sum(node: ir.Node, weights: Real, affine: Affine) -> Real:
    """Return what the shift adds to each output.

    The terms are added in index order, so that no library chooses the order.
    """
    if not affine.shift.any():
        return np.zeros(())
    terms = (weights * _per_weight(node, weights, affine.shift)).reshape(
        weights.shape[0], -1
    )
    total = np.zeros(len(terms))
    for index in range(terms.shape[1]):
        total += terms[:, index]
    return total
