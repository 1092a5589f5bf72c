"""Dequantize or quantize constant weights at conversion.

A file may store weights as small integers with a scale. They become the floats that these
represent, or floats become integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, bypass
from mrt.graph.values import Array, int_attribute

# for each type in which files store integers for reals, the least and the greatest number
HOLD = {
    ir.DataType.UINT8: (0, 2**8 - 1),
    ir.DataType.INT8: (-(2**7), 2**7 - 1),
    ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1),
    ir.DataType.INT32: (-(2**31), 2**31 - 1),
    ir.DataType.UINT4: (0, 15),
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT2: (0, 3),
    ir.DataType.INT2: (-2, 1),
}


def stored_array(value: ir.Value | None) -> Array | None:
    """Return the array of an initializer or of a Constant node; None for a computed value."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def fold_dequantized(node: ir.Node) -> bool | str:
    """DequantizeLinear(integers, scale, zero point), all constant -> an initializer.

    It holds (integers - zero point) * scale, with one scale, one for each index of an
    axis, or one for each block of it. Both steps are rounded once, as onnxruntime rounds
    them. Return False if an operand is computed, or a string with the problem.
    """
    constants = _constants(node, np.zeros((), np.int8))
    if constants is None or isinstance(constants, str):
        return constants or False
    x, scale, zero = constants
    wide_dtype = (
        np.int64
        if x.dtype.kind in "iu" or "int" in x.dtype.name
        else np.float64
    )
    moved = (x.astype(wide_dtype) - zero.astype(wide_dtype)).astype(np.float32)
    kind = scale.dtype if scale.dtype == np.float16 else np.dtype(np.float32)
    hold(node, (moved * scale.astype(np.float32)).astype(kind))
    return True


def fold_quantized(node: ir.Node) -> bool | str:
    """QuantizeLinear(weights, scale, zero point), all constant -> an initializer of integers.

    They are rounded half to even. Return False if an operand is computed, or a string
    with the problem.
    """
    stated = stated_type(node)
    if isinstance(stated, str):
        return stated
    parts = _constants(node, np.zeros((), stated.numpy()))
    if parts is None or isinstance(parts, str):
        return parts or False
    x, scale, zero = parts
    kind = ir.DataType.from_numpy(zero.dtype)
    if kind not in HOLD:
        return f"weights of type {kind.name.lower()}; expected integers of up to 32 bits"
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.rint(
            x.astype(np.float32) / scale.astype(np.float32)
        ) + zero.astype(np.float32)
    if np.isnan(steps).any():
        return "scales of 0"
    hold(node, np.clip(steps, *HOLD[kind]).astype(zero.dtype))
    return True


def stated_type(node: ir.Node) -> ir.DataType | str:
    """Return the type of a QuantizeLinear's integers where it has no zero point; a string if the type is unknown."""
    number = int_attribute(node, "output_dtype", 0)
    if not number:
        return ir.DataType.UINT8
    if number not in set(ir.DataType):
        return f"output_dtype={number}, which is no type of ONNX"
    return ir.DataType(number)


def _constants(
    node: ir.Node, no_zero: Array
) -> tuple[Array, Array, Array] | str | None:
    """Return the array to fold, its scale and its zero point, broadcast to it.

    Return a string with the problem if they do not fit, and None if an operand is
    computed.
    """
    operands = [
        ir.convenience.get_const_tensor(value)
        for value in node.inputs
        if value is not None
    ]
    if None in operands:
        return None
    x, *scale_and_zero = (
        tensor.numpy() for tensor in operands if tensor is not None
    )
    spread = [_spread(node, array, x.shape) for array in scale_and_zero]
    scale, zero = spread[0], spread[1] if len(spread) > 1 else no_zero
    if scale is None or zero is None:
        return f"scale {list(scale_and_zero[0].shape)} and zero point do not fit its weights {list(x.shape)}"
    return x, scale, zero


def hold(node: ir.Node, array: Array) -> None:
    """Put an initializer in the place of the node, and remove constants that only the node read.

    If the model ends in the node, an Identity of the initializer stays there.
    """
    patch, operands = Patch(node), list(node.inputs)
    value = patch.constant(array, "stored")
    patch.become("Identity", value)
    release(node, operands)
    if not node.outputs[0].is_graph_output():
        bypass(node, value)


def release(node: ir.Node, operands: Sequence[ir.Value | None]) -> None:
    """Remove constants that a node read, unless something else reads them."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for operand in operands:
        if operand is None or operand.uses():
            continue
        if operand.is_graph_output() or operand.is_graph_input():
            continue
        producer = operand.producer()
        if producer is None:
            graph.initializers.pop(operand.name or "", None)
        elif producer.op_type in ("Constant", "Identity"):
            read = list(producer.inputs)
            graph.remove(producer, safe=True)
            release(node, read)


def _spread(
    node: ir.Node, numbers: Array, shape: tuple[int, ...]
) -> Array | None:
    """Return scales or zero points broadcast to weights of this shape; None if they do not fit."""
    if numbers.size == 1:
        return numbers.reshape(())
    if not shape:
        return None
    axis = int_attribute(node, "axis", 1) % len(shape)
    block = int_attribute(node, "block_size", 0)
    if numbers.ndim == 1 and block < 1:
        if numbers.size != shape[axis]:
            return None
        column = [1] * len(shape)
        column[axis] = -1
        return numbers.reshape(column)
    if block < 1:
        return None
    blocks = math.ceil(shape[axis] / block)
    if numbers.shape != (*shape[:axis], blocks, *shape[axis + 1 :]):
        return None
    return np.take(numbers, np.arange(shape[axis]) // block, axis=axis)
