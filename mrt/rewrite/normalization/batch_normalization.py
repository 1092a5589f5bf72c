"""Lowers a BatchNormalization that no fusion has removed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, shape_of
from mrt.rewrite.linear.affine import affine_of


def lower_batch_normalization(model: ir.Model) -> int:
    """BatchNormalization -> depthwise 1x1 Conv on a 4-D value; else Mul, then Add.

    Applies when all its parameters are constant; runs after the fusions. Safe because
    both compute x * scale + shift with scale = gamma / sqrt(variance + epsilon), in
    float64, rounded once to float32.
    """
    count = 0
    for node in nodes(model, "BatchNormalization"):
        affine, shape = affine_of(node), shape_of(first(node))
        if affine is None or shape is None:
            continue
        patch = Patch(node)
        scale = affine.scale.astype(np.float32)
        shift = affine.shift.astype(np.float32)
        if len(shape) == 4:
            weight = patch.constant(scale.reshape(-1, 1, 1, 1), "weight")
            value = patch.add(
                "Conv", first(node), weight, patch.constant(shift, "bias"),
                kernel_shape=(1, 1), strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), group=shape[1],
            )  # fmt: skip
        else:
            channel = (1, -1, *(1,) * (len(shape) - 2))
            scaled = patch.add(
                "Mul",
                first(node),
                patch.constant(scale.reshape(channel), "scale"),
            )
            value = patch.add(
                "Add", scaled, patch.constant(shift.reshape(channel), "shift")
            )
        patch.finish(value)
        count += 1
    return count
