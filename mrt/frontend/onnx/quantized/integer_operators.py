"""Decompose integer operators (QLinearConv and its like) into float ones.

The float operators stand between DequantizeLinear and QuantizeLinear nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.stored_weights import stored_array
from mrt.graph.patch import Patch, copy_attributes
from mrt.graph.values import float_attribute, int_attribute

Operand = ir.Value | None
_DOMAINS = ("", "ai.onnx", "com.microsoft")


def decompose_integer_operators(model: ir.Model) -> None:
    """Decompose integer operators in place.

    Raise Unsupported for forms that have no float operator.
    """
    for node in list(model.graph):
        if node.op_type in _DECOMPOSE and node.domain in _DOMAINS:
            node.domain = ""
            _DECOMPOSE[node.op_type](node)


def _real(
    patch: Patch, quantized: Sequence[Operand], **attributes: int
) -> ir.Value:
    """Write the DequantizeLinear of integers, their scale and their zero point, if there is one."""
    integers, scale, zero = quantized
    if integers is None or scale is None:
        raise _refuse(patch.node, "an operand is missing")
    operands = [integers, scale] if zero is None else [integers, scale, zero]
    return patch.add("DequantizeLinear", *operands, **attributes)


def _finish(
    patch: Patch, value: ir.Value, scale: Operand, zero: Operand
) -> None:
    """Turn the node itself into the QuantizeLinear of a real value."""
    if scale is None:
        raise _refuse(patch.node, "the scale of its result is missing")
    operands = [value, scale] if zero is None else [value, scale, zero]
    patch.become("QuantizeLinear", *operands)


def _operands(node: ir.Node, count: int) -> list[Operand]:
    """Return so many operands, filled up with None."""
    missing = [None] * (count - len(node.inputs))
    return [*node.inputs, *missing][:count]


def _bias(patch: Patch, bias: Operand, scales: Sequence[Operand]) -> ir.Value:
    """Write the real bias; its scale is the product of both scales, and its zero point is 0."""
    x_scale, weight_scale = (stored_array(scale) for scale in scales)
    if x_scale is None or weight_scale is None or x_scale.size != 1:
        raise _refuse(
            patch.node,
            "its scales are computed, or its input has several; "
            "expected constants, and one of the input",
        )
    product = x_scale.astype(np.float32) * weight_scale.astype(np.float32)
    shape = (-1,) if product.size > 1 else ()
    scale = patch.constant(product.reshape(shape), "bias_scale")
    return _real(patch, (bias, scale, None), axis=0)


def _kept(node: ir.Node, *dropped: str) -> list[str]:
    """Return the names of a node's attributes, without those to drop."""
    return [name for name in node.attributes if name not in dropped]


def _conv(node: ir.Node) -> None:
    _refuse_channels_last(node)
    patch, operands = Patch(node, typed=False), _operands(node, 9)
    inputs = [
        _real(patch, operands[:3]),
        _real(patch, operands[3:6], axis=0),
    ]
    if operands[8] is not None:
        inputs.append(_bias(patch, operands[8], (operands[1], operands[4])))
    value = patch.add("Conv", *inputs)
    copy_attributes(node, value, *_kept(node, "channels_last"))
    _finish(patch, value, operands[6], operands[7])


def _matmul(node: ir.Node) -> None:
    patch, operands = Patch(node, typed=False), _operands(node, 8)
    a = _real(patch, operands[:3])
    b = _real(patch, operands[3:6], axis=-1)
    _finish(patch, patch.add("MatMul", a, b), operands[6], operands[7])


def _gemm(node: ir.Node) -> None:
    """QGemm -> Gemm; the result is quantized only if it has a scale."""
    patch, operands = Patch(node, typed=False), _operands(node, 9)
    axis = 0 if int_attribute(node, "transB", 0) else 1
    inputs = [
        _real(patch, operands[:3]),
        _real(patch, operands[3:6], axis=axis),
    ]
    if operands[6] is not None:
        alpha = float_attribute(node, "alpha", 1.0)
        if alpha != 1.0:
            raise _refuse(node, f"alpha={alpha} beside a bias; expected 1")
        inputs.append(_bias(patch, operands[6], (operands[1], operands[4])))
    scale, zero = operands[7:]
    if scale is None:
        kept = dict(node.attributes)
        patch.become("Gemm", *inputs)
        node.attributes.update(kept)
        return
    value = patch.add("Gemm", *inputs)
    copy_attributes(node, value, *node.attributes)
    _finish(patch, value, scale, zero)


