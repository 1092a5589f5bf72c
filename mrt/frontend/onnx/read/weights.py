"""Convert every number of the model to float32, an integer or a boolean, or refuse it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from mrt.errors import BadModel
from mrt.graph.patch import set_attributes

_OTHER_FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
_FLOATS = (*_OTHER_FLOATS, ir.DataType.FLOAT)
_INTEGERS = (
    ir.DataType.BOOL,
    ir.DataType.INT8,
    ir.DataType.INT16,
    ir.DataType.INT32,
    ir.DataType.INT64,
    ir.DataType.UINT8,
    ir.DataType.UINT16,
    ir.DataType.UINT32,
    ir.DataType.UINT64,
)
# An operand of these may be infinite, because it is a bound, a mask or a threshold.
_TAKE_INFINITY = (
    "Add",
    "Clip",
    "Concat",
    "Equal",
    "Gather",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Pad",
    "ReduceMax",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Where",
)
# A Where may drop NaN, as one whose condition is constant does in JAX's variance.
_TAKE_NAN = ("Where",)
# What hands the numbers of its first operand on.
_FORWARDING = (
    "Cast",
    "CastLike",
    "Expand",
    "Identity",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
)


def write_weights(model: ir.Model) -> None:
    """Turn Constant nodes into initializers, and other floats and casts to them into float32.

    Raise BadModel for NaN that not only a Where reads, and for infinities that are no bound,
    mask or threshold, with the names of the initializer and of the node that reads it.
    """
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(
        model
    )
    for value in model.graph.initializers.values():
        _write_initializer(value)
    for value in model.graph.inputs:
        if value.dtype in _OTHER_FLOATS:
            value.dtype = ir.DataType.FLOAT
    for node in model.graph:
        for output in node.outputs:
            output.type = None
        _write_attributes(node)


def _write_attributes(node: ir.Node) -> None:
    """Change a float type that a node states to float32."""
    if node.op_type == "Cast":
        kind = node.attributes["to"].as_int()
        if kind in _OTHER_FLOATS:
            set_attributes(node, to=int(ir.DataType.FLOAT))
    if node.op_type == "ConstantOfShape" and "value" in node.attributes:
        fill = node.attributes["value"].as_tensor()
        if fill.dtype in _OTHER_FLOATS:
            single = ir.tensor(fill.numpy().astype(np.float32))
            node.attributes["value"] = ir.AttrTensor("value", single)


def _write_initializer(value: ir.Value) -> None:
    tensor = value.const_value
    if tensor is None:
        raise _refusal(value, "no data", "floats, integers or booleans")
    kind = tensor.dtype
    if kind in _INTEGERS:
        array = _array(value, tensor)
        value.type = ir.TensorType(kind)
        value.shape = ir.Shape(array.shape)
        return
    if not kind.is_floating_point():
        raise _refusal(
            value, f"type {kind.name}", "floats, integers or booleans"
        )
    if kind not in _FLOATS:
        expected = "float16, bfloat16, float32 or float64"
        raise _refusal(value, f"type {kind.name}", expected)
    _write_floats(value, _array(value, tensor))


def _refusal(value: ir.Value, actual: str, expected: str) -> BadModel:
    return BadModel(
        f"initializer '{value.name}' has {actual}; expected {expected}"
    )


def _array(value: ir.Value, tensor: ir.TensorProtocol) -> npt.NDArray[Any]:
    try:
        return tensor.numpy()
    except ValueError:
        raise BadModel(
            f"initializer '{value.name}' holds another number of bytes "
            f"than its shape {tensor.shape} needs"
        ) from None


def _write_floats(value: ir.Value, array: npt.NDArray[Any]) -> None:
    if np.isnan(array).any():
        _require_readers(value, _TAKE_NAN, "NaN")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, copy=False)
    if np.isinf(single).any():
        numbers = "infinities, or numbers too large for float32"
        _require_readers(value, _TAKE_INFINITY, numbers)
    if single.dtype != array.dtype:
        value.const_value = ir.tensor(single, name=value.name)
    value.type = ir.TensorType(ir.DataType.FLOAT)
    value.shape = ir.Shape(array.shape)


def _require_readers(
    value: ir.Value, operators: tuple[str, ...], numbers: str
) -> None:
    """Raise BadModel if another operator reads the initializer, which holds these numbers."""
    node = _other_reader(value, operators)
    if node is not None:
        name = node.name or f"{node.op_type}:{node.outputs[0].name}"
        raise BadModel(
            f"initializer '{value.name}' holds {numbers}, which {name} ({node.op_type}) reads; "
            "expected finite numbers: change them in the file, or end in front of it with --outputs"
        )


def _other_reader(
    value: ir.Value, operators: tuple[str, ...]
) -> ir.Node | None:
    """Return a reader, also of what hands its numbers on, that is none of these operators."""
    waiting = [value]
    visited = set[ir.Value]()
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        for use in current.uses():
            if use.node.op_type in _FORWARDING and use.idx == 0:
                waiting += use.node.outputs
            elif use.node.op_type == "CastLike":
                continue  # which reads its type alone
            elif use.node.op_type not in operators:
                return use.node
    return None
