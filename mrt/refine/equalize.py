"""One scale, and one centre, for each channel of a value between layers, where its readers can take up how channels differ.

A convolution takes the difference up in its weights, which then differ more in size themselves; so the scales go only part of
the way: the power, for each value, that promises the least noise behind its readers (Nagel et al., arXiv 1906.04721, go half
of the way; SmoothQuant, arXiv 2211.10438, chooses one power for a whole model).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.channel_scales import candidates, readers
from mrt.refine.channel_intervals import ROUNDING, channel_centres, channel_ends
from mrt.refine.channels import Channels, Floats
from mrt.table.decisions import Decisions
from mrt.table.table import MOST_RELATIVE, CalibrationTable, MeasuredRange

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_SCALE = 1 / 64  # of the whole value's
WORTH_IT = 0.98  # a power is taken for 2 % less noise or more
SECOND_ORDER = (
    0.4  # of the noise of nearest weights is left by second-order rounding, as measured
)

Halves = Mapping[
    str, tuple[Channels, Channels]
]  # by value: what was seen of one half of the samples, and of the other


def watched(model: ir.Model) -> list[str]:
    """The values whose channels must be known: the candidates, and what their readers compute."""
    values = candidates(model)
    behind = (
        output
        for value in values
        for node, _ in readers(value)
        for output in node.outputs
    )
    return sorted({name_of(value) for value in (*values, *behind)})


def with_channels(
    decisions: Decisions,
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    halves: Halves,
    left: float,
    centred: frozenset[str],
) -> Decisions:
    """With scales of channels, relative to the whole value's, for each value that gains by them; and centres of those `centred`.

    `left` is the share of the noise of nearest weights that the rounding to come leaves.
    """
    spread = {name: Channels.together(*both) for name, both in halves.items()}
    values = [
        value
        for value in candidates(model)
        if _has_few_steps(name_of(value), table, options)
    ]
    scales: dict[str, tuple[float, ...]] = {}
    centres: dict[str, tuple[float, ...]] = {}
    for value in values:
        name, seen = name_of(value), table.ranges[name_of(value)]
        around, steps = (
            np.zeros(shape_of(value)[1]),
            options.steps_from_zero(8, negative=seen.min < 0),
        )
        if name in centred and seen.min < 0 and options.scheme == "symmetric":
            around = _centres(value, spread[name], steps, centres)
            centres[name] = tuple(around.tolist())
        found = _scales(value, seen, halves[name], around, steps, spread, left)
        if found:
            scales[name] = found
    return replace(decisions, channel_scales=scales, centres=centres)


def _has_few_steps(
    name: str, table: CalibrationTable, options: QuantizeOptions
) -> bool:
    seen = table.ranges[name]
    return options.activation_bits_of(name) <= 8 and seen.max != seen.min


def _scales(
    value: ir.Value,
    seen: MeasuredRange,
    halves: tuple[Channels, Channels],
    centres: Floats,
    steps: int,
    spread: Mapping[str, Channels],
    left: float,
) -> tuple[float, ...]:
    """Of the channels, relative to the whole value's; none if it gains nothing by them. `steps`: most from 0, of an integer."""
    whole, importance = max(abs(seen.lo), abs(seen.hi)), _importance(value, spread)
    # The whole value may end before what was seen of it; its loudest channels need not.
    limits = LEAST_SCALE * whole, max(abs(seen.min), abs(seen.max))
    relative = (
        channel_ends(spread[name_of(value)], halves, centres, steps, importance, limits)
        / whole
    )
    most = relative.max()
    power = _best_power(
        value, relative / most, most * whole / steps, spread, importance, left
    )
    if power == 0 and most >= WORTH_IT:
        return ()
    short = np.minimum(most * (relative / most) ** power, MOST_RELATIVE / 2).astype(
        np.float16
    )  # in the file
    return tuple(short.astype(np.float64).tolist())


def _centres(
    value: ir.Value, seen: Channels, steps: int, before: Mapping[str, tuple[float, ...]]
) -> Floats:
    """The best, or for a sum whose operands leave no choice theirs; in float32, for the file."""
    node = value.producer()
    assert node is not None
    if is_sum(node) and not any(_is_free(operand) for operand in node.inputs):
        left, right = (
            np.array(before.get(name_of(operand), (0.0,))) for operand in node.inputs
        )
        centres = np.broadcast_to(
            left - right if node.op_type == "Sub" else left + right, len(seen.low)
        )
    else:
        centres = channel_centres(seen, steps)
    return centres.astype(np.float32).astype(np.float64)


def _is_free(operand: ir.Value | None) -> bool:
    """Whether a convolution computes this for the sum alone: its bias can take up any difference."""
    node = None if operand is None else operand.producer()
    return (
        node is not None and node.op_type == "Conv" and len(node.outputs[0].uses()) == 1
    )


def _importance(value: ir.Value, spread: Mapping[str, Channels]) -> Floats:
    """[C]: what the readers make of an error of 1 in a channel, squared, over the variance of what they compute."""
    total = np.zeros(shape_of(value)[1])
    for node, _ in readers(value):
        power = _power(spread[name_of(node.outputs[0])])
        if node.op_type != "Conv":
            total += 1 / power
            continue
        weights, groups = _weights(node)
        squares = (weights**2).sum(axis=(2, 3)).reshape(groups, -1, weights.shape[1])
        total += squares.sum(axis=1).reshape(-1) / power
    return total


def _best_power(
    value: ir.Value,
    full: Floats,
    step: float,
    spread: Mapping[str, Channels],
    importance: Floats,
    left: float,
) -> float:
    convolutions = [node for node, _ in readers(value) if node.op_type == "Conv"]
    variance = spread[name_of(value)].variance
    best, least = 0.0, np.inf
    for power in POWERS:
        relative = full**power
        noise = ROUNDING * float((importance * (relative * step) ** 2).sum())
        for node in convolutions:
            noise += (
                left
                * _weight_noise(node, relative, variance)
                / _power(spread[name_of(node.outputs[0])])
            )
        if noise < least * WORTH_IT:
            best, least = power, noise
    return best


def _weights(node: ir.Node) -> tuple[Floats, int]:
    """[O,C/groups,KH,KW], and the groups."""
    weights = constant_of(node.inputs[1])
    assert weights is not None
    return weights, node.attributes["group"].as_int()


def _power(item: Channels) -> float:
    return max(float(item.variance.sum()), 1e-30)


def _weight_noise(node: ir.Node, relative: Floats, variance: Floats) -> float:
    """The variance behind a convolution of what rounding its weights to the nearest does."""
    weights, groups = _weights(node)

    def over_outputs(of_channel: Floats) -> Floats:
        return np.repeat(
            of_channel.reshape(groups, -1), len(weights) // groups, axis=0
        )[:, :, None, None]

    steps = np.abs(weights * over_outputs(relative)).max(axis=(1, 2, 3)) / 127
    met = (over_outputs(variance / relative**2) * np.ones_like(weights)).sum(
        axis=(1, 2, 3)
    )
    return ROUNDING * float((steps**2 * met).sum())
