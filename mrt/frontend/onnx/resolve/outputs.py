"""Other outputs for an ONNX model: the values that the user names; nodes that only the old outputs need are dropped."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from mrt.errors import BadOption


def value_names(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The names of computed values, in the order of the file."""
    return tuple(name for node in proto.graph.node for name in node.output if name)


def cut(proto: onnx.ModelProto, outputs: Sequence[str]) -> tuple[str, ...]:
    """Make these the outputs, by the name of a value or of a node, and return those that the model does not have.

    If there are any such, the model's own outputs stay beside the others.
    """
    if not outputs:
        return ()
    found, left = _find(proto, outputs)
    graph = proto.graph
    old = {value.name: value for value in graph.output}
    known = {value.name: value for value in (*graph.value_info, *graph.output)}
    wanted = found if not left else [*old, *(name for name in found if name not in old)]
    chosen = [known[name] if name in known else _untyped(name) for name in wanted]
    copies = [
        onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in chosen
    ]
    del graph.output[:]
    graph.output.extend(copies)
    if not left:
        _drop_unused(graph, set(wanted))
    return tuple(left)


def _find(
    proto: onnx.ModelProto, outputs: Sequence[str]
) -> tuple[list[str], list[str]]:
    values = set(value_names(proto))
    nodes = {
        node.name: [name for name in node.output if name]
        for node in reversed(proto.graph.node)
        if node.name
    }
    found: list[str] = []
    left: list[str] = []
    for name in outputs:
        names = [name] if name in values else nodes.get(name, [])[:1]
        left += [] if names else [name]
        if repeated := [item for item in names if item in found]:
            raise BadOption(
                f"--outputs: {name!r} is listed twice, as the value {repeated[0]!r}"
            )
        found += names
    return found, left


def _untyped(name: str) -> onnx.ValueInfoProto:
    """Almost every value is float32; what is not is told by shape inference later."""
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)


def _drop_unused(graph: onnx.GraphProto, needed: set[str]) -> None:
    """Nodes, inputs and stated shapes that the outputs do not need."""
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input) | {
                name for value in node.attribute for name in captured(value)
            }
    kept.reverse()
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(nodes)
    for values in (graph.input, graph.value_info):
        for value in [item for item in values if item.name not in needed]:
            values.remove(value)


def captured(attribute: onnx.AttributeProto) -> set[str]:
    """What the bodies of an If or a Loop read, from inside or outside."""
    graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    nodes = [node for graph in graphs for node in graph.node]
    names = {value.name for graph in graphs for value in graph.output} | {
        name for node in nodes for name in node.input
    }
    return names | {
        name for node in nodes for item in node.attribute for name in captured(item)
    }
