"""Between which numbers a value lies whatever the inputs are, as far as the operator says that made it."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

Range = tuple[float, float]
ANYTHING: Range = (-math.inf, math.inf)


def range_of(value: ir.Value | None) -> Range:
    """The least and the greatest number; infinite where nothing is known."""
    chain = []
    while (
        value is not None
        and (node := value.producer()) is not None
        and node.op_type in _STEPS
        and node.inputs
    ):
        chain.append(node)
        value = node.inputs[0]
    known = ANYTHING
    for node in reversed(chain):
        known = _STEPS[node.op_type](node, known)
    return known


def _same(node: ir.Node, known: Range) -> Range:
    return known


def _with_zero(node: ir.Node, known: Range) -> Range:
    """Padding may take part."""
    return min(known[0], 0.0), max(known[1], 0.0)


def _relu(node: ir.Node, known: Range) -> Range:
    return max(known[0], 0.0), max(known[1], 0.0)


def _clip(node: ir.Node, known: Range) -> Range:
    """Its limits, operands or, in old models, attributes."""
    low, high = (_limit(node, index, name) for index, name in ((1, "min"), (2, "max")))
    return max(known[0], -math.inf if low is None else low), min(
        known[1], math.inf if high is None else high
    )


def _limit(node: ir.Node, index: int, name: str) -> float | None:
    if name in node.attributes:
        return node.attributes[name].as_float()
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return (
        None
        if tensor is None or tensor.size != 1
        else float(tensor.numpy().reshape(()))
    )


_STEPS: dict[str, Callable[[ir.Node, Range], Range]] = {
    **dict.fromkeys(
        (
            "Flatten",
            "Identity",
            "MaxPool",
            "Reshape",
            "Slice",
            "Squeeze",
            "Transpose",
            "Unsqueeze",
        ),
        _same,
    ),
    **dict.fromkeys(
        ("GlobalAveragePool", "GlobalMaxPool", "ReduceMax", "ReduceMean", "ReduceMin"),
        _same,
    ),
    **dict.fromkeys(("AveragePool",), _with_zero),
    **dict.fromkeys(
        ("Sigmoid", "Softmax", "HardSigmoid"), lambda node, known: (0.0, 1.0)
    ),
    "Tanh": lambda node, known: (-1.0, 1.0),
    "Relu": _relu,
    "Clip": _clip,
}
