"""Decompose operators that came or changed after opset 20 into operators of opset 20."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.graph.patch import Patch, drop_attributes
from mrt.graph.values import (
    first,
    float_attribute,
    int_attribute,
    string_attribute,
)

EPSILON = 1e-5  # ONNX's default in every normalization
MOST_GROUPS = 1 << 16  # of channels, far more than any model has


def decompose_group_norm(node: ir.Node) -> None:
    """Group norm of opset 21 -> InstanceNormalization of groups, then scale and bias of channels.

    Since opset 21 scale and bias have one entry for each channel; before, they had one
    for each group.
    """
    patch, x = Patch(node, typed=False), first(node)
    groups = int_attribute(node, "num_groups", 1)
    if not 1 <= groups <= MOST_GROUPS:
        name = node.name or node.outputs[0].name
        raise BadModel(
            f"{name} (GroupNormalization): num_groups={groups}; "
            f"expected 1 to {MOST_GROUPS}"
        )
    epsilon = float_attribute(node, "epsilon", EPSILON)
    scale, bias = node.inputs[1], node.inputs[2]
    shape = patch.add("Shape", x)
    grouped = patch.add("Reshape", x, patch.axes([0, groups, -1], "groups"))
    ones = patch.constant(np.ones(groups, np.float32), "ones")
    zeros = patch.constant(np.zeros(groups, np.float32), "zeros")
    normal = patch.add(
        "InstanceNormalization", grouped, ones, zeros, epsilon=epsilon
    )
    image = patch.add("Reshape", normal, shape)
    rows = patch.add("Reshape", image, patch.axes([0, 0, -1], "rows"))
    column = patch.axes([-1, 1], "column")
    scaled = patch.add("Mul", rows, patch.add("Reshape", scale, column))
    shifted = patch.add("Add", scaled, patch.add("Reshape", bias, column))
    patch.become("Reshape", shifted, shape)


def decompose_rms_norm(node: ir.Node) -> None:
    """RMSNormalization -> x / Sqrt(mean of x * x + epsilon) * scale, over the axes from `axis` on.

    These axes are first joined into one.
    """
    patch, x, scale = Patch(node, typed=False), first(node), node.inputs[1]
    axis = int_attribute(node, "axis", -1)
    epsilon = patch.number(float_attribute(node, "epsilon", EPSILON), "epsilon")
    rows = x if axis == -1 else patch.add("Flatten", x, axis=axis)
    squares = patch.add("Mul", rows, rows)
    mean = patch.add("ReduceMean", squares, patch.axes([-1]))
    root = patch.add("Sqrt", patch.add("Add", mean, epsilon))
    normal = patch.add("Div", rows, root)
    if axis != -1:
        normal = patch.add("Reshape", normal, patch.add("Shape", x))
    patch.become("Mul", normal, scale)


def decompose_swish(node: ir.Node) -> None:
    """Swish -> x * Sigmoid(alpha * x)."""
    patch, x = Patch(node, typed=False), first(node)
    scaled = x
    if "alpha" in node.attributes:
        alpha = patch.number(float_attribute(node, "alpha", 1.0), "alpha")
        scaled = patch.add("Mul", x, alpha)
    patch.become("Mul", x, patch.add("Sigmoid", scaled))


def decompose_space_to_depth(node: ir.Node) -> None:
    """SpaceToDepth of mode CRD -> SpaceToDepth, Transpose of the block and channel axes.

    Since opset 28 the mode may put the channels in front of the positions in a block.
    """
    mode = string_attribute(node, "mode", "DCR")
    drop_attributes(node, "mode")
    if mode != "CRD":
        return
    patch, size = Patch(node, typed=False), int_attribute(node, "blocksize", 1)
    blocks = patch.add("SpaceToDepth", first(node), blocksize=size)
    shape = patch.add("Shape", blocks)
    starts, ends = patch.axes([2], "starts"), patch.axes([4], "ends")
    image = patch.add("Slice", shape, starts, ends)
    channels = patch.axes([0, size * size, -1], "channels")
    split_shape = patch.add("Concat", channels, image, axis=0)
    split = patch.add("Reshape", blocks, split_shape)
    patch.become(
        "Reshape", patch.add("Transpose", split, perm=(0, 2, 1, 3, 4)), shape
    )


def decompose_range(node: ir.Node) -> None:
    """Drop the type in which a Range of float16 counts (opset 27); other types count as before."""
    drop_attributes(node, "stash_type")


AFTER_20: dict[str, tuple[int, Callable[[ir.Node], None]]] = {
    "GroupNormalization": (21, decompose_group_norm),
    "RMSNormalization": (23, decompose_rms_norm),
    "Range": (27, decompose_range),
    "SpaceToDepth": (28, decompose_space_to_depth),
    "Swish": (24, decompose_swish),
}
