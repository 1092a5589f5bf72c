"""Bodies of If, Loop and Scan: find them, and move their nodes into the graph around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir

from mrt.graph.names import fresh_name
from mrt.graph.patch import Patch

Values = Sequence[ir.Value]
Scope = dict[str | None, ir.Value]

FIRST_AXES_OPERAND = (
    13  # the opset from which on Squeeze and Unsqueeze read their axes
)


class ResolvePatch(Patch):
    """New nodes in operators of the model's own opset; their types are left to inference."""

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Any
    ) -> ir.Value:
        """Add a node in front of the old one and return its output."""
        value = super().add(operator, *inputs, **attributes)
        value.type = None
        return value

    def squeeze(self, x: ir.Value, axis: int) -> ir.Value:
        """Remove an axis of length 1."""
        return self._change_axis("Squeeze", x, axis)

    def unsqueeze(self, x: ir.Value, axis: int) -> ir.Value:
        """Insert an axis of length 1."""
        return self._change_axis("Unsqueeze", x, axis)

    def _change_axis(self, operator: str, x: ir.Value, axis: int) -> ir.Value:
        opset = self.graph.opset_imports.get("", 0)
        if opset < FIRST_AXES_OPERAND:
            return self.add(operator, x, axes=(axis,))
        axes = self.axes([axis])
        return self.add(operator, x, axes)


def replace_outputs(node: ir.Node, results: Values) -> None:
    """Give the node's outputs to Identities of the results, name by name, and remove the node."""
    for output, result in zip(node.outputs, results, strict=True):
        if output.name:
            patch = ResolvePatch(node, output)
            identity = patch.add("Identity", result)
            patch.take_over(identity)
    remove_with_bodies(node)


def inline_body(
    node: ir.Node, body: ir.Graph, arguments: Values, prefix: str
) -> list[ir.Value]:
    """Move a body's nodes in front of `node` and return the values of its outputs.

    The body is empty afterwards. `arguments` replace its inputs; every value gets a fresh
    name that begins with `prefix`.
    """
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    outputs = list(body.outputs)
    body.outputs.clear()
    replaced = dict(zip(body.inputs, arguments, strict=True))
    for body_input, argument in replaced.items():
        body_input.replace_all_uses_with(argument)
    _move_initializers(graph, body, prefix, replaced)
    _move_nodes(node, body, prefix)
    return [replaced.get(value, value) for value in outputs]


def _move_initializers(
    graph: ir.Graph,
    body: ir.Graph,
    prefix: str,
    replaced: dict[ir.Value, ir.Value],
) -> None:
    """Move the initializers, except those that are defaults of the body's inputs."""
    initializers = list(body.initializers.values())
    body.initializers.clear()
    for value in initializers:
        if value in replaced:
            continue
        base_name = f"{prefix}{value.name}"
        value.name = fresh_name(graph, base_name)
        graph.register_initializer(value)


def _move_nodes(node: ir.Node, body: ir.Graph, prefix: str) -> None:
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    moved = list(body)
    body.remove(moved)
    for inner in moved:
        if inner.name:
            inner.name = f"{prefix}{inner.name}"
        for output in inner.outputs:
            if output.name:
                base_name = f"{prefix}{output.name}"
                output.name = fresh_name(graph, base_name)
    graph.insert_before(node, moved)


def remove_with_bodies(node: ir.Node) -> None:
    """Remove a node that nothing reads, and disconnect its bodies from the values they read."""
    for body in bodies_of(node):
        for inner in body.all_nodes():
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def bodies_of(node: ir.Node) -> list[ir.Graph]:
    """Return the graphs among a node's attributes."""
    bodies: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            bodies.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            bodies.extend(attribute.as_graphs())
    return bodies


def body_named(node: ir.Node, name: str) -> ir.Graph | None:
    """Return the body in the attribute of this name, if it is there."""
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref():
        return None
    if attribute.type != ir.AttributeType.GRAPH:
        return None
    return attribute.as_graph()


def int_or(node: ir.Node, name: str, default: int) -> int:
    """Return an integer attribute; the default if it is absent or of another type.

    Attributes of a wrong type are refused later, with the unsupported operators.
    """
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref():
        return default
    if attribute.type != ir.AttributeType.INT:
        return default
    return attribute.as_int()


def link_outer_outputs(model: ir.Model) -> None:
    """A body's output that is a value outside the body -> an Identity of that value.

    ONNX requires the Identity and onnx_ir relies on it; some exporters leave it out.
    """
    for body, scope in _scopes(model):
        for index, output in enumerate(body.outputs):
            outer = scope.get(output.name)
            if outer is None or _is_made_in(body, output):
                continue
            node = ir.Node("", "Identity", [outer], name="")
            identity = node.outputs[0]
            identity.name = output.name
            body.append(node)
            body.outputs[index] = identity


def _is_made_in(body: ir.Graph, value: ir.Value) -> bool:
    if value.producer() is not None or value.is_initializer():
        return True
    return value in body.inputs


def _scopes(model: ir.Model) -> Iterator[tuple[ir.Graph, Scope]]:
    """Yield each body with the values around it by name, outer bodies first."""
    outermost: Scope = {}
    waiting = [(model.graph, outermost)]
    while waiting:
        graph, scope = waiting.pop()
        if graph is not model.graph:
            yield graph, scope
        bodies = [body for node in graph for body in bodies_of(node)]
        if not bodies:
            continue
        inner = scope | _values_of(graph)
        waiting += [(body, inner) for body in bodies]


def _values_of(graph: ir.Graph) -> Scope:
    values = [*graph.inputs, *graph.initializers.values()]
    for node in graph:
        values.extend(node.outputs)
    return {value.name: value for value in values if value.name}
