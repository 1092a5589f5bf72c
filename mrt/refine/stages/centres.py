"""`centres`: chooses the real number from which each channel of a signed value is counted.

This is channel-wise shifting, as in Outlier Suppression+ (Wei et al., arXiv
2304.09145).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import name_of, shape_of
from mrt.quantize.channel_centres import centrable, is_sum
from mrt.refine.channel_statistics import ChannelStatistics, Floats
from mrt.refine.channel_thresholds import channel_centres, squared_error
from mrt.refine.reader_noise import equalizable_values
from mrt.refine.stages.stage import ChannelState, Needs, RefineStage

LEAST_IMPROVEMENT = 0.7
"""The share of the squared error that centres of rows must leave at most."""


def decide(state: ChannelState) -> ChannelState:
    """Choose centres for the values that may have them and are ever negative.

    Only the symmetric scheme has centres: the affine one has zero points instead.
    """
    if state.options.scheme != "symmetric":
        return state
    allowed = centrable(state.model.graph)
    steps = state.options.steps_from_zero(8, negative=True)
    centres: dict[str, tuple[float, ...]] = {}
    for value in equalizable_values(state.model, state.table, state.options):
        name = name_of(value)
        if name in allowed and state.table.ranges[name].min < 0:
            best = _centres(value, state.statistics[name], steps, centres)
            if _pay(value, state.statistics[name], steps, best):
                centres[name] = tuple(best.tolist())
    return replace(state, decisions=replace(state.decisions, centres=centres))


def _centres(
    value: ir.Value,
    statistics: ChannelStatistics,
    steps: int,
    decided: Mapping[str, tuple[float, ...]],
) -> Floats:
    """Return the best centres, [C], as float32, which is how the table's file stores them.

    The centres of a sum follow from those of its operands where these leave no choice.
    """
    node = value.producer()
    assert node is not None
    if not is_sum(node) or any(_is_free(operand) for operand in node.inputs):
        centres = channel_centres(statistics, steps)
    else:
        centres = np.broadcast_to(
            _centres_of_sum(node, decided), len(statistics.minimum)
        )
    return centres.astype(np.float32).astype(np.float64)


def _pay(
    value: ir.Value, statistics: ChannelStatistics, steps: int, centres: Floats
) -> bool:
    """Whether centres are worth what they cost: an instruction, for rows, else nothing."""
    if len(shape_of(value)) == 4:
        return True
    error = squared_error(statistics, centres, steps)
    without = squared_error(statistics, np.zeros_like(centres), steps)
    return error < LEAST_IMPROVEMENT * without


def _centres_of_sum(
    node: ir.Node, decided: Mapping[str, tuple[float, ...]]
) -> Floats:
    none = (0.0,)
    left = np.array(decided.get(name_of(node.inputs[0]), none))
    right = np.array(decided.get(name_of(node.inputs[1]), none))
    if node.op_type == "Sub":
        return np.asarray(left - right)
    return np.asarray(left + right)


def _is_free(operand: ir.Value | None) -> bool:
    """Whether a convolution computes the operand for the sum alone.

    Then the bias of the convolution can absorb any difference of centres.
    """
    node = None if operand is None else operand.producer()
    if node is None or node.op_type != "Conv":
        return False
    return len(node.outputs[0].uses()) == 1


CENTRES = RefineStage("centres", Needs.CHANNELS, decide, requires="scales")