def _binary(node: ir.Node) -> None:
    patch, operands = Patch(node, typed=False), _operands(node, 8)
    operator = node.op_type.removeprefix("QLinear")
    a, b = _real(patch, operands[:3]), _real(patch, operands[3:6])
    _finish(patch, patch.add(operator, a, b), operands[6], operands[7])


def _unary(node: ir.Node) -> None:
    _refuse_channels_last(node)
    patch, operands = Patch(node, typed=False), _operands(node, 5)
    operator = node.op_type.removeprefix("QLinear")
    value = patch.add(operator, _real(patch, operands[:3]))
    copy_attributes(node, value, *_kept(node, "channels_last", "opset"))
    _finish(patch, value, operands[3], operands[4])


def _softmax(node: ir.Node) -> None:
    """QLinearSoftmax -> Softmax of one axis.

    Before opset 13 it was the softmax of that axis and all after it: the last one of the
    flattened operand, whose shape is then restored.
    """
    axis = int_attribute(node, "axis", 1)
    if int_attribute(node, "opset", 13) >= 13 or axis == -1:
        _unary(node)
        return
    patch, operands = Patch(node, typed=False), _operands(node, 5)
    x = _real(patch, operands[:3])
    flat = patch.add("Flatten", x, axis=axis)
    value = patch.add("Softmax", flat, axis=-1)
    value = patch.add("Reshape", value, patch.add("Shape", x))
    _finish(patch, value, operands[3], operands[4])


def _concat(node: ir.Node) -> None:
    patch = Patch(node, typed=False)
    scale, zero, *rest = node.inputs
    if len(rest) % 3:
        raise _refuse(
            node,
            f"{len(rest)} operands behind its scale and zero point; "
            "expected three for each part",
        )
    starts = range(0, len(rest), 3)
    parts = [_real(patch, rest[start : start + 3]) for start in starts]
    value = patch.add("Concat", *parts)
    copy_attributes(node, value, *node.attributes)
    _finish(patch, value, scale, zero)


def _refuse_channels_last(node: ir.Node) -> None:
    if int_attribute(node, "channels_last", 0):
        raise _refuse(node, "channels_last=1; expected 0")


def _refuse(node: ir.Node, problem: str) -> Unsupported:
    return Unsupported(
        [f"{node.name or node.outputs[0].name} ({node.op_type}): {problem}"]
    )


_DECOMPOSE: dict[str, Callable[[ir.Node], None]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "QGemm": _gemm,
    "QLinearConcat": _concat,
    "QLinearSoftmax": _softmax,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _binary),
    **dict.fromkeys(
        (
            "QLinearAveragePool",
            "QLinearGlobalAveragePool",
            "QLinearLeakyRelu",
            "QLinearSigmoid",
        ),
        _unary,
    ),
}

MOST_PARTS = 1 << 16  # the most operands of a concatenation

# Operators of com.microsoft, with the least and the greatest number of operands.
OF_MICROSOFT: dict[str, tuple[int, int]] = {
    "DequantizeLinear": (2, 3),
    "GatherBlockQuantized": (3, 4),
    "QGemm": (6, 9),
    "QLinearAdd": (7, 8),
    "QLinearAveragePool": (4, 5),
    "QLinearConcat": (5, MOST_PARTS),
    "QLinearConv": (8, 9),
    "QLinearGlobalAveragePool": (5, 5),
    "QLinearLeakyRelu": (4, 5),
    "QLinearMul": (7, 8),
    "QLinearSigmoid": (4, 5),
    "QLinearSoftmax": (5, 5),
    "QuantizeLinear": (2, 3),
}
