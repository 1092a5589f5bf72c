"""A float model with its own derivative behind it, as one more ONNX graph: how the outputs change with each value.

The derivative is that of a sum of the outputs' elements, each with a sign by chance: the square of such a derivative is on average
the sum, over all elements, of the squares of theirs (Hutchinson). Each output counts in relation to its own power.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.duplicate.derivatives import RULES, Writer
from mrt.graph.names import fresh_name
from mrt.graph.patch import add_constant, set_attributes
from mrt.graph.values import Attribute, shape_of

Array = npt.NDArray[Any]
LEAST_POWER = 1e-30  # of an output


class Backward(Writer):
    """A copy of the model, to which derivatives are added; each is computed only if something asks for it."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model.clone()
        self.graph = self.model.graph
        self.signs: dict[
            str, tuple[int, ...]
        ] = {}  # inputs that are to be given -1 or 1 by chance
        self._parts: dict[str, list[ir.Value]] = {}  # of each value's derivative
        self._unknown: set[str] = set()
        nodes = list(self.graph)
        for output in list(self.graph.outputs):
            self._begin(output)
        for node in reversed(nodes):
            self._pass(node)

    def derivative(self, name: str) -> ir.Value | None:
        """By the value of this name; None where an operator lies behind it whose derivative is not known, or no output."""
        parts = [] if name in self._unknown else self._parts.get(name, [])
        while len(parts) > 1:
            parts[:2] = [self.add("Add", *parts[:2])]
        return parts[0] if parts else None

    def give(self, value: ir.Value, part: ir.Value) -> None:
        """One more part of the derivative by a value."""
        self._parts.setdefault(str(value.name), []).append(part)

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Attribute
    ) -> ir.Value:
        """A new node at the end; its output."""
        return next(self.add_all(operator, 1, *inputs, **attributes))

    def add_all(
        self,
        operator: str,
        count: int,
        *inputs: ir.Value | None,
        **attributes: Attribute,
    ) -> Iterator[ir.Value]:
        """As `add`, of a node with so many outputs."""
        node = ir.Node("", operator, inputs, num_outputs=count)
        set_attributes(node, **attributes)
        for output in node.outputs:
            output.name = fresh_name(self.graph, f"backward.{operator.lower()}")
        self.graph.append(node)
        return iter(node.outputs)

    def constant(self, array: Array) -> ir.Value:
        """A constant."""
        return add_constant(self.graph, array, "backward.constant")

    def _begin(self, output: ir.Value) -> None:
        shape = shape_of(output)
        if shape is None or output.dtype != ir.DataType.FLOAT:
            self._unknown.add(str(output.name))
            return
        signs = ir.Value(
            name=fresh_name(self.graph, f"{output.name}.signs"),
            shape=ir.Shape(shape),
            type=ir.TensorType(output.dtype),
        )
        self.graph.inputs.append(signs)
        self.signs[str(signs.name)] = shape
        power = self.add(
            "Max",
            self.add("ReduceSumSquare", output, keepdims=0),
            self.constant(np.array(LEAST_POWER, np.float32)),
        )
        self.give(output, self.add("Div", signs, self.add("Sqrt", power)))

    def _pass(self, node: ir.Node) -> None:
        """From what the node gives to what it takes."""
        inputs = [
            value
            for value in node.inputs
            if value is not None and value.const_value is None
        ]
        if any(output.name in self._unknown for output in node.outputs):
            self._unknown.update(str(value.name) for value in inputs)
            return
        derivative = self.derivative(str(node.outputs[0].name))
        if derivative is None:
            return
        rule = RULES.get(node.op_type)
        if rule is None or len(node.outputs) > 1 or not rule(self, node, derivative):
            self._unknown.update(str(value.name) for value in inputs)


def sums_of_channels(
    backward: Backward, names: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """For each value [1,C,H,W]: the names of outputs [C] added for it, the sum of its squared derivatives and its greatest size.

    The derivative is by the value that `names` gives for it: where a clip holds a value, its rounding does no harm.
    """
    graph, added = backward.graph, {}
    values = {str(value.name): value for node in graph for value in node.outputs}
    wanted = {name: backward.derivative(before) for name, before in names.items()}
    del graph.outputs[:]
    axes = backward.constant(np.array([0, 2, 3]))
    for name, derivative in wanted.items():
        if derivative is not None:
            squares = backward.add("ReduceSumSquare", derivative, axes, keepdims=0)
            greatest = backward.add(
                "ReduceMax", backward.add("Abs", values[name]), axes, keepdims=0
            )
            graph.outputs.extend([squares, greatest])
            added[name] = str(squares.name), str(greatest.name)
    return added
