"""Which layers multiply by constant weights, by the weights that they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.operators import WEIGHT_OPERANDS


@dataclass(frozen=True)
class WeightGroup:
    """Layers that share their weights, as the steps of an unrolled network do, and the number of weights."""

    layers: tuple[str, ...]
    size: int


def weight_groups(model: ir.Model) -> list[WeightGroup]:
    """Return all layers with constant weights, in order; a layer is named as its output."""
    groups: dict[int, WeightGroup] = {}
    for node, weights in _weights(model):
        assert weights.const_value is not None
        before = groups.get(id(weights), WeightGroup((), 0)).layers
        groups[id(weights)] = WeightGroup(
            (*before, name_of(node.outputs[0])), weights.const_value.size
        )
    return list(groups.values())


def _weights(model: ir.Model) -> Iterator[tuple[ir.Node, ir.Value]]:
    for node in model.graph:
        for place in WEIGHT_OPERANDS.get(node.op_type, ()):
            value = node.inputs[place]
            if value is not None and value.const_value is not None:
                yield node, value
