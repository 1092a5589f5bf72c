"""Other outputs for an ONNX model: the values that the user names; nodes that only the old outputs need are dropped."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.errors import BadOption
from mrt.frontend.onnx.resolve.bodies import remove_with_bodies


def value_names(model: ir.Model) -> tuple[str, ...]:
    """Return the names of computed values, in the order of the file."""
    return tuple(value.name for value in _computed(model) if value.name)


def choose_outputs(model: ir.Model, wanted: Sequence[str]) -> tuple[str, ...]:
    """Make these the outputs, by the name of a value or of a node.

    Returns the names that the model does not have. If there are any, the model's own
    outputs stay beside the others.
    """
    if not wanted:
        return ()
    chosen, missing = _find(model, wanted)
    outputs = model.graph.outputs
    if missing:
        old = list(outputs)
        chosen = [*old, *(value for value in chosen if value not in old)]
    outputs.clear()
    for value in chosen:
        if value.type is None:
            # Almost every value is float32; shape inference corrects the others.
            value.type = ir.TensorType(ir.DataType.FLOAT)
        outputs.append(value)
    if not missing:
        _drop_unused(model.graph)
    return tuple(missing)


def _find(model: ir.Model, wanted: Sequence[str]) -> tuple[list[ir.Value], list[str]]:
    """Return the values of these names, and the names that nothing has."""
    values = {value.name: value for value in _computed(model) if value.name}
    first_outputs = _first_outputs(model.graph)
    chosen: list[ir.Value] = []
    missing: list[str] = []
    for name in wanted:
        value = values.get(name, first_outputs.get(name))
        if value is None:
            missing.append(name)
            continue
        if value in chosen:
            raise BadOption(
                f"--outputs: {name!r} is listed twice, as the value {value.name!r}"
            )
        chosen.append(value)
    return chosen, missing


def _first_outputs(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return the first named output of each node, by the name of the first such node."""
    outputs: dict[str, ir.Value] = {}
    for node in graph:
        named = [output for output in node.outputs if output.name]
        if node.name and named:
            outputs.setdefault(node.name, named[0])
    return outputs


def _computed(model: ir.Model) -> list[ir.Value]:
    return [output for node in model.graph for output in node.outputs]


def _drop_unused(graph: ir.Graph) -> None:
    """Remove nodes and inputs that the outputs do not need."""
    for node in reversed(graph):
        if not any(_is_needed(output) for output in node.outputs):
            remove_with_bodies(node)
    for value in list(graph.inputs):
        if not _is_needed(value):
            graph.inputs.remove(value)


def _is_needed(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def drop_unused_outputs(model: ir.Model) -> None:
    """Drop a Dropout's mask and a MaxPool's indices where nothing reads them.

    A BatchNormalization keeps its own: before opset 14 they mean that it trains.
    """
    for node in model.graph:
        if node.op_type not in ("Dropout", "MaxPool"):
            continue
        if not any(_is_needed(output) for output in node.outputs[1:]):
            node.resize_outputs(min(1, len(node.outputs)))
