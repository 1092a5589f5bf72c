"""Operators that compute with a model's integers (QLinearConv and its like), as float ones that DequantizeLinear feeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import Spelling

Operand = ir.Value | None
_MICROSOFT = "com.microsoft"


def decompose_integer_operators(model: ir.Model) -> None:
    """In place. Raises Unsupported for forms that have no float ones."""
    for node in [
        node
        for node in model.graph
        if node.op_type in _DECOMPOSE and node.domain in ("", "ai.onnx", _MICROSOFT)
    ]:
        node.domain = ""
        _DECOMPOSE[node.op_type](node)


def _real(
    s: Spelling, integers: Operand, scale: Operand, zero: Operand, **attributes: int
) -> ir.Value:
    if integers is None or scale is None:
        raise _refuse(s.node, "an operand is missing")
    operands = [integers, scale, *([] if zero is None else [zero])]
    return s.add("DequantizeLinear", *operands, **attributes)


def _finish(s: Spelling, value: ir.Value, scale: Operand, zero: Operand) -> None:
    if scale is None:
        raise _refuse(s.node, "the scale of its result is missing")
    s.finish("QuantizeLinear", value, scale, *([] if zero is None else [zero]))


def _kept(node: ir.Node, *left: str) -> dict[str, ir.Attr]:
    return {name: item for name, item in node.attributes.items() if name not in left}


def _computed(
    s: Spelling, operator: str, *inputs: Operand, kept: dict[str, ir.Attr] | None = None
) -> ir.Value:
    value = s.add(operator, *inputs)
    maker = value.producer()
    assert maker is not None
    maker.attributes.update(kept or {})
    return value


def _operands(node: ir.Node, count: int) -> list[Operand]:
    return [*node.inputs, *[None] * count][:count]


def _bias(s: Spelling, bias: Operand, scales: Sequence[Operand]) -> ir.Value:
    """Counted in products of both scales, and without a zero point."""
    parts = [
        None if scale is None else ir.convenience.get_const_tensor(scale)
        for scale in scales
    ]
    arrays = [part.numpy() for part in parts if part is not None]
    if len(arrays) != len(scales) or arrays[0].size != 1:
        raise _refuse(
            s.node,
            "its scales are computed, or its input has several; expected constants, and one of the input",
        )
    product = (arrays[0].astype(np.float32) * arrays[1].astype(np.float32)).reshape(-1)
    return _real(
        s,
        bias,
        s.constant(product if product.size > 1 else product.reshape(())),
        None,
        axis=0,
    )


def _conv(node: ir.Node) -> None:
    _refuse_channels_last(node)
    s, kept = Spelling(node), _kept(node, "channels_last")
    x, xs, xz, w, ws, wz, ys, yz, b = _operands(node, 9)
    inputs = [_real(s, x, xs, xz), _real(s, w, ws, wz, axis=0)]
    if b is not None:
        inputs.append(_bias(s, b, (xs, ws)))
    _finish(s, _computed(s, "Conv", *inputs, kept=kept), ys, yz)


def _matmul(node: ir.Node) -> None:
    s = Spelling(node)
    a, as_, az, b, bs, bz, ys, yz = _operands(node, 8)
    _finish(
        s, s.add("MatMul", _real(s, a, as_, az), _real(s, b, bs, bz, axis=-1)), ys, yz
    )


def _gemm(node: ir.Node) -> None:
    """Its result is quantised only where it has a scale."""
    s, kept = Spelling(node), _kept(node)
    a, as_, az, b, bs, bz, c, ys, yz = _operands(node, 9)
    axis = (
        0 if "transB" in node.attributes and node.attributes["transB"].as_int() else 1
    )
    inputs = [_real(s, a, as_, az), _real(s, b, bs, bz, axis=axis)]
    if c is not None:
        alpha = (
            node.attributes["alpha"].as_float() if "alpha" in node.attributes else 1.0
        )
        if alpha != 1.0:
            raise _refuse(node, f"alpha={alpha} beside a bias; expected 1")
        inputs.append(_bias(s, c, (as_, bs)))
    if ys is not None:
        _finish(s, _computed(s, "Gemm", *inputs, kept=kept), ys, yz)
        return
    s.finish("Gemm", *inputs)
    node.attributes.update(kept)


def _binary(node: ir.Node) -> None:
    s, operator = Spelling(node), node.op_type.removeprefix("QLinear")
    a, as_, az, b, bs, bz, ys, yz = _operands(node, 8)
    _finish(s, s.add(operator, _real(s, a, as_, az), _real(s, b, bs, bz)), ys, yz)


def _unary(node: ir.Node) -> None:
    _refuse_channels_last(node)
    s, kept = Spelling(node), _kept(node, "channels_last", "opset")
    x, xs, xz, ys, yz = _operands(node, 5)
    _finish(
        s,
        _computed(
            s, node.op_type.removeprefix("QLinear"), _real(s, x, xs, xz), kept=kept
        ),
        ys,
        yz,
    )


def _softmax(node: ir.Node) -> None:
    """Of one axis; before opset 13 of all behind it, too."""
    opset = node.attributes["opset"].as_int() if "opset" in node.attributes else 13
    if opset < 13 and (
        "axis" not in node.attributes or node.attributes["axis"].as_int() != -1
    ):
        raise _refuse(
            node,
            f"opset={opset} and another axis than the last; expected opset=13 or axis=-1",
        )
    _unary(node)


def _concat(node: ir.Node) -> None:
    s, kept = Spelling(node), _kept(node)
    ys, yz, *rest = node.inputs
    if len(rest) % 3:
        raise _refuse(
            node,
            f"{len(rest)} operands behind its scale and zero point; expected three for each part",
        )
    parts = [_real(s, *rest[place : place + 3]) for place in range(0, len(rest), 3)]
    _finish(s, _computed(s, "Concat", *parts, kept=kept), ys, yz)


def _refuse_channels_last(node: ir.Node) -> None:
    if "channels_last" in node.attributes and node.attributes["channels_last"].as_int():
        raise _refuse(node, "channels_last=1; expected 0")


def _refuse(node: ir.Node, trouble: str) -> Unsupported:
    return Unsupported(
        [f"{node.name or node.outputs[0].name} ({node.op_type}): {trouble}"]
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

OF_ONNX = ("QLinearConv", "QLinearMatMul")
MOST_PARTS = 1 << 16  # operands of a concatenation

# Of com.microsoft: the least and the most of their operands.
OF_MICROSOFT: dict[str, tuple[int, int]] = {
    "DequantizeLinear": (2, 3),
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
