"""Ranges of scores: an output of a Sigmoid reaches 1, though no sample raised it there.

A detector of rare things is often calibrated on samples without them. At twice what
these reached its output would clip every answer, and 16 bits leave room for 1 as well.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.scores import score_values
from mrt.table.table import CalibrationTable, MeasuredRange

LEAST_SCORE = 2.0**-12
"""Of a score that has eight steps of 2^-15 left: below, what was measured would drown in their rounding."""


def ranges_of_scores(
    graph: ir.Graph, output_path: Container[str], table: CalibrationTable
) -> dict[str, MeasuredRange]:
    """Return the ranges up to 1, by name, of outputs of Sigmoids and of what they are moved from.

    Those have 16 bits, as all of `output_path`. A score that stayed below LEAST_SCORE keeps its range.
    """
    names = {
        name_of(value)
        for output in graph.outputs
        for value in score_values(output)
    }
    measured = {
        name: table.ranges[name] for name in names & table.ranges.keys()
    }
    return {
        name: replace(range_, hi=1.0, max=1.0)
        for name, range_ in measured.items()
        if name in output_path and range_.max >= LEAST_SCORE
    }
