"""Readers of a canonical graph.

Every value has a name, a static shape and, where that is promised, a constant.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.exact.fixed_point import FloatArray


def name_of(value: ir.Value | None) -> str:
    """Return the name of a value; every value of a canonical graph has one."""
    assert value is not None and value.name is not None
    return value.name


def shape_of(value: ir.Value | None) -> tuple[int, ...]:
    """Return the static shape of a value of a canonical graph."""
    assert value is not None and value.shape is not None
    return tuple(int(dimension) for dimension in value.shape.numpy())


def constant_of(value: ir.Value | None) -> FloatArray | None:
    """Return a constant as float64, or None for a computed value."""
    if value is None or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy(), np.float64)


def is_constant(value: ir.Value | None) -> bool:
    """Whether a value is a constant, without a copy of it."""
    return value is not None and value.const_value is not None


def require_constant(node: ir.Node, index: int) -> FloatArray:
    """Return an input that the canonical form requires to be a constant, or raise Unsupported."""
    array = constant_of(node.inputs[index])
    if array is None:
        raise Unsupported(
            [f"{node.name} ({node.op_type}): input {index} must be a constant"]
        )
    return array


def clip_ends(node: ir.Node) -> tuple[float, float]:
    """Return the bounds of a Clip; by the canonical form it has both."""
    low, high = (
        float(require_constant(node, index).ravel()[0]) for index in (1, 2)
    )
    return low, high


def integers_of(node: ir.Node, index: int) -> tuple[int, ...]:
    """Return the constant integer vector at this index of a node's inputs."""
    return tuple(
        int(number) for number in require_constant(node, index).ravel()
    )


def is_product_of_computed(node: ir.Node) -> bool:
    """Whether a node multiplies two different computed values element by element."""
    if node.op_type != "Mul":
        return False
    left, right = node.inputs
    return left is not right and not (is_constant(left) or is_constant(right))
