"""Finds scores of 0 to 1 that no sample raised: samples of the rest alone do not show whether a program keeps the peaks.

A detector of rare things, calibrated on samples without them, clips wherever its answer
would lie. It agrees with float on such samples, which tells nothing.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.operators import MOVEMENT
from mrt.table.table import CalibrationTable

QUIET = 0.1
"""A tenth of what a Sigmoid can reach: few would call it an answer."""


def quiet_score_warnings(model: ir.Model, table: CalibrationTable) -> list[str]:
    """A warning for each output of a Sigmoid that stayed below a tenth of what it can reach."""
    return [
        f"output '{value.name}' is a Sigmoid's and reaches {measured.max:.2g} at most on these samples: what would raise it "
        "to 1 is clipped in the program. Calibrate on samples that it answers to as well"
        for value in model.graph.outputs
        if _is_score(value)
        and (measured := table.ranges.get(str(value.name))) is not None
        and measured.max < QUIET
    ]


def _is_score(value: ir.Value) -> bool:
    node = value.producer()
    while node is not None and node.op_type in MOVEMENT - {"Concat", "Pad"}:
        moved = node.inputs[0]
        node = None if moved is None else moved.producer()
    return node is not None and node.op_type == "Sigmoid"
