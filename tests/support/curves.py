"""Curves for tests.

Every element-wise operator occurs once. Besides, there are chains in which errors grow,
terms cancel or results saturate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from mrt.exact.functions import BINARY, UNARY
from mrt.quantize.curves.curve import Curve

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Elu": {"alpha": 1.5},
    "Celu": {"alpha": 0.7},
    "Selu": {"alpha": 1.67, "gamma": 1.05},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Gelu": {"approximate": "none"},
    "ThresholdedRelu": {"alpha": 1.0},
    "Shrink": {"lambd": 0.5, "bias": 0.25},
    "Cast": {"to": int(ir.DataType.FLOAT)},
}


class CurveOf:
    """Nodes added one by one to a root `x`; operands are names of values or numbers."""

    def __init__(self) -> None:
        self.root = ir.Value(name="x")
        self._values: dict[str, ir.Value] = {"x": self.root}
        self._nodes: list[ir.Node] = []

    def add(
        self, operator: str, *operands: str | float, **attributes: Any
    ) -> str:
        inputs = [
            self._values[item] if isinstance(item, str) else _constant(item)
            for item in operands
        ]
        output = ir.Value(name=f"v{len(self._nodes)}")
        given = {
            name: ir.Attr(name, _kind(value), value)
            for name, value in attributes.items()
        }
        self._nodes.append(
            ir.Node(
                "",
                operator,
                inputs,
                attributes=list(given.values()),
                outputs=[output],
            )
        )
        self._values[str(output.name)] = output
        return str(output.name)

    def curve(self) -> Curve:
        return Curve(self.root, tuple(self._nodes))


def one(operator: str, *operands: str | float, **attributes: Any) -> Curve:
    """Return the curve of one node, of the root unless other operands are named."""
    curve = CurveOf()
    curve.add(
        operator,
        *(operands or ("x",)),
        **(ATTRIBUTES.get(operator, {}) | attributes),
    )
    return curve.curve()


def chain(*steps: tuple[Any, ...]) -> Curve:
    """Return the curve of a chain of nodes.

    As an operand, `-1` means the last result, `-2` the one before it.
    """
    curve, names = CurveOf(), ["x"]
    for operator, *operands in steps:
        named = [
            names[int(item)] if item in ("-1", "-2") else item
            for item in operands
        ]
        names.append(
            curve.add(operator, *named, **ATTRIBUTES.get(operator, {}))
        )
    return curve.curve()


def _constant(number: float) -> ir.Value:
    array = np.asarray(number, np.float32)
    return ir.Value(name=f"c{number}", const_value=ir.tensor(array))


def _kind(value: object) -> ir.AttributeType:
    kinds = {
        int: ir.AttributeType.INT,
        float: ir.AttributeType.FLOAT,
        str: ir.AttributeType.STRING,
    }
    return kinds[type(value)]


SILU = chain(("Sigmoid", "x"), ("Mul", "x", "-1"))

CURVES: dict[str, Curve] = {
    **{operator: one(operator) for operator in UNARY},
    **{f"{operator} by 0.7": one(operator, "x", 0.7) for operator in BINARY},
    **{f"{operator} of -3": one(operator, -3.0, "x") for operator in BINARY},
    "Cast to truth": one("Cast", to=int(ir.DataType.BOOL)),
    "Gelu by tanh": one("Gelu", approximate="tanh"),
    "Elu upside down": one("Elu", alpha=-2.0),
    "Clip": one("Clip", "x", -0.3, 1.7),
    "Where": chain(("Greater", "x", 0.5), ("Where", "-1", "x", -0.25)),
    "cube": one("Pow", "x", 3.0),
    "inverse square": one("Pow", "x", -2.0),
    "power 0": one("Pow", "x", 0.0),
    "powers of 2": one("Pow", 2.0, "x"),
    "powers of minus 0": chain(("Clip", "x", -0.0, 1.0), ("Pow", "-1", "x")),
    "power of a quarter": chain(("Relu", "x"), ("Pow", "-1", 0.25)),
    "SiLU": SILU,
    "SiLU spelled out": chain(
        ("Neg", "x"), ("Exp", "-1"), ("Add", "-1", 1.0), ("Div", "x", "-1")
    ),
    "what tanh leaves of 1": chain(("Tanh", "x"), ("Sub", 1.0, "-1")),
    "what cancels": chain(("Exp", "x"), ("Sub", "-1", 1.0), ("Div", "-1", "x")),
    "Exp of Exp": chain(("Exp", "x"), ("Exp", "-1")),
    "Sin of Exp": chain(("Exp", "x"), ("Sin", "-1")),
    "Log of Sigmoid": chain(("Sigmoid", "x"), ("Log", "-1")),
    "Tanh of a clip": chain(("Clip", "x", -1.0, 1.0), ("Tanh", "-1")),
    "whole part": chain(
        ("Div", "x", 3.0),
        ("Floor", "-1"),
        ("Mul", "-1", 3.0),
        ("Sub", "x", "-1"),
    ),
    "no number, hidden": chain(
        ("Sqrt", "x"), ("Max", "-1", 3.0), ("Greater", "-1", 2.0)
    ),
}
