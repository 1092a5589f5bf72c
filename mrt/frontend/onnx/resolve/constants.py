"""Constants that a model hands on: through Identity nodes, or as its outputs."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.names import fresh_name


def read_constants_directly(model: ir.Model) -> None:
    """Let what reads an Identity of a constant read the constant, as exporters write one constant for equal ones."""
    for node in list(model.graph):
        if node.op_type != "Identity" or node.domain:
            continue
        source, result = node.inputs[0], node.outputs[0]
        if source is None or not _is_constant(source):
            continue
        if not result.is_graph_output():
            result.replace_all_uses_with(source)
            model.graph.remove(node, safe=True)


def compute_constant_outputs(model: ir.Model) -> None:
    """Put an Identity before an output that is a constant: it keeps its name."""
    graph = model.graph
    for place, value in enumerate(graph.outputs):
        if not _is_constant(value):
            continue
        name, value.name = value.name, fresh_name(graph, f"{value.name}.value")
        node = ir.Node("", "Identity", [value], name=name)
        node.outputs[0].name = name
        node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
        graph.append(node)
        graph.outputs[place] = node.outputs[0]


def _is_constant(value: ir.Value) -> bool:
    return value.is_initializer() and not value.is_graph_input()
