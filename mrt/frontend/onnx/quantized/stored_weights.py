"""Weights that a file keeps as small integers with a scale become the floats that they stand for, and the other way round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]

# The least and the greatest number of the types in which files keep integers for reals.
HOLD = {
    ir.DataType.UINT8: (0, 2**8 - 1), ir.DataType.INT8: (-(2**7), 2**7 - 1), ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1), ir.DataType.INT32: (-(2**31), 2**31 - 1), ir.DataType.UINT4: (0, 15),
    ir.DataType.INT4: (-8, 7), ir.DataType.UINT2: (0, 3), ir.DataType.INT2: (-2, 1),
}  # fmt: skip


def fold_dequantized(node: ir.Node) -> bool | str:
    """DequantizeLinear(integers, scale, zero point), all constant -> an initializer, (integers - zero point) * scale.

    One scale, one for each index of an axis, or one for each block of it; both steps are rounded once, as onnxruntime
    rounds them. False where an operand is computed; or what is wrong.
    """
    parts = _constants(node, np.zeros((), np.int8))
    if parts is None or isinstance(parts, str):
        return parts or False
    x, scale, zero = parts
    whole = np.int64 if x.dtype.kind in "iu" or "int" in x.dtype.name else np.float64
    moved = (x.astype(whole) - zero.astype(whole)).astype(np.float32)
    kind = scale.dtype if scale.dtype == np.float16 else np.dtype(np.float32)
    _hold(node, (moved * scale.astype(np.float32)).astype(kind))
    return True


def fold_quantized(node: ir.Node) -> bool | str:
    """QuantizeLinear(weights, scale, zero point), all constant -> an initializer of integers, rounded half to even."""
    parts = _constants(node, np.zeros((), np.uint8))
    if parts is None or isinstance(parts, str):
        return parts or False
    x, scale, zero = parts
    kind = ir.DataType.from_numpy(zero.dtype)
    if kind not in HOLD:
        return (
            f"weights of type {kind.name.lower()}; expected integers of up to 32 bits"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.rint(x.astype(np.float32) / scale.astype(np.float32)) + zero.astype(
            np.float32
        )
    if np.isnan(steps).any():
        return "scales of 0"
    _hold(node, np.clip(steps, *HOLD[kind]).astype(zero.dtype))
    return True


def _constants(
    node: ir.Node, no_zero: Array
) -> tuple[Array, Array, Array] | str | None:
    """What is folded, its scale and its zero point, spread as it is; what is wrong; or None where an operand is computed."""
    operands = [
        ir.convenience.get_const_tensor(value)
        for value in node.inputs
        if value is not None
    ]
    if None in operands:
        return None
    x, *parts = (item.numpy() for item in operands if item is not None)
    spread = [_spread(node, part, x.shape) for part in parts]
    scale, zero = spread[0], spread[1] if len(spread) > 1 else no_zero
    if scale is None or zero is None:
        return f"scale {list(parts[0].shape)} and zero point do not fit its weights {list(x.shape)}"
    return x, scale, zero


def _hold(node: ir.Node, array: Array) -> None:
    """An initializer in the place of the node, or in front of it where the model ends there; what only it read goes."""
    graph, operands = node.graph, list(node.inputs)
    assert isinstance(graph, ir.Graph)
    taken = {value.name for other in graph for value in other.outputs} | set(
        graph.initializers
    )
    name = f"{node.outputs[0].name}.stored"
    while name in taken:
        name += "_"
    tensor = ir.tensor(array, name=name)
    value = ir.Value(
        name=name,
        shape=ir.Shape(array.shape),
        type=ir.TensorType(tensor.dtype),
        const_value=tensor,
    )
    graph.register_initializer(value)
    node.op_type, node.domain = "Identity", ""
    node.attributes.clear()
    node.resize_inputs(1)
    node.replace_input_with(0, value)
    release(node, operands)
    if not node.outputs[0].is_graph_output():
        node.outputs[0].replace_all_uses_with(value)
        graph.remove(node, safe=True)


def release(node: ir.Node, operands: Sequence[ir.Value | None]) -> None:
    """Constants that a node read go where nothing else reads them."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for operand in operands:
        if (
            operand is None
            or operand.uses()
            or operand.is_graph_output()
            or operand.is_graph_input()
        ):
            continue
        maker = operand.producer()
        if maker is None:
            graph.initializers.pop(operand.name or "", None)
        elif maker.op_type in ("Constant", "Identity"):
            read = list(maker.inputs)
            graph.remove(maker, safe=True)
            release(node, read)


def _spread(node: ir.Node, part: Array, shape: tuple[int, ...]) -> Array | None:
    """Numbers that broadcast to the weights; None where they do not fit."""
    if part.size == 1 or not shape:
        return part.reshape(()) if part.size == 1 else None
    axis, block = (
        _integer(node, name, default)
        for name, default in (("axis", 1), ("block_size", 0))
    )
    axis %= len(shape)
    if part.ndim == 1 and block < 1:
        rows = [-1 if place == axis else 1 for place in range(len(shape))]
        return part.reshape(rows) if part.size == shape[axis] else None
    if block < 1 or part.shape != (
        *shape[:axis],
        math.ceil(shape[axis] / block),
        *shape[axis + 1 :],
    ):
        return None
    return np.take(part, np.arange(shape[axis]) // block, axis=axis)


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default
