"""An If whose condition is known once shapes are, as exporters write one for a squeeze, becomes the branch it takes."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from mrt.frontend.onnx.resolve.known_values import Known, Shapes

MOST_BRANCHES = (
    1000  # of an ordinary model a few; each costs an inference of all shapes
)


def inline_if_branches(proto: onnx.ModelProto, shapes: Shapes) -> None:
    """Replace each If of a known condition by the nodes of its branch, the first ones first: others may follow from them.

    What stays is refused with the other operators.
    """
    for _ in range(MOST_BRANCHES):
        if not any(
            node.op_type == "If" for node in proto.graph.node
        ) or not _settle_one(proto, shapes):
            return


def _settle_one(proto: onnx.ModelProto, shapes: Shapes) -> bool:
    known = Known(proto, shapes)
    for index, node in enumerate(proto.graph.node):
        if node.op_type != "If" or node.domain or not node.input:
            continue
        condition = known.value(node.input[0])
        if condition is None or condition.size != 1:
            continue
        wanted = "then_branch" if condition.reshape(()) else "else_branch"
        branches = [item.g for item in node.attribute if item.name == wanted]
        if len(branches) == 1 and len(branches[0].output) == len(node.output):
            _take(proto.graph, index, branches[0])
            return True
    return False


def _take(graph: onnx.GraphProto, index: int, branch: onnx.GraphProto) -> None:
    """The branch's nodes in the place of the If, under names that nobody has; its results have the If's."""
    node = graph.node[index]
    inner = {name for item in branch.node for name in item.output} | {
        tensor.name for tensor in branch.initializer
    }
    taken = {name for item in graph.node for name in (*item.input, *item.output)} | {
        t.name for t in graph.initializer
    }
    prefix = f"{node.output[0]}."
    while any(f"{prefix}{name}" in taken for name in inner):
        prefix += "_"
    names = {name: f"{prefix}{name}" for name in inner if name}
    made = [onnx.NodeProto.FromString(item.SerializeToString()) for item in branch.node]
    for item in made:
        rename(item, names)
    for result, own in zip(branch.output, node.output, strict=True):
        made.append(
            onnx.helper.make_node(
                "Identity",
                [names.get(result.name, result.name)],
                [own],
                name=f"{own}.taken",
            )
        )
    for tensor in branch.initializer:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = names[tensor.name]
    nodes = [onnx.NodeProto.FromString(item.SerializeToString()) for item in graph.node]
    nodes[index : index + 1] = made
    del graph.node[:]
    graph.node.extend(nodes)


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Values of the branch, also where graphs inside it read them."""
    waiting = [node]
    while waiting:
        item = waiting.pop()
        for values in (item.input, item.output):
            values[:] = [names.get(name, name) for name in values]
        for attribute in item.attribute:
            for graph in (*attribute.graphs, attribute.g):
                waiting += graph.node
                for value in graph.output:
                    value.name = names.get(value.name, value.name)
