"""Weights that do not suit their input, which the library's shape inference lets pass."""

from __future__ import annotations

import onnx_ir as ir

from mrt.errors import BadModel


def check_operands(model: ir.Model) -> None:
    """Raise BadModel for the first Conv, ConvTranspose, BatchNormalization or Gemm whose operands do not fit."""
    for node in model.graph:
        shapes = [_shape(value) for value in node.inputs]
        if node.op_type not in _CHECKS or any(shape is None for shape in shapes[:2]):
            continue
        trouble = _CHECKS[node.op_type](node, [shape or () for shape in shapes])
        if trouble:
            raise BadModel(f"{node.name or node.outputs[0].name} ({node.op_type}): {trouble}")


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


def _batch_norm(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    x, *parameters = shapes
    wrong = [shape for shape in parameters if len(x) < 2 or shape != (x[1],)]
    return f"a parameter of shape {list(wrong[0])} does not suit its input {list(x)}" if wrong else None


def _gemm(node: ir.Node, shapes: list[tuple[int, ...]]) -> str | None:
    a, b = shapes[0], shapes[1]
    if len(a) != 2 or len(b) != 2:
        return f"operands {list(a)} and {list(b)}; expected two matrices"
    inner = a[0 if _integer(node, "transA", 0) else 1], b[1 if _integer(node, "transB", 0) else 0]
    return None if inner[0] == inner[1] else f"operands {list(a)} and {list(b)} do not fit together"


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(str(size)) for size in value.shape)


_CHECKS = {"Conv": _convolution, "ConvTranspose": _convolution, "BatchNormalization": _batch_norm, "Gemm": _gemm}
