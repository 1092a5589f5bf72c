"""Readers of a canonical graph, in which every value has a name, a static shape and, where promised, a constant."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.exact.fixed_point import FloatArray


def name_of(value: ir.Value | None) -> str:
    """The name of a value; every value of a canonical graph has one."""
    assert value is not None and value.name is not None
    return value.name


def shape_of(value: ir.Value | None) -> tuple[int, ...]:
    """The static shape of a value of a canonical graph."""
    assert value is not None and value.shape is not None
    return tuple(int(dimension) for dimension in value.shape.numpy())


def constant_of(value: ir.Value | None) -> FloatArray | None:
    """A constant as float64, or None for a computed value."""
    if value is None or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy(), np.float64)


def require_constant(node: ir.Node, index: int) -> FloatArray:
    """An input that the canonical form promises to be a constant."""
    array = constant_of(node.inputs[index])
    if array is None:
        raise Unsupported(
            [f"{node.name} ({node.op_type}): input {index} must be a constant"]
        )
    return array


def clip_ends(node: ir.Node) -> tuple[float, float]:
    """Where a Clip stops numbers; the canonical form promises both ends."""
    low, high = (
        float(require_constant(node, index).ravel()[0]) for index in (1, 2)
    )
    return low, high


def integers_of(node: ir.Node, index: int) -> tuple[int, ...]:
    """A constant integer vector among a node's inputs."""
    return tuple(int(item) for item in require_constant(node, index).ravel())
