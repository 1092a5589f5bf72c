"""An element-wise function of one value, made of nodes of the float graph.

It is evaluated in decimal for one number, or as enclosures for many numbers at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, reduce

import numpy as np
import onnx_ir as ir

from mrt.exact import enclosed_functions
from mrt.exact.enclosure import Enclosure
from mrt.exact.functions import BINARY, CURVED, UNARY
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    is_product_of_computed,
    name_of,
)


@dataclass(frozen=True)
class Curve:
    """A value that is a function of the value `root`: the nodes to evaluate, in order."""

    root: ir.Value
    nodes: tuple[ir.Node, ...]

    @property
    def is_curved(self) -> bool:
        """Whether the function needs a lookup table: a curved operator, or a clip times what it clips (HardSwish)."""
        operators = {node.op_type for node in self.nodes}
        if operators & CURVED:
            return True
        return "Clip" in operators and any(
            map(is_product_of_computed, self.nodes)
        )

    @property
    def kind(self) -> ir.DataType | None:
        """Float or bool; a boolean curve is written as comparisons, not as a table."""
        return self.nodes[-1].outputs[0].dtype

    @property
    def rises(self) -> bool:
        """Whether the function is proven never to fall."""
        return all(enclosed_functions.rises(node) for node in self.nodes)

    @property
    def recipe(self) -> Hashable:
        """Return the function without names: equal for the same function of another root."""
        places: dict[str, object] = {name_of(self.root): 0}
        for name, number in self._constants.items():
            places[name] = ("constant", number)
        steps: list[Hashable] = []
        for index, node in enumerate(self.nodes, 1):
            operands = tuple(
                places[name_of(operand)] for operand in node.inputs
            )
            items = node.attributes.items()
            attributes = sorted(
                (name, str(attribute.value)) for name, attribute in items
            )
            steps.append((node.op_type, operands, tuple(attributes)))
            places[name_of(node.outputs[0])] = index
        return tuple(steps)

    def exactly(self, real: Decimal) -> Decimal:
        """Evaluate the curve for one real, to 34 digits; NaN where it is undefined."""
        constants = self._constants.items()
        values = {name: Decimal(number) for name, number in constants}
        values[name_of(self.root)] = real
        for node in self.nodes:
            operands = [values[name_of(operand)] for operand in node.inputs]
            result = _apply(node, operands)
            values[name_of(node.outputs[0])] = result
        return result

    def enclosed(self, reals: Enclosure) -> Enclosure:
        """Enclose the results of `exactly` for many reals."""
        constants = self._constants.items()
        values = {name: Enclosure.of(number) for name, number in constants}
        values[name_of(self.root)] = reals
        with np.errstate(all="ignore"):
            for node in self.nodes:
                operands = [values[name_of(operand)] for operand in node.inputs]
                result = _enclose(node, operands)
                values[name_of(node.outputs[0])] = result
        return result

    def without_affine(self) -> tuple[Curve, float, float]:
        """Return the curve c without the products by constants and the constants added last, and a and b of a c + b."""
        end, gain, offset = len(self.nodes), 1.0, 0.0
        while end > 1 and _is_affine_step(*self.nodes[end - 2 : end]):
            array = constant_of(self.nodes[end - 1].inputs[1])
            assert array is not None, "it would be no such step"
            number = float(array.item())
            if self.nodes[end - 1].op_type == "Mul":
                gain *= number
            else:
                offset += gain * number
            end -= 1
        return replace(self, nodes=self.nodes[:end]), gain, offset

    @cached_property
    def _constants(self) -> dict[str, float]:
        """The number in each constant operand, by name."""
        constants: dict[str, float] = {}
        for operand in (value for node in self.nodes for value in node.inputs):
            array = None if operand is None else constant_of(operand)
            if array is not None:
                constants[name_of(operand)] = float(array.ravel()[0])
        return constants


def _is_affine_step(before: ir.Node, node: ir.Node) -> bool:
    """Whether a node multiplies the result of the one before by a constant, or adds one."""
    if node.op_type not in ("Add", "Mul"):
        return False
    x, number = node.inputs
    return x is before.outputs[0] and is_constant(number)


def _apply(node: ir.Node, operands: list[Decimal]) -> Decimal:
    """Evaluate one node in decimal; NaN if any operand is NaN that a Where does not drop."""
    if node.op_type == "Where" and not operands[0].is_nan():
        return operands[1] if operands[0] else operands[2]
    if any(operand.is_nan() for operand in operands):
        return Decimal("NaN")
    if node.op_type == "Clip":
        x, low, high = operands
        return min(max(x, low), high)
    if node.op_type in UNARY:
        return UNARY[node.op_type](node, operands[0])
    return BINARY[node.op_type](operands[0], operands[1])


def _enclose(node: ir.Node, operands: list[Enclosure]) -> Enclosure:
    """Enclose the values of one node: undefined where any operand is, unknown where any is."""
    if node.op_type == "Where":
        return operands[0].choose(operands[1], operands[2])
    if node.op_type == "Clip":
        x, low, high = operands
        result = x.at_least(low).at_most(high)
    elif node.op_type in UNARY:
        result = enclosed_functions.UNARY[node.op_type](node, operands[0])
    else:
        result = enclosed_functions.BINARY[node.op_type](
            operands[0], operands[1]
        )
    unknown = reduce(np.logical_or, [operand.unknown for operand in operands])
    undefined = result.undefined
    for operand in operands:
        undefined = np.logical_or(undefined, operand.undefined)
    enclosure = result.where(~(unknown | undefined))
    return replace(enclosure, undefined=undefined)
