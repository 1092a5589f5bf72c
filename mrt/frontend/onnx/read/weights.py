"""Every number of the model becomes float32, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from mrt.errors import BadModel

_OTHER_FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
# An infinity is a limit or a mask in these and no number to compute with.
_TAKE_INFINITY = (
    "Add",
    "Clip",
    "Equal",
    "Max",
    "Min",
    "Pad",
    "ReduceMax",
    "Shape",
    "Where",
)
_HAND_ON = ("Cast", "CastLike", "Identity")


def write_weights(model: ir.Model) -> None:
    """Constant nodes become initializers, float16, bfloat16 and float64 become float32, casts to them casts to float32.

    Refuses NaN anywhere, and infinities that are more than a limit, naming the initializer.
    """
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    for value in model.graph.initializers.values():
        _write_initializer(value)
    for value in model.graph.inputs:
        if value.dtype in _OTHER_FLOATS:
            value.dtype = ir.DataType.FLOAT
    for node in model.graph:
        for output in node.outputs:
            output.type = None
        if node.op_type == "Cast" and node.attributes["to"].as_int() in [
            int(kind) for kind in _OTHER_FLOATS
        ]:
            node.attributes["to"] = ir.AttrInt64("to", int(ir.DataType.FLOAT))
        if node.op_type == "ConstantOfShape" and "value" in node.attributes:
            fill = node.attributes["value"].as_tensor()
            if fill.dtype in _OTHER_FLOATS:
                node.attributes["value"] = ir.AttrTensor(
                    "value", ir.tensor(fill.numpy().astype(np.float32))
                )


def _array(tensor: ir.TensorProtocol, name: str | None) -> npt.NDArray[Any]:
    try:
        return tensor.numpy()
    except ValueError:
        raise BadModel(
            f"initializer '{name}' holds another number of bytes than its shape {tensor.shape} needs"
        ) from None


def _write_initializer(value: ir.Value) -> None:
    tensor = value.const_value
    if tensor is None or not (
        tensor.dtype.is_floating_point() or tensor.dtype in _INTEGERS
    ):
        kind = "no data" if tensor is None else f"type {tensor.dtype.name}"
        raise BadModel(
            f"initializer '{value.name}' has {kind}; expected floats, integers or booleans"
        )
    if not tensor.dtype.is_floating_point():
        value.type, value.shape = (
            ir.TensorType(tensor.dtype),
            ir.Shape(_array(tensor, value.name).shape),
        )
        return
    if tensor.dtype not in (*_OTHER_FLOATS, ir.DataType.FLOAT):
        raise BadModel(
            f"initializer '{value.name}' has type {tensor.dtype.name}; expected float16, bfloat16, float32 or float64"
        )
    array = _array(tensor, value.name)
    if np.isnan(array).any():
        raise BadModel(f"initializer '{value.name}' holds NaN")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, copy=False)
    if not np.isfinite(single).all() and not _only_limits(value):
        raise BadModel(
            f"initializer '{value.name}' holds infinities, or numbers too large for float32"
        )
    if single.dtype != array.dtype:
        value.const_value = ir.tensor(single, name=value.name)
    value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(array.shape)


def _only_limits(value: ir.Value) -> bool:
    """Whether every reader, also behind casts, takes an infinity."""
    waiting, seen = [value], set[str | None]()
    while waiting:
        item = waiting.pop()
        seen.add(item.name)
        for use in item.uses():
            if use.node.op_type in _HAND_ON:
                waiting += [
                    output for output in use.node.outputs if output.name not in seen
                ]
            elif use.node.op_type not in _TAKE_INFINITY:
                return False
    return True


_INTEGERS = (
    ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
    ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64,
)  # fmt: skip
