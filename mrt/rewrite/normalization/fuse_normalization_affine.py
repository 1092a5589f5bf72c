"""Fuses a Mul or Add of constants into the normalization before it."""

from __future__ import annotations

from collections.abc import Sequence

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
        if maker is None or sole_user(maker.outputs[0]) is not node:
            continue
        if shape_of(node.outputs[0]) != shape_of(first(maker)):
            continue
        parameters = _joined_parameters(maker, node)
        if parameters is not None:
            _write(maker, node, parameters)
            count += 1
    return count


def _joined_parameters(maker: ir.Node, node: ir.Node) -> list[Array] | None:
    """Return the scale and shift of both nodes together; None where they are not constant and finite."""
    scale, shift = constant(operand(maker, 1)), constant(operand(maker, 2))
    array = constant(operand(node, 1))
    if scale is None or shift is None or array is None:
        return None
    numbers = _as_parameters(maker, array)
    if numbers is None:
        return None
    wide_scale, wide_shift = scale.astype(np.float64), shift.astype(np.float64)
    if node.op_type == "Mul":
        joined = [wide_scale * numbers, wide_shift * numbers]
    else:
        joined = [wide_scale, wide_shift + numbers]
    singles = [to_single(parameter) for parameter in joined]
    is_finite = all(np.isfinite(single).all() for single in singles)
    return singles if is_finite else None


def _write(maker: ir.Node, node: ir.Node, parameters: Sequence[Array]) -> None:
    """Write the normalization with these parameters in the place of the second node."""
    patch = Patch(node)
    constants = [
        patch.constant(parameter, role)
        for parameter, role in zip(parameters, ("scale", "shift"), strict=True)
    ]
    attributes: dict[str, int | float] = {
        "epsilon": float_attribute(maker, "epsilon", 1e-5)
    }
    if maker.op_type == "LayerNormalization":
        attributes["axis"] = int_attribute(maker, "axis", -1)
        attributes["stash_type"] = 1
    patch.finish(
        patch.add(maker.op_type, first(maker), *constants, **attributes)
    )


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
