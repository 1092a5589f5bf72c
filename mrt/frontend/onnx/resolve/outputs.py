"""Choose other outputs of an ONNX model: the values that the user names.

Nodes that only the old outputs need are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.errors import BadOption
from mrt.frontend.onnx.resolve.bodies import remove_with_bodies


def value_names(model: ir.Model) -> tuple[str, ...]:
    """Return the names of computed values, in the order of the file."""
    names: list[str] = []
    for node in model.graph:
        names += [output.name for output in node.outputs if output.name]
    return tuple(names)


def choose_outputs(model: ir.Model, wanted: Sequence[str]) -> tuple[str, ...]:
    """Make these the outputs; each is the name of a value or of a node.

    Return the names that the model does not have. If there are any, the model's own
    outputs stay as well.
    """
    if not wanted:
        return ()
    named = _values_by_name(model.graph)
    missing = tuple(name for name in wanted if name not in named)
    chosen: list[ir.Value] = []
    for name in wanted:
        value = named.get(name)
        if value is None:
            continue
        if value in chosen:
            raise BadOption(
                f"--outputs: {name!r} is listed twice, as the value {value.name!r}"
            )
        chosen.append(value)
    if missing:
        _set_outputs(model.graph, [*model.graph.outputs, *chosen])
    else:
        _set_outputs(model.graph, chosen)
        _drop_unused(model.graph)
    return missing


def _set_outputs(graph: ir.Graph, outputs: Sequence[ir.Value]) -> None:
    """Make these the outputs, each once."""
    different = list(dict.fromkeys(outputs))
    graph.outputs.clear()
    for value in different:
        if value.type is None:
            # Almost every value is float32; shape inference corrects the others.
            value.type = ir.TensorType(ir.DataType.FLOAT)
        graph.outputs.append(value)


def _values_by_name(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return computed values by their names, and by those of their nodes.

    A node's name selects its first output. A name that several nodes have selects the
    first of them; a value's own name has precedence over a node's.
    """
    by_node: dict[str, ir.Value] = {}
    by_value: dict[str, ir.Value] = {}
    for node in graph:
        for output in node.outputs:
            if not output.name:
                continue
            by_value[output.name] = output
            if node.name:
                by_node.setdefault(node.name, output)
    return by_node | by_value


def _drop_unused(graph: ir.Graph) -> None:
    """Remove nodes, inputs and texts that the outputs do not need."""
    for node in reversed(graph):
        if not any(_is_needed(output) for output in node.outputs):
            remove_with_bodies(node)
    for value in list(graph.inputs):
        if not _is_needed(value):
            graph.inputs.remove(value)
    for name, value in list(graph.initializers.items()):
        if value.dtype == ir.DataType.STRING and not _is_needed(value):
            del graph.initializers[name]


def _is_needed(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def drop_unused_outputs(model: ir.Model) -> None:
    """Drop a Dropout's mask and a MaxPool's indices where nothing reads them.

    A BatchNormalization keeps its further outputs: before opset 14 they state that it
    trains.
    """
    for node in model.graph:
        if node.op_type not in ("Dropout", "MaxPool"):
            continue
        if not any(_is_needed(output) for output in node.outputs[1:]):
            node.resize_outputs(min(1, len(node.outputs)))
