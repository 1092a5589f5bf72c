"""Outputs that are a Sigmoid's: scores from 0 to 1."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.values import moved_from, producer


def score_values(output: ir.Value) -> list[ir.Value]:
    """Return an output and the values that it was moved from, up to the Sigmoid's; none if it is no Sigmoid's."""
    values = moved_from(output)
    return values if producer(values[-1], "Sigmoid") is not None else []
