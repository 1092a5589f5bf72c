"""Moves the scaling of a picture behind the Transpose to the layout of convolutions.

Models that take NHWC often scale the picture before they transpose it. Behind the
Transpose, the scaling can be fused into the convolution.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.notes import picture_layout_of
from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    ints_attribute,
    nodes,
    operand,
    producer,
    shape_of,
    sole_user,
)


def pull_transposes(model: ir.Model) -> int:
    """Transpose(x * c) -> Transpose(x) * Transpose(c); the same for x + c.

    Applies to values computed from a picture alone. Equal.
    """
    count = 0
    for node in nodes(model, "Transpose"):
        maker = producer(first(node), "Mul", "Add")
        array = None if maker is None else constant(operand(maker, 1))
        perm, shape = ints_attribute(node, "perm"), shape_of(first(node))
        if (
            maker is None
            or array is None
            or perm is None
            or shape is None
            or sole_user(maker.outputs[0]) is not node
        ):
            continue
        if shape_of(first(maker)) != shape or not _is_of_a_picture(
            first(maker)
        ):
            continue
        patch = Patch(node)
        full = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
        moved = patch.add("Transpose", first(maker), perm=perm)
        patch.finish(
            patch.add(
                maker.op_type,
                moved,
                patch.constant(np.transpose(full, perm), "constant"),
            )
        )
        count += 1
    return count


def _is_of_a_picture(value: ir.Value) -> bool:
    while (
        node := producer(value, "Transpose", "Slice", "Mul", "Add")
    ) is not None:
        value = first(node)
    return picture_layout_of(value) is not None
