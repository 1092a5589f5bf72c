"""The one way to change a float graph: add, replace and remove nodes, initializers, attributes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.names import fresh_name
from mrt.graph.operators import BOOLEANS
from mrt.graph.values import Array, Attribute

_GIVE_INT64 = ("ArgMax", "ArgMin", "NonZero", "Shape", "Size")

NewAttribute = Attribute | tuple[float, ...] | ir.TensorProtocol


def add_constant(graph: ir.Graph, array: Array, name: str) -> ir.Value:
    """Add an initializer under a fresh name, and return it."""
    name = fresh_name(graph, name)
    tensor = ir.tensor(
        np.ascontiguousarray(array).reshape(array.shape), name=name
    )
    value = ir.Value(
        name=name,
        shape=ir.Shape(array.shape),
        type=ir.TensorType(tensor.dtype),
        const_value=tensor,
    )
    graph.register_initializer(value)
    return value


def replace_by_constant(value: ir.Value, array: Array) -> None:
    """Replace a computed value by an initializer, which takes over its name and its users."""
    node = value.producer()
    assert (
        node is not None
        and isinstance(node.graph, ir.Graph)
        and value.name is not None
    )
    name, value.name = value.name, None
    tensor = ir.tensor(array, name=name)
    folded = ir.Value(
        name=name,
        shape=ir.Shape(array.shape),
        type=ir.TensorType(tensor.dtype),
        const_value=tensor,
    )
    node.graph.register_initializer(folded)
    value.replace_all_uses_with(folded)


def set_attributes(node: ir.Node, **attributes: NewAttribute) -> None:
    """Set attributes, replacing those of the same names."""
    for name, value in attributes.items():
        if isinstance(value, tuple):
            attribute = ir.convenience.convert_attribute(
                name, list(value), _list_type(value)
            )
        else:
            attribute = ir.convenience.convert_attribute(name, value)
        node.attributes[name] = attribute


def _list_type(values: tuple[float, ...]) -> ir.AttributeType:
    """Return FLOATS if one of the numbers is a float, else INTS, also for an empty list."""
    has_floats = any(isinstance(value, float) for value in values)
    return ir.AttributeType.FLOATS if has_floats else ir.AttributeType.INTS


def copy_attributes(node: ir.Node, value: ir.Value, *names: str) -> None:
    """Copy attributes, where present, from a node to the producer of a value."""
    target = value.producer()
    assert target is not None
    for name in names:
        if name in node.attributes:
            target.attributes[name] = node.attributes[name]


def drop_attributes(node: ir.Node, *names: str) -> None:
    """Remove attributes where present."""
    for name in names:
        node.attributes.pop(name, None)


def bypass(node: ir.Node, source: ir.Value) -> bool:
    """Remove a one-output node whose output equals `source`; its users read `source` instead.

    Return False if output names of the graph forbid it.
    """
    output = node.outputs[0]
    if not output.is_graph_output():
        output.replace_all_uses_with(source)
        _remove(node)
        return True
    if source.producer() is None or source.is_graph_output():
        return False  # the graph needs a value of the output's name, and `source` must keep its own
    name, output.name = output.name, None
    output.replace_all_uses_with(source, replace_graph_outputs=True)
    _remove(node)
    source.name = name
    return True


def _remove(node: ir.Node) -> None:
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _type_of_result(node: ir.Node) -> ir.TypeProtocol | None:
    """Return the type of a new node's result: mostly that of its first operand, if it is known."""
    if node.op_type in BOOLEANS | {"IsNaN"}:
        return ir.TensorType(ir.DataType.BOOL)
    if node.op_type in _GIVE_INT64:
        return ir.TensorType(ir.DataType.INT64)
    if node.op_type == "Cast":
        return ir.TensorType(ir.DataType(node.attributes["to"].as_int()))
    place = 1 if node.op_type == "Where" else 0
    operand = node.inputs[place] if node.inputs else None
    return None if operand is None else operand.type


class Patch:
    """New nodes in the place of one node.

    `finish` passes the name and the users of the old output to the last new value;
    `become` turns the old node itself into the last one. New values get the types that
    ONNX gives them. If `typed` is False, because shape inference has not run yet, types
    are left to it.
    """

    def __init__(
        self,
        node: ir.Node,
        output: ir.Value | None = None,
        *,
        typed: bool = True,
    ) -> None:
        assert isinstance(node.graph, ir.Graph)
        self.graph = node.graph
        self.node = node
        self.output = node.outputs[0] if output is None else output
        self.base = self.output.name or node.op_type
        self.typed = typed

    def constant(self, array: Array, role: str) -> ir.Value:
        """Add an initializer named after the output and its role, as in `conv1.weight`."""
        return add_constant(self.graph, array, f"{self.base}.{role}")

    def number(self, value: float, role: str) -> ir.Value:
        """Add a scalar constant of float32."""
        return self.constant(np.array(value, np.float32), role)

    def axes(
        self, values: tuple[int, ...] | list[int], role: str = "axes"
    ) -> ir.Value:
        """Add a constant list of integers: axes, a shape, starts."""
        return self.constant(np.array(values, np.int64), role)

    def add(
        self,
        operator: str,
        *inputs: ir.Value | None,
        **attributes: NewAttribute,
    ) -> ir.Value:
        """Add a node in front of the old one and return its output."""
        name = fresh_name(self.graph, f"{self.base}.{operator.lower()}")
        node = ir.Node("", operator, inputs, name=name)
        set_attributes(node, **attributes)
        node.outputs[0].name = name
        if self.typed:
            node.outputs[0].type = _type_of_result(node) or self.output.type
        self.graph.insert_before(self.node, node)
        return node.outputs[0]

    def reshape(
        self, value: ir.Value | None, shape: tuple[int, ...] | list[int]
    ) -> ir.Value:
        """Add a Reshape to this shape."""
        return self.add(
            "Reshape", value, self.axes(shape, "shape"), allowzero=0
        )

    def slice(
        self,
        value: ir.Value,
        axis: int,
        start: int,
        end: int,
        *,
        step: int = 1,
    ) -> ir.Value:
        """Add a Slice of one axis and return its output."""
        bounds = {"starts": start, "ends": end, "axes": axis, "steps": step}
        operands = [
            self.axes([number], role) for role, number in bounds.items()
        ]
        return self.add("Slice", value, *operands)

    def become(
        self,
        operator: str,
        *inputs: ir.Value | None,
        **attributes: NewAttribute,
    ) -> None:
        """Turn the old node itself into the last one, so that its outputs keep their names."""
        self.node.op_type, self.node.domain = operator, ""
        self.node.attributes.clear()
        set_attributes(self.node, **attributes)
        self.node.resize_inputs(len(inputs))
        for index, value in enumerate(inputs):
            self.node.replace_input_with(index, value)

    def finish(self, value: ir.Value) -> None:
        """Put a value made by `add` in the place of the only output, and remove the node."""
        self.take_over(value)
        _remove(self.node)

    def take_over(self, value: ir.Value) -> None:
        """Put a value made by `add` in the place of the old output: name, shape and users."""
        node = value.producer()
        assert node is not None
        value.shape, value.type = self.output.shape, self.output.type
        name, self.output.name = self.output.name, None
        self.output.replace_all_uses_with(value, replace_graph_outputs=True)
        value.name = name
        if len(self.node.outputs) == 1:
            node.name = self.node.name
