"""Weights that do not suit their input, which the library's shape inference lets pass."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.errors import BadModel


def check_operands(model: ir.Model) -> None:
    """Raise BadModel for the first node whose operands do not fit."""
    for node in model.graph:
        shapes = [_shape(value) for value in node.inputs]
        if node.op_type not in _CHECKS or any(shape is None for shape in shapes[:2]):
            continue
        trouble = _CHECKS[node.op_type](node, [shape or () for shape in shapes])
        if trouble:
            raise BadModel(
                f"{node.name or node.outputs[0].name} ({node.op_type}): {trouble}"
            )


def _convolution(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    x, weights, *bias = shapes
    group = _integer(node, "group", 1)
    if group < 1 or len(x) < 3 or len(weights) != len(x):
        return f"input {list(x)}, weights {list(weights)} and group={group} do not go together"
    if node.op_type == "Conv":
        expected, outputs, divided = weights[1] * group, weights[0], weights[0]
    else:
        expected, outputs, divided = weights[0], weights[1] * group, weights[0]
    if divided % group:
        return f"group={group} does not divide {divided} channels"
    if x[1] != expected:
        return f"its input has {x[1]} channels; its weights {list(weights)} with group={group} expect {expected}"
    kernel = node.attributes.get("kernel_shape")
    if kernel is not None and tuple(kernel.as_ints()) != weights[2:]:
        return f"kernel_shape={list(kernel.as_ints())}; its weights are {list(weights)}"
    if bias and bias[0] not in ((), (outputs,)):
        return f"its bias has shape {list(bias[0])}; expected [{outputs}]"
    return None


def _gemm(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    result, c = _shape(node.outputs[0]), shapes[2] if len(shapes) > 2 else ()
    fits = result is None or all(
        small in (1, large)
        for small, large in zip(reversed(c), reversed(result), strict=False)
    )
    return (
        None
        if fits and len(c) <= 2
        else f"C has shape {list(c)}; expected one that broadcasts to {list(result or ())}"
    )


def _reshape(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    result = _shape(node.outputs[0])
    if result is None or math.prod(result) == math.prod(shapes[0]):
        return None
    return f"its input {list(shapes[0])} has another number of elements than its result {list(result)}"


def _p_relu(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    x, slope = shapes
    fits = len(slope) <= len(x) and all(
        s in (1, n) for s, n in zip(reversed(slope), reversed(x), strict=False)
    )
    return (
        None
        if fits
        else f"slope {list(slope)} does not broadcast to its input {list(x)}"
    )


def _layer_norm(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    x, *others = shapes
    axis = _integer(node, "axis", -1)
    rest = x[axis % len(x) :] if x else ()
    for role, shape in zip(("scale", "bias"), others, strict=False):
        if len(shape) > len(rest) or any(
            s not in (1, n)
            for s, n in zip(reversed(shape), reversed(rest), strict=False)
        ):
            return f"{role} {list(shape)} does not broadcast to {list(rest)}"
    return None


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(str(size)) for size in value.shape)


_CHECKS = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _gemm,
    "Reshape": _reshape,
    "PRelu": _p_relu,
    "LayerNormalization": _layer_norm,
}
