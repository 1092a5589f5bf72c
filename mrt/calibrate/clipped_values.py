"""What a Relu or a Clip gives follows from what it takes: the model need not say it once more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

CUTS = ("Relu", "Clip")


@dataclass(frozen=True)
class Cut:
    """A value that is another one, clipped at these ends."""

    name: str
    low: float
    high: float


def cuts(model: ir.Model) -> Mapping[str, list[Cut]]:
    """By the value that is clipped: one that another node gives, and that is no clipped one itself."""
    found: dict[str, list[Cut]] = {}
    for node in model.graph:
        source = node.inputs[0] if node.op_type in CUTS else None
        if (
            source is None
            or source.dtype != ir.DataType.FLOAT
            or node.outputs[0].dtype != ir.DataType.FLOAT
        ):
            continue
        before, ends = source.producer(), _ends(node)
        if before is not None and before.op_type not in CUTS and ends is not None:
            found.setdefault(str(source.name), []).append(
                Cut(str(node.outputs[0].name), *ends)
            )
    return found


def _ends(node: ir.Node) -> tuple[float, float] | None:
    """Where numbers stop, unless that is computed."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    ends = [-math.inf, math.inf]
    for index, value in enumerate(node.inputs[1:3]):
        if value is not None:
            if value.const_value is None:
                return None
            ends[index] = float(value.const_value.numpy().reshape(-1)[0])
    return ends[0], ends[1]
