"""Decompose MatMulInteger and ConvInteger of quantized values into float products.

    Cast(MatMulInteger(q, w, zero point of q, zero point of w))
    ->  MatMul(DequantizeLinear(q), w - zero point of w) / scale of q

The integers q are those of a QuantizeLinear; its scale makes the product one of reals, and
the division makes the same integers of it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.stored_weights import stored_array
from mrt.graph.patch import Patch, copy_attributes
from mrt.graph.values import Array, first, int_attribute, producer

OPERATORS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_DOMAINS = ("", "ai.onnx")


def read_integer_products(model: ir.Model) -> None:
    """Decompose them in place; raise Unsupported with a line for each that has no such form."""
    problems: list[str] = []
    for node in list(model.graph):
        if node.op_type in OPERATORS and node.domain in _DOMAINS:
            problem = _decompose(node)
            if problem is not None:
                name = node.name or node.outputs[0].name
                problems.append(f"{name} ({node.op_type}): {problem}")
    if problems:
        raise Unsupported(problems)


def _decompose(node: ir.Node) -> str | None:
    """Decompose one node; return the reason if that is impossible."""
    quantizer = producer(node.inputs[0], "QuantizeLinear")
    scale = None if quantizer is None else stored_array(quantizer.inputs[1])
    if quantizer is None or scale is None or scale.size != 1:
        return (
            "integers in a form that is not read; "
            "expected those of a QuantizeLinear with one constant scale"
        )
    if _zero(quantizer, 2) != _zero(node, 2):
        return "a zero point that is not the one of its QuantizeLinear"
    weights = _weights(node)
    if isinstance(weights, str):
        return weights
    casts = [use.node for use in node.outputs[0].uses()]
    if node.outputs[0].is_graph_output() or not all(map(_is_to_float, casts)):
        return "its integers are read as such; expected a Cast to float"
    _write(node, quantizer, weights, float(scale.reshape(())))
    for cast in casts:
        cast.op_type = "Identity"
        cast.attributes.clear()
    return None


def _write(
    node: ir.Node, quantizer: ir.Node, weights: Array, scale: float
) -> None:
    patch = Patch(node, typed=False)
    reals = patch.add("DequantizeLinear", first(node), *quantizer.inputs[1:3])
    constant = patch.constant(weights, "weights")
    product = patch.add(OPERATORS[node.op_type], reals, constant)
    copy_attributes(node, product, *node.attributes)
    factor = np.array(1 / np.float32(scale), np.float32)
    patch.become("Mul", product, patch.constant(factor, "inverse_scale"))


def _zero(node: ir.Node, place: int) -> int | None:
    """Return a zero point, 0 if there is none, or None if it is computed or has several numbers."""
    if len(node.inputs) <= place or node.inputs[place] is None:
        return 0
    array = stored_array(node.inputs[place])
    return None if array is None or array.size != 1 else int(array.reshape(()))


def _weights(node: ir.Node) -> Array | str:
    """Return the weights less their zero points, or the problem."""
    array = stored_array(node.inputs[1])
    if array is None:
        return "both operands are computed; expected constant weights"
    zero: Array | None = np.zeros(1, np.int64)
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        zero = stored_array(node.inputs[3])
    if zero is None:
        return "the zero point of its weights is computed; expected a constant"
    zero = zero.astype(np.int64)
    if node.op_type == "ConvInteger" and zero.size > 1:
        zero = zero.reshape(-1, *[1] * (array.ndim - 1))
    return (array.astype(np.int64) - zero).astype(np.float32)


def _is_to_float(node: ir.Node) -> bool:
    kind = int_attribute(node, "to", 0)
    return node.op_type == "Cast" and kind == int(ir.DataType.FLOAT)
