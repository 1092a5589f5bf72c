"""Fuses a Mul or Add of constants into the normalization before it."""

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
    producer,
    shape_of,
    sole_user,
)
from mrt.rewrite.linear.affine import Real, per_channel, to_single


def fuse_normalization_affine(model: ir.Model) -> int:
    """LayerNormalization or InstanceNormalization, then * k or + k -> one node.

    The node gets another scale and shift. Applies when k varies only along the axes of
    scale and nothing else reads the value in between. Equal up to rounding.
    """
    count = 0
    for node in nodes(model, "Mul", "Add"):
        maker = producer(
            node.inputs[0], "LayerNormalization", "InstanceNormalization"
        )
        array = constant(operand(node, 1))
        if (
            maker is None
            or array is None
            or sole_user(maker.outputs[0]) is not node
        ):
            continue
        scale, shift = constant(operand(maker, 1)), constant(operand(maker, 2))
        numbers = _as_parameters(maker, array)
        if (
            scale is None
            or shift is None
            or numbers is None
            or shape_of(node.outputs[0]) != shape_of(first(maker))
        ):
            continue
        wide = scale.astype(np.float64), shift.astype(np.float64)
        parameters = (
            (wide[0] * numbers, wide[1] * numbers)
            if node.op_type == "Mul"
            else (wide[0], wide[1] + numbers)
        )
        singles = [to_single(parameter) for parameter in parameters]
        if not all(np.isfinite(single).all() for single in singles):
            continue
        patch = Patch(node)
        constants = [
            patch.constant(single, role)
            for single, role in zip(singles, ("scale", "shift"), strict=True)
        ]
        attributes: dict[str, int | float] = {
            "epsilon": float_attribute(maker, "epsilon", 1e-5)
        }
        if maker.op_type == "LayerNormalization":
            attributes |= {
                "axis": int_attribute(maker, "axis", -1),
                "stash_type": 1,
            }
        patch.finish(
            patch.add(maker.op_type, first(maker), *constants, **attributes)
        )
        count += 1
    return count


def _as_parameters(maker: ir.Node, array: Array) -> Real | None:
    """Return `array` in the shape of the node's scale.

    None if it varies along another axis.
    """
    shape = shape_of(first(maker))
    if shape is None or array.dtype.kind != "f" or array.ndim > len(shape):
        return None
    if maker.op_type == "InstanceNormalization":
        return per_channel(array, shape)
    axis = int_attribute(maker, "axis", -1) % len(shape)
    aligned = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(size != 1 for size in aligned.shape[:axis]):
        return None
    return np.broadcast_to(
        aligned.reshape(aligned.shape[axis:]), shape[axis:]
    ).astype(np.float64)
