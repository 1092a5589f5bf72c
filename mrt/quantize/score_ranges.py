"""Ranges of scores: an output of a Sigmoid reaches 1, though the samples left it low.

A detector of rare things is often calibrated on samples without them. At twice what
these reached its output would clip every answer, and 16 bits leave room for 1 as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.scores import score_values
from mrt.graph.values import is_read_elsewhere
from mrt.table.table import MeasuredRange

LEAST_SCORE = 1 / 256
"""Of the greatest measured, which has 128 of the 32,768 steps up to 1; a lower one would lose too many."""


def ranges_of_scores(
    graph: ir.Graph,
    states: Collection[str],
    ranges: Mapping[str, MeasuredRange],
) -> dict[str, MeasuredRange]:
    """Return ranges up to 1, by name, of outputs that are a Sigmoid's and of the values that they are moved from.

    These have 16 bits up to the output, since nothing else reads them; outputs that are
    `states` keep the format of their input.
    """
    names = {
        name_of(value)
        for output in graph.outputs
        if name_of(output) not in states
        for value in _values_for_one_output(output)
    }
    return {
        name: replace(ranges[name], hi=1.0, max=1.0)
        for name in sorted(names & ranges.keys())
        if ranges[name].max >= LEAST_SCORE
    }


def _values_for_one_output(output: ir.Value) -> list[ir.Value]:
    """Return the values of a score; none where anything but the output reads one of them."""
    values = score_values(output)
    if output.uses() or any(is_read_elsewhere(it) for it in values[1:]):
        return []
    return values
