"""Fuses a BatchNormalization, Mul or Add into the sum of products before it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    producer,
    sole_user,
)
from mrt.rewrite.linear.affine import Affine, Real, affine_of, to_single


def fuse_affine_after(model: ir.Model) -> int:
    """Conv, ConvTranspose or Gemm, then y * scale + shift per channel -> one node.

    W' = W * scale and b' = b * scale + shift, in float64, rounded once to float32.
    Applies when weights and bias are constant and nothing else reads the value in
    between. Equal in real numbers; in float32 up to rounding.
    """
    count = 0
    for node in nodes(model, "BatchNormalization", "Mul", "Add"):
        maker = producer(node.inputs[0], "Conv", "ConvTranspose", "Gemm")
        affine = affine_of(node)
        if (
            maker is None
            or affine is None
            or sole_user(maker.outputs[0]) is not node
        ):
            continue
        weights, bias = constant(operand(maker, 1)), constant(operand(maker, 2))
        if weights is None or bias is None or not _is_plain(maker):
            continue
        scaled = to_single(
            scale_outputs(maker, weights.astype(np.float64), affine)
        )
        shifted = to_single(
            bias.astype(np.float64) * affine.scale + affine.shift
        )
        if not (np.isfinite(scaled).all() and np.isfinite(shifted).all()):
            continue
        patch = Patch(node)
        value = patch.add(
            maker.op_type,
            first(maker),
            patch.constant(scaled, "weight"),
            patch.constant(shifted, "bias"),
        )
        fused = value.producer()
        assert fused is not None
        fused.attributes.update(maker.attributes)
        patch.finish(value)
        count += 1
    return count


def _is_plain(maker: ir.Node) -> bool:
    """Whether a Gemm is in canonical form; convolutions always are."""
    return maker.op_type != "Gemm" or (
        int_attribute(maker, "transB", 0) == 1
        and int_attribute(maker, "transA", 0) == 0
    )


def scale_outputs(maker: ir.Node, weights: Real, affine: Affine) -> Real:
    """Multiply each weight by the scale of its output channel."""
    if maker.op_type != "ConvTranspose":
        return weights * affine.scale.reshape(-1, *(1,) * (weights.ndim - 1))
    group = int_attribute(maker, "group", 1)
    inputs, outputs, *kernel = weights.shape
    grouped = weights.reshape(group, inputs // group, outputs, *kernel)
    return (
        grouped * affine.scale.reshape(group, 1, outputs, *(1,) * len(kernel))
    ).reshape(weights.shape)
