"""Which operators with weights compute each layer: a config names weights by the output of their operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

import onnx_ir as ir

from mrt.graph.operators import WEIGHT_OPERANDS

MOST = 4  # operators of one layer that are named


def weights_of(
    model: ir.Model, layers: Collection[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return, by layer, the outputs of the operators with weights between it and the layers that it reads."""
    names_by_layer: dict[str, tuple[str, ...]] = {}
    # Each value's operators are those of its node, and of what it reads that is no layer.
    ahead: dict[str, dict[str, None]] = {}
    for node in model.graph:
        names: dict[str, None] = {}
        for value in node.inputs:
            if value is not None and value.name not in layers:
                names.update(ahead.get(str(value.name), {}))
        name = str(node.outputs[0].name)
        if _has_weights(node):
            names = {name: None, **names}
        names = dict.fromkeys(islice(names, MOST))
        for output in node.outputs:
            ahead[str(output.name)] = names
            if output.name in layers:
                names_by_layer[str(output.name)] = tuple(names)
    return names_by_layer


def _has_weights(node: ir.Node) -> bool:
    places = WEIGHT_OPERANDS.get(node.op_type, ())
    values = (node.inputs[place] for place in places)
    return any(
        value is not None and value.const_value is not None for value in values
    )
