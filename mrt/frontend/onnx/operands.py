"""Refuse operands whose shapes do not fit, where the library's shape inference accepts them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.ranks import RANK_CHECKS, empty_operand
from mrt.graph.values import int_attribute, ints_attribute, operand, shape_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Operands:
    """The shapes of a node's operands, () for one that is absent or unknown."""

    node: ir.Node
    shapes: list[Shape]
    result: Shape | None


def check_operands(model: ir.Model) -> None:
    """Raise BadModel for the first node whose operands do not fit."""
    for node in model.graph:
        problem = _problem(node)
        if problem:
            name = node.name or node.outputs[0].name
            raise BadModel(f"{name} ({node.op_type}): {problem}")


def _problem(node: ir.Node) -> str | None:
    if problem := empty_operand(node):
        return problem
    if rank_check := RANK_CHECKS.get(node.op_type):
        shapes = _all_shapes(node)
        return None if shapes is None else rank_check(node, shapes)
    check, operands = _CHECKS.get(node.op_type), _operands(node)
    return None if check is None or operands is None else check(operands)


def _all_shapes(node: ir.Node) -> list[Shape] | None:
    """Return the shapes of the operands, () for one left empty, if all the others are known."""
    shapes: list[Shape] = []
    for value in node.inputs:
        shape = () if value is None else shape_of(value)
        if shape is None:
            return None
        shapes.append(shape)
    return shapes


def _operands(node: ir.Node) -> _Operands | None:
    """Return the shapes of the operands, if those of the first two are known."""
    shapes = [shape_of(value) for value in node.inputs]
    if None in shapes[:2]:
        return None
    operand_shapes = [shape or () for shape in shapes]
    return _Operands(node, operand_shapes, shape_of(node.outputs[0]))


def _convolution(operands: _Operands) -> str | None:
    node = operands.node
    x, weights, *bias = operands.shapes
    group = int_attribute(node, "group", 1)
    if group < 1 or len(x) < 3 or len(weights) != len(x):
        return (
            f"input {list(x)}, weights {list(weights)} and group={group} "
            "do not go together"
        )
    inputs = weights[0]
    outputs = weights[1] * group
    if node.op_type == "Conv":
        inputs = weights[1] * group
        outputs = weights[0]
    if weights[0] % group:
        return f"group={group} does not divide {weights[0]} channels"
    if x[1] != inputs:
        return (
            f"its input has {x[1]} channels; its weights {list(weights)} "
            f"with group={group} expect {inputs}"
        )
    kernel = ints_attribute(node, "kernel_shape")
    if kernel is not None and kernel != weights[2:]:
        return f"kernel_shape={list(kernel)}; its weights are {list(weights)}"
    if bias and bias[0] not in ((), (outputs,)):
        return f"its bias has shape {list(bias[0])}; expected [{outputs}]"
    return None


def _gemm(operands: _Operands) -> str | None:
    if operand(operands.node, 2) is None:
        return None
    c = operands.shapes[2]
    result = operands.result
    fits = result is None or _agrees(c, result)
    if fits and len(c) <= 2:
        return None
    expected = list(result or ())
    return f"C has shape {list(c)}; expected one that broadcasts to {expected}"


def _reshape(operands: _Operands) -> str | None:
    x = operands.shapes[0]
    result = operands.result
    if result is None or math.prod(result) == math.prod(x):
        return None
    return (
        f"its input {list(x)} has another number of elements "
        f"than its result {list(result)}"
    )


def _p_relu(operands: _Operands) -> str | None:
    x, slope = operands.shapes
    if _broadcasts(slope, x):
        return None
    return f"slope {list(slope)} does not broadcast to its input {list(x)}"


def _layer_normalization(operands: _Operands) -> str | None:
    x, *others = operands.shapes
    axis = int_attribute(operands.node, "axis", -1)
    normalized = x[axis % len(x) :] if x else ()
    for role, shape in zip(("scale", "bias"), others, strict=False):
        if not _broadcasts(shape, normalized):
            return (
                f"{role} {list(shape)} does not broadcast to {list(normalized)}"
            )
    return None


def _broadcasts(shape: Shape, target: Shape) -> bool:
    """Return whether a shape broadcasts to a target without making it larger."""
    return len(shape) <= len(target) and _agrees(shape, target)


def _agrees(shape: Shape, target: Shape) -> bool:
    """Return whether each of the last sizes is 1 or the target's."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return all(size in (1, length) for size, length in pairs)


_CHECKS: dict[str, Callable[[_Operands], str | None]] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _gemm,
    "Reshape": _reshape,
    "PRelu": _p_relu,
    "LayerNormalization": _layer_normalization,
}
