"""The interval of a value for all inputs, as far as it follows from the operators before it."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from mrt.frontend.onnx.quantized.stored_weights import stored_array
from mrt.graph.values import operand

Interval = tuple[float, float]
UNBOUNDED: Interval = (-math.inf, math.inf)


def interval_of(value: ir.Value | None) -> Interval:
    """Return the least and the greatest number; infinite where no operator bounds them."""
    chain: list[ir.Node] = []
    node = None if value is None else value.producer()
    while node is not None and node.op_type in _STEPS and node.inputs:
        chain.append(node)
        previous = node.inputs[0]
        node = None if previous is None else previous.producer()
    interval = UNBOUNDED
    for node in reversed(chain):
        interval = _STEPS[node.op_type](node, interval)
    return interval


def _same(node: ir.Node, interval: Interval) -> Interval:
    return interval


def _with_zero(node: ir.Node, interval: Interval) -> Interval:
    """Return the hull with 0, because a window may include padding."""
    return min(interval[0], 0.0), max(interval[1], 0.0)


def _relu(node: ir.Node, interval: Interval) -> Interval:
    return max(interval[0], 0.0), max(interval[1], 0.0)


def _clip(node: ir.Node, interval: Interval) -> Interval:
    """Return the interval within the bounds, which are operands or, in old models, attributes."""
    low = _bound(node, 1, "min", -math.inf)
    high = _bound(node, 2, "max", math.inf)
    return max(interval[0], low), min(interval[1], high)


def _bound(node: ir.Node, index: int, name: str, default: float) -> float:
    if name in node.attributes:
        return node.attributes[name].as_float()
    array = stored_array(operand(node, index))
    if array is None or array.size != 1:
        return default
    return float(array.reshape(()))


_STEPS: dict[str, Callable[[ir.Node, Interval], Interval]] = {
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
        (
            "GlobalAveragePool",
            "GlobalMaxPool",
            "ReduceMax",
            "ReduceMean",
            "ReduceMin",
        ),
        _same,
    ),
    **dict.fromkeys(("AveragePool",), _with_zero),
    **dict.fromkeys(
        ("Sigmoid", "Softmax", "HardSigmoid"), lambda node, interval: (0.0, 1.0)
    ),
    "Tanh": lambda node, interval: (-1.0, 1.0),
    "Relu": _relu,
    "Clip": _clip,
}
