"""An element-wise function of one value, made of nodes: in decimal, number by number, and enclosed, of many at once."""

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
from mrt.graph.canonical_values import constant_of, name_of


@dataclass(frozen=True)
class Curve:
    """A value that is a function of one other value: the nodes to evaluate, in order, from `root` on."""

    root: ir.Value
    nodes: tuple[ir.Node, ...]

    @property
    def curved(self) -> bool:
        """Whether a table is needed."""
        return any(node.op_type in CURVED for node in self.nodes)

    @property
    def kind(self) -> ir.DataType | None:
        """Floats or truths; a truth alone is compared, not looked up."""
        return self.nodes[-1].outputs[0].dtype

    @property
    def rises(self) -> bool:
        """Whether it is certain never to fall."""
        return all(map(enclosed_functions.rises, self.nodes))

    @property
    def recipe(self) -> Hashable:
        """What it computes, without names: equal for the same function of another root."""
        places: dict[str, object] = {name_of(self.root): 0}
        places |= {
            name: ("constant", number) for name, number in self._constants.items()
        }
        steps: list[Hashable] = []
        for index, node in enumerate(self.nodes, 1):
            operands = tuple(places[name_of(operand)] for operand in node.inputs)
            numbers = sorted(
                (name, str(attribute.value))
                for name, attribute in node.attributes.items()
            )
            steps.append((node.op_type, operands, tuple(numbers)))
            places[name_of(node.outputs[0])] = index
        return tuple(steps)

    def exactly(self, real: Decimal) -> Decimal:
        """Its value to 34 digits; NaN where it is no number."""
        known = {name: Decimal(number) for name, number in self._constants.items()} | {
            name_of(self.root): real
        }
        for node in self.nodes:
            result = known[name_of(node.outputs[0])] = _apply(
                node, [known[name_of(item)] for item in node.inputs]
            )
        return result

    def enclosed(self, reals: Enclosure) -> Enclosure:
        """What `exactly` gives for each of many reals."""
        known = {
            name: Enclosure.of(number) for name, number in self._constants.items()
        } | {name_of(self.root): reals}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                result = known[name_of(node.outputs[0])] = _enclose(
                    node, [known[name_of(item)] for item in node.inputs]
                )
        return result

    @cached_property
    def _constants(self) -> dict[str, float]:
        operands = [operand for node in self.nodes for operand in node.inputs]
        found = [
            (name_of(operand), constant_of(operand))
            for operand in operands
            if operand is not None
        ]
        return {
            name: float(array.ravel()[0]) for name, array in found if array is not None
        }


def _apply(node: ir.Node, operands: list[Decimal]) -> Decimal:
    if any(operand.is_nan() for operand in operands):
        return Decimal("NaN")
    if node.op_type == "Clip":
        x, low, high = operands
        return min(max(x, low), high)
    if node.op_type == "Where":
        return operands[1] if operands[0] else operands[2]
    if node.op_type in UNARY:
        return UNARY[node.op_type](node, operands[0])
    return BINARY[node.op_type](operands[0], operands[1])


def _enclose(node: ir.Node, operands: list[Enclosure]) -> Enclosure:
    if node.op_type == "Clip":
        x, low, high = operands
        result = x.at_least(low).at_most(high)
    elif node.op_type == "Where":
        result = operands[0].choose(operands[1], operands[2])
    elif node.op_type in UNARY:
        result = enclosed_functions.UNARY[node.op_type](node, operands[0])
    else:
        result = enclosed_functions.BINARY[node.op_type](operands[0], operands[1])
    unknown = reduce(np.logical_or, [operand.unknown for operand in operands])
    undefined = reduce(
        np.logical_or, [operand.undefined for operand in operands], result.undefined
    )
    return replace(result.known(~(unknown | undefined)), undefined=undefined)
