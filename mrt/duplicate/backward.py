"""A float model with its derivative behind it, as one more ONNX graph.

The derivative is that of a sum of the outputs' elements, each with a random sign. The
square of such a derivative is on average the sum, over all elements, of the squares of
their derivatives (Hutchinson 1989, Commun. Stat. Simul. Comput. 18(3)). Each output
counts relative to its own power.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.duplicate.derivatives import RULES, GradientWriter
from mrt.graph.names import fresh_name
from mrt.graph.patch import add_constant, set_attributes
from mrt.graph.values import Attribute, shape_of

Array = npt.NDArray[Any]
LEAST_POWER = 1e-30  # the least power of an output


class Backward(GradientWriter):
    """A copy of the model with derivatives; each is added once it is used.

    `signs` are the inputs, with their shapes, that take random numbers -1 or 1.
    """

    def __init__(self, model: ir.Model) -> None:
        self.model = model.clone()
        self.graph = self.model.graph
        self.signs: dict[str, tuple[int, ...]] = {}
        # The terms of each value's derivative.
        self._terms: dict[str, list[ir.Value]] = {}
        self._unknown: set[str] = set()
        nodes = list(self.graph)
        for output in list(self.graph.outputs):
            self._start_at(output)
        for node in reversed(nodes):
            self._pass_through(node)

    def derivative(self, name: str) -> ir.Value | None:
        """Return the derivative by the value of this name.

        None where no output depends on the value, or only through an operator whose
        derivative is not known.
        """
        if name in self._unknown:
            return None
        terms = self._terms.get(name, [])
        while len(terms) > 1:
            terms[:2] = [self.add("Add", *terms[:2])]
        return terms[0] if terms else None

    def give(self, value: ir.Value, term: ir.Value) -> None:
        """Add one more term to the derivative by a value."""
        self._terms.setdefault(str(value.name), []).append(term)

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Attribute
    ) -> ir.Value:
        """Add a node at the end; return its output."""
        return next(self.add_all(operator, 1, *inputs, **attributes))

    def add_all(
        self,
        operator: str,
        count: int,
        *inputs: ir.Value | None,
        **attributes: Attribute,
    ) -> Iterator[ir.Value]:
        """Add a node with so many outputs at the end; return its outputs."""
        node = ir.Node("", operator, inputs, num_outputs=count)
        set_attributes(node, **attributes)
        for output in node.outputs:
            output.name = fresh_name(self.graph, f"backward.{operator.lower()}")
        self.graph.append(node)
        return iter(node.outputs)

    def constant(self, array: Array) -> ir.Value:
        """Add a constant."""
        return add_constant(self.graph, array, "backward.constant")

    def _start_at(self, output: ir.Value) -> None:
        """Give an output its derivative: random signs over the root of its power."""
        shape = shape_of(output)
        if shape is None or output.dtype != ir.DataType.FLOAT:
            self._unknown.add(str(output.name))
            return
        name = fresh_name(self.graph, f"{output.name}.signs")
        type_ = ir.TensorType(output.dtype)
        signs = ir.Value(name=name, shape=ir.Shape(shape), type=type_)
        self.graph.inputs.append(signs)
        self.signs[name] = shape
        power = self.add("ReduceSumSquare", output, keepdims=0)
        least = self.constant(np.array(LEAST_POWER, np.float32))
        root = self.add("Sqrt", self.add("Max", power, least))
        self.give(output, self.add("Div", signs, root))

    def _pass_through(self, node: ir.Node) -> None:
        """Turn the derivative by a node's output into those by its operands."""
        if any(output.name in self._unknown for output in node.outputs):
            self._mark_unknown(node)
            return
        derivative = self.derivative(str(node.outputs[0].name))
        if derivative is None:
            return
        rule = RULES.get(node.op_type)
        if (
            rule is None
            or len(node.outputs) > 1
            or not rule(self, node, derivative)
        ):
            self._mark_unknown(node)

    def _mark_unknown(self, node: ir.Node) -> None:
        """Record that the derivatives by the node's computed operands are not known."""
        for value in node.inputs:
            if value is not None and value.const_value is None:
                self._unknown.add(str(value.name))


def sums_of_channels(
    backward: Backward, names: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Make two outputs [C] for each value [1,C,H,W], and return their names.

    The first is the sum of the squared derivatives of each channel, the second its
    largest magnitude. The derivative is by the value to which `names` maps it: where a
    clip stops a value at a bound, rounding it does no harm.
    """
    graph = backward.graph
    values = {
        str(value.name): value for node in graph for value in node.outputs
    }
    derivatives = {name: backward.derivative(by) for name, by in names.items()}
    del graph.outputs[:]
    axes = backward.constant(np.array([0, 2, 3]))
    added: dict[str, tuple[str, str]] = {}
    for name, derivative in derivatives.items():
        if derivative is None:
            continue
        squares = backward.add("ReduceSumSquare", derivative, axes, keepdims=0)
        magnitude = backward.add("Abs", values[name])
        greatest = backward.add("ReduceMax", magnitude, axes, keepdims=0)
        graph.outputs.extend([squares, greatest])
        added[name] = str(squares.name), str(greatest.name)
    return added
