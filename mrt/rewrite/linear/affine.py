"""Read a Mul, Add or BatchNormalization by constants as y = x * scale + shift.

scale and shift have one number per channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    int_attribute,
    operand,
    shape_of,
)

Real = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Affine:
    """y[:, c] = x[:, c] * scale[c] + shift[c], in float64."""

    scale: Real
    shift: Real

    def is_finite(self) -> bool:
        """Whether every number of both parts is finite after rounding to float32."""
        return all(
            bool(np.isfinite(to_single(array)).all())
            for array in (self.scale, self.shift)
        )


def affine_of(node: ir.Node) -> Affine | None:
    """Return y = x * scale + shift per channel (axis 1) for a node, or None.

    Applies to Mul and Add by a constant, and to BatchNormalization. None for other
    nodes, and where a number is not finite in float32.
    """
    shape = (
        shape_of(first(node))
        if node.inputs and node.inputs[0] is not None
        else None
    )
    if shape is None or len(shape) < 2 or node.domain != "":
        return None
    if node.op_type == "BatchNormalization":
        affine = _of_batch_norm(node, shape[1])
    elif node.op_type in ("Mul", "Add") and shape_of(node.outputs[0]) == shape:
        affine = _of_constant(node, shape)
    else:
        affine = None
    return affine if affine is not None and affine.is_finite() else None


def _of_batch_norm(node: ir.Node, channels: int) -> Affine | None:
    parameters = [constant(operand(node, index)) for index in (1, 2, 3, 4)]
    if any(
        parameter is None or parameter.shape != (channels,)
        for parameter in parameters
    ) or int_attribute(node, "training_mode", 0):
        return None
    gamma, beta, mean, variance = (
        np.asarray(parameter, np.float64) for parameter in parameters
    )
    spread = variance + float(
        np.float32(float_attribute(node, "epsilon", 1e-5))
    )
    if not (spread > 0).all():
        return None
    scale = gamma / np.sqrt(spread)
    return Affine(scale, beta - mean * scale)


def negative_variance(node: ir.Node) -> str | None:
    """Describe a stored variance of a BatchNormalization that has no square root.

    The float model computes no number there either. None where the variance is fine, or
    not constant.
    """
    variance = constant(operand(node, 4))
    if (
        variance is None
        or variance.ndim != 1
        or int_attribute(node, "training_mode", 0)
    ):
        return None
    epsilon = float(np.float32(float_attribute(node, "epsilon", 1e-5)))
    wrong = np.flatnonzero(~(variance.astype(np.float64) + epsilon > 0))
    if not wrong.size:
        return None
    return (
        f"its variance is {float(variance[wrong[0]])} in channel {wrong[0]}, with epsilon {epsilon:.6g}: their sum must be "
        f"above 0, or the float model gives no number ({wrong.size} of {variance.size} channels)"
    )


def _of_constant(node: ir.Node, shape: tuple[int, ...]) -> Affine | None:
    array = constant(operand(node, 1))
    vector = None if array is None else per_channel(array, shape)
    if vector is None:
        return None
    ones, zeros = np.ones(shape[1]), np.zeros(shape[1])
    return (
        Affine(vector, zeros) if node.op_type == "Mul" else Affine(ones, vector)
    )


def per_channel(array: Array, shape: tuple[int, ...]) -> Real | None:
    """Return one number per index of axis 1, or None.

    None unless `array`, broadcast to `shape`, varies along that axis alone.
    """
    if array.ndim > len(shape) or array.dtype.kind != "f":
        return None
    aligned = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(size != 1 for axis, size in enumerate(aligned.shape) if axis != 1):
        return None
    return np.broadcast_to(aligned.reshape(-1), (shape[1],)).astype(np.float64)


def to_single(array: Real) -> npt.NDArray[np.float32]:
    """Round once to float32.

    A number that is too large becomes an infinity; the caller checks for it.
    """
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
