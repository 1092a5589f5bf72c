"""Weights that a file keeps as small integers with a scale become the floats that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.errors import Unsupported

Array = npt.NDArray[Any]

QUANTISED = "models that are quantised already are not read; convert the float model that this one was made from"


def write_stored_weights(model: ir.Model) -> None:
    """DequantizeLinear(integers, scale, zero point), all constant -> an initializer, (integers - zero point) * scale.

    One scale, one for each index of an axis, or one for each block of it; both steps are rounded once, as onnxruntime
    rounds them. Raises Unsupported where the integers are computed.
    """
    problems = []
    for node in [node for node in model.graph if node.op_type == "DequantizeLinear"]:
        operands = [ir.convenience.get_const_tensor(value) for value in node.inputs if value is not None]
        trouble = (
            QUANTISED if None in operands else _fold(node, [item.numpy() for item in operands if item is not None])
        )
        if trouble is not None:
            problems.append(f"{node.name or node.outputs[0].name} (DequantizeLinear): {trouble}")
    if problems:
        raise Unsupported(problems)


def _fold(node: ir.Node, parts: list[Array]) -> str | None:
    """What is wrong, if anything is."""
    x = parts[0]
    spread = [_spread(node, part, x.shape) for part in parts[1:]]
    scale, zero = spread[0], spread[1] if len(spread) > 1 else np.zeros((), np.int8)
    if scale is None or zero is None:
        return f"scale {list(parts[1].shape)} and zero point do not fit its weights {list(x.shape)}"
    whole = np.int64 if x.dtype.kind in "iu" or "int" in x.dtype.name else np.float64
    moved = (x.astype(whole) - zero.astype(whole)).astype(np.float32)
    kind = scale.dtype if scale.dtype == np.float16 else np.dtype(np.float32)
    _hold(node, (moved * scale.astype(np.float32)).astype(kind))
    return None


def _hold(node: ir.Node, array: Array) -> None:
    """The node becomes an Identity of an initializer; what it read goes where nothing else reads it."""
    graph, operands = node.graph, [value for value in node.inputs if value is not None]
    assert isinstance(graph, ir.Graph)
    taken = {value.name for other in graph for value in other.outputs} | set(graph.initializers)
    name = f"{node.outputs[0].name}.stored"
    while name in taken:
        name += "_"
    tensor = ir.tensor(array, name=name)
    value = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(value)
    node.op_type = "Identity"
    node.attributes.clear()
    node.resize_inputs(1)
    node.replace_input_with(0, value)
    for operand in operands:
        maker = operand.producer()
        if operand.uses() or operand.is_graph_output():
            continue
        if maker is not None:
            graph.remove(maker, safe=True)
        elif not operand.is_graph_input():
            graph.initializers.pop(operand.name or "", None)


def _spread(node: ir.Node, part: Array, shape: tuple[int, ...]) -> Array | None:
    """Numbers that broadcast to the weights; None where they do not fit."""
    if part.size == 1 or not shape:
        return part.reshape(()) if part.size == 1 else None
    axis, block = (_integer(node, name, default) for name, default in (("axis", 1), ("block_size", 0)))
    axis %= len(shape)
    if part.ndim == 1 and block < 1:
        rows = [-1 if place == axis else 1 for place in range(len(shape))]
        return part.reshape(rows) if part.size == shape[axis] else None
    if block < 1 or part.shape != (*shape[:axis], math.ceil(shape[axis] / block), *shape[axis + 1 :]):
        return None
    return np.take(part, np.arange(shape[axis]) // block, axis=axis)


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default
