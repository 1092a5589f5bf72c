"""How a pass looks at a float graph and changes it: constants, shapes, attributes, and patches replacing one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]
Attribute = int | float | str | tuple[int, ...]

_NAMES = "rewrite.names"  # key in graph.meta: every name a value of this graph has had


def constant(value: ir.Value | None) -> Array | None:
    """The array of an initializer that no caller can replace; None for everything else."""
    if value is None or not value.is_initializer() or value.is_graph_input() or value.const_value is None:
        return None
    return value.const_value.numpy()


def scalar(value: ir.Value | None) -> float | None:
    """The one element of a constant, as a float."""
    array = constant(value)
    return None if array is None or array.size != 1 else float(array.reshape(()))


def shape_of(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape when every dimension is a known number."""
    if value is None or value.shape is None or not all(isinstance(dimension, int) for dimension in value.shape):
        return None
    return tuple(int(str(dimension)) for dimension in value.shape)


def rank_of(value: ir.Value | None) -> int | None:
    """Number of dimensions, where the shape is known."""
    shape = shape_of(value)
    return None if shape is None else len(shape)


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """An operand; None where it is absent or left empty."""
    return node.inputs[index] if index < len(node.inputs) else None


def first(node: ir.Node) -> ir.Value:
    """The operand that every operator of more than zero operands has."""
    value = node.inputs[0]
    assert value is not None
    return value


def integer(node: ir.Node, name: str, default: int) -> int:
    """An integer attribute."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


def real(node: ir.Node, name: str, default: float) -> float:
    """A float attribute."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_float()


def word(node: ir.Node, name: str, default: str) -> str:
    """A string attribute."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_string()


def integers(node: ir.Node, name: str) -> tuple[int, ...] | None:
    """A list of integers; None where absent."""
    attribute = node.attributes.get(name)
    return None if attribute is None else tuple(attribute.as_ints())


def constant_integers(value: ir.Value | None) -> tuple[int, ...] | None:
    """A constant operand holding axes, a shape, starts, ..."""
    array = constant(value)
    return None if array is None else tuple(int(item) for item in array.reshape(-1))


def sole_user(value: ir.Value) -> ir.Node | None:
    """The only node that reads this value (once), provided it is not an output of the graph either."""
    if value.is_graph_output() or len(value.uses()) != 1:
        return None
    return next(iter(value.uses())).node


def producer(value: ir.Value | None, *operators: str) -> ir.Node | None:
    """The node that makes this value if its operator is one of these."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in operators and node.domain == "" else None


def nodes(model: ir.Model, *operators: str) -> list[ir.Node]:
    """The nodes of these operators in graph order, listed before anything is changed."""
    return [node for node in model.graph if node.domain == "" and node.op_type in operators]


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """`wanted`, or `wanted.2`, `wanted.3`, ...: the first that no value of the graph has."""
    if _NAMES not in graph.meta:
        values = [*graph.inputs, *graph.initializers.values(), *(out for node in graph for out in node.outputs)]
        graph.meta[_NAMES] = {value.name for value in values}
    taken: set[str] = graph.meta[_NAMES]
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}.{count}"
    taken.add(name)
    return name


def add_constant(graph: ir.Graph, array: Array, name: str) -> ir.Value:
    """A new initializer under a fresh name."""
    name = fresh_name(graph, name)
    tensor = ir.tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
    value = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(value)
    return value


def replace_by_constant(value: ir.Value, array: Array) -> None:
    """An initializer takes over the name and the users of a computed value."""
    node = value.producer()
    assert node is not None and isinstance(node.graph, ir.Graph) and value.name is not None
    name, value.name = value.name, None
    tensor = ir.tensor(array, name=name)
    folded = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
    node.graph.register_initializer(folded)
    value.replace_all_uses_with(folded)


def set_attributes(node: ir.Node, **attributes: Attribute) -> None:
    """Write attributes, replacing what was there."""
    for name, value in attributes.items():
        plain = list(value) if isinstance(value, tuple) else value
        kind = ir.AttributeType.INTS if isinstance(value, tuple) else None
        node.attributes[name] = ir.convenience.convert_attribute(name, plain, kind)


def drop_attributes(node: ir.Node, *names: str) -> None:
    """Remove attributes where present."""
    for name in names:
        node.attributes.pop(name, None)


def bypass(node: ir.Node, source: ir.Value) -> bool:
    """Remove a one-output node whose output equals `source`; False where output names of the graph forbid it."""
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


class Patch:
    """New nodes in the place of one node. `finish` gives the last value the name and the users of the old output."""

    def __init__(self, node: ir.Node, output: ir.Value | None = None) -> None:
        assert isinstance(node.graph, ir.Graph)
        self.graph = node.graph
        self.node = node
        self.output = node.outputs[0] if output is None else output
        self.base = self.output.name or node.op_type

    def constant(self, array: Array, role: str) -> ir.Value:
        """A new initializer named after the node's output and its role, such as `conv1.weight`."""
        return add_constant(self.graph, array, f"{self.base}.{role}")

    def axes(self, values: tuple[int, ...] | list[int], role: str = "axes") -> ir.Value:
        """A constant list of integers: axes, a shape, starts."""
        return self.constant(np.array(values, np.int64), role)

    def add(self, operator: str, *inputs: ir.Value | None, **attributes: Attribute) -> ir.Value:
        """A new node in front of the old one; its output."""
        name = fresh_name(self.graph, f"{self.base}.{operator.lower()}")
        node = ir.Node("", operator, inputs, name=name)
        set_attributes(node, **attributes)
        node.outputs[0].name = name
        node.outputs[0].type = self.output.type
        self.graph.insert_before(self.node, node)
        return node.outputs[0]

    def finish(self, value: ir.Value) -> None:
        """Put a value made by `add` in the place of the node's one output, and remove the node."""
        self.take_over(value)
        _remove(self.node)

    def take_over(self, value: ir.Value) -> None:
        """Put a value made by `add` in the place of the old output: name, shape and users."""
        maker = value.producer()
        assert maker is not None
        value.shape, value.type = self.output.shape, self.output.type
        name, self.output.name = self.output.name, None
        self.output.replace_all_uses_with(value, replace_graph_outputs=True)
        value.name = name
        if len(self.node.outputs) == 1:
            maker.name = self.node.name
