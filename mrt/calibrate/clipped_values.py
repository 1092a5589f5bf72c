"""Finds the outputs of Relu and Clip, whose statistics follow from those of their inputs.

So the float model need not expose them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.operators import CLIPS


@dataclass(frozen=True)
class ClippedValue:
    """The name of a value that equals another one, clipped to [low, high]."""

    name: str
    low: float
    high: float


def clipped_values(model: ir.Model) -> Mapping[str, list[ClippedValue]]:
    """Return the clipped values by the name of the value that is clipped.

    The latter is a float computed by a node that does not clip itself.
    """
    clipped: dict[str, list[ClippedValue]] = {}
    for node in model.graph:
        value = node.inputs[0] if node.op_type in CLIPS else None
        if value is None or not _are_floats(value, node.outputs[0]):
            continue
        producer, interval = value.producer(), _interval(node)
        if producer is None or producer.op_type in CLIPS or interval is None:
            continue
        entry = ClippedValue(str(node.outputs[0].name), *interval)
        clipped.setdefault(str(value.name), []).append(entry)
    return clipped


def _are_floats(*values: ir.Value) -> bool:
    return all(value.dtype == ir.DataType.FLOAT for value in values)


def _interval(node: ir.Node) -> tuple[float, float] | None:
    """Return the interval to which a Relu or Clip limits numbers; None where it is computed."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    interval = [-math.inf, math.inf]
    for index, value in enumerate(node.inputs[1:3]):
        if value is None:
            continue
        if value.const_value is None:
            return None
        interval[index] = float(value.const_value.numpy().reshape(-1)[0])
    return interval[0], interval[1]
