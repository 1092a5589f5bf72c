"""Estimate the power (mean square) of every value of a graph whose inputs have power 1.

Invented statistics of a BatchNormalization are made from it, so that a deep network
neither explodes nor fades. A rough estimate is enough. It matters more that it is the
same on every machine: only + - * / and sqrt are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import onnx_ir as ir

LEAST, MOST = 1e-12, 1e12
HE_GAIN = 2.0  # gain of a product with weights of variance 2 / fan-in
GATE_STEPS = (
    "Add",
    "Mul",
    "Div",
    "Clip",
    "Sigmoid",
    "HardSigmoid",
)  # the steps of a gate, each with a constant
MOST_GATE_STEPS = 5

PowerRule = Callable[[ir.Node, list[float]], float]


def powers(
    nodes: Iterable[ir.Node], first: Mapping[ir.Value, float]
) -> dict[ir.Value, float]:
    """Return the power of every value.

    `first` holds the powers of inputs and parameters; any other value that no node
    computes has the power of its constant, or else 1.
    """
    powers_by_value = dict(first)
    for node in nodes:
        inputs = [
            powers_by_value[value]
            if value in powers_by_value
            else _constant(value)
            for value in node.inputs
            if value is not None
        ]
        estimate = RULES.get(node.op_type, _greatest)(node, inputs)
        for output in node.outputs:
            powers_by_value[output] = min(max(estimate, LEAST), MOST)
    return powers_by_value


def _constant(value: ir.Value) -> float:
    """Return the power of a constant: the square of its largest magnitude."""
    if (
        value.const_value is None
        or not value.const_value.dtype.is_floating_point()
    ):
        return 1.0
    array = value.const_value.numpy()
    largest = float(np.abs(array).max()) if array.size else 0.0
    return largest * largest


def _greatest(node: ir.Node, inputs: list[float]) -> float:
    return max(inputs, default=1.0)


def _weighted(node: ir.Node, inputs: list[float]) -> float:
    """Return the power of a product with weights drawn to have this gain, and a bias."""
    return HE_GAIN * inputs[0] + sum(inputs[2:])


def _product(node: ir.Node, inputs: list[float]) -> float:
    """Return the power of a product of independent values.

    A value times a gate made of itself (swish, hard-swish) keeps one half, as after Relu.
    """
    for data, gate in ((0, 1), (1, 0)):
        if _is_gate_of(node.inputs[gate], node.inputs[data]):
            return inputs[data] / 2
    return math.prod(inputs)


def _is_gate_of(value: ir.Value | None, data: ir.Value | None) -> bool:
    """Whether `value` is a sigmoid or a clipped linear function of `data`.

    Producers are followed back over at most MOST_GATE_STEPS nodes.
    """
    bounded = False
    for _ in range(MOST_GATE_STEPS):
        maker = None if value is None else value.producer()
        if maker is None or maker.op_type not in GATE_STEPS:
            return False
        bounded |= maker.op_type in ("Clip", "Sigmoid", "HardSigmoid")
        value = maker.inputs[0]
        if value is data:
            return bounded
    return False


def _sum(node: ir.Node, inputs: list[float]) -> float:
    return sum(inputs)


def _quotient(node: ir.Node, inputs: list[float]) -> float:
    return inputs[0] / max(inputs[1], LEAST)


def _half(node: ir.Node, inputs: list[float]) -> float:
    """Return half the power, which a function like Relu keeps of numbers on both sides of 0.

    A residual sum may not lie on both sides of 0: each of its terms may be the result of
    another Relu. All of its power is counted, because too low an estimate grows with
    every block and too high a one does not.
    """
    value = node.inputs[0]
    maker = None if value is None else value.producer()
    return (
        inputs[0]
        if maker is not None and maker.op_type in ("Add", "Sum")
        else inputs[0] / 2
    )


def _leaky(node: ir.Node, inputs: list[float]) -> float:
    slope = (
        inputs[1]
        if len(inputs) > 1
        else node.attributes.get_float("alpha", 0.01) ** 2
    )
    kept = _half(node, inputs)
    return kept + (inputs[0] - kept) * slope


def _clipped(node: ir.Node, inputs: list[float]) -> float:
    return min(inputs[0], max(inputs[1:], default=MOST))


def _bounded(node: ir.Node, inputs: list[float]) -> float:
    return inputs[0] / (1 + inputs[0])


def _fixed(power: float) -> PowerRule:
    return lambda node, inputs: power


RULES: Mapping[str, PowerRule] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm"), _weighted),
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    "Mul": _product,
    "Div": _quotient,
    "Sqrt": lambda node, inputs: math.sqrt(inputs[0]),
    **dict.fromkeys(
        ("Relu", "Elu", "Gelu", "Selu", "Softplus", "HardSwish", "Mish"), _half
    ),
    **dict.fromkeys(("LeakyRelu", "PRelu"), _leaky),
    "Clip": _clipped,
    **dict.fromkeys(("Tanh", "Softsign"), _bounded),
    **dict.fromkeys(("Sigmoid", "HardSigmoid"), _fixed(0.3)),
    **dict.fromkeys(("Softmax",), _fixed(0.1)),
    # operators with statistics of their own, or with statistics made from this estimate
    **dict.fromkeys(
        (
            "BatchNormalization",
            "LayerNormalization",
            "InstanceNormalization",
            "GroupNormalization",
        ),
        _fixed(1.0),
    ),
}
