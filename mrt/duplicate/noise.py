"""Measures the noise that the rounding of each channel causes at the outputs, on some samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession
from mrt.duplicate.add_duplicates import paired_channels
from mrt.duplicate.backward import Backward, sums_of_channels
from mrt.graph.canonical_values import clip_ends
from mrt.graph.operators import CLIPS
from mrt.graph.values import rank_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.picture_inputs import made_of_bytes
from mrt.table.table import CalibrationTable

Floats = npt.NDArray[np.float64]
PASSES_INTEGERS_ON = ("MaxPool", "Concat")
"""Operators whose results are integers of their operands."""
ROUNDING_VARIANCE = 1 / 12  # of a rounding error, in steps squared
SEED = 0
SAMPLES_AT_ONCE = 2  # each sample has all its values in memory


def noise_of_channels(
    model: ir.Model,
    samples: Iterable[Sample],
    options: QuantizeOptions,
    scaled: frozenset[str],
    table: CalibrationTable | None = None,
) -> dict[str, Floats]:
    """Return the power of the noise of each image of 8 bits or less between layers, [C].

    The power is relative to that of the outputs and added up over samples. Values in
    `scaled` have a scale for each channel; others have one for all. A channel's integers
    reach to the greatest number of these samples, or as far as a table says. A value is
    left out if the derivative of an operator behind it is not known.
    """
    values = {
        str(value.name): value for value in _rounded_images(model, options)
    }
    backward = Backward(model)
    names = {name: _in_front_of_clip(value) for name, value in values.items()}
    added = sums_of_channels(backward, names)
    if not added:
        return {}
    noise: dict[str, Floats] = {}
    for name, (squares, greatest) in _measured(
        backward, added, samples
    ).items():
        value = values[name]
        bits = options.activation_bits_of(name)
        steps = options.steps_from_zero(bits, negative=_may_be_negative(value))
        if table is None:
            size = greatest if name in scaled else greatest.max()
        else:
            size = _reach(table, name)
        of_value = np.asarray(ROUNDING_VARIANCE * squares * (size / steps) ** 2)
        # Two errors half a step apart are together as large as one error of half a
        # step.
        of_value[paired_channels(value)] /= 2
        noise[name] = of_value
    return noise


def _reach(table: CalibrationTable, name: str) -> Floats:
    """Return the number to which each channel's integers reach: [C], or [1] for one scale."""
    scales = table.scales_of_channels(name) or (1.0,)
    return np.array(scales) * table.ranges[name].clipped_magnitude


def _measured(
    backward: Backward,
    added: Mapping[str, tuple[str, str]],
    samples: Iterable[Sample],
) -> dict[str, tuple[Floats, Floats]]:
    """Return squared derivatives, summed, and the largest magnitude, of each value: [C], [C]."""
    session = FloatSession(backward.model)
    squares = {name: np.zeros(1) for name in added}
    greatest = {name: np.zeros(1) for name in added}
    with ThreadPoolExecutor(SAMPLES_AT_ONCE) as pool:
        for results in pool.map(session.run, _with_signs(backward, samples)):
            for name, (of_squares, of_greatest) in added.items():
                squares[name] = squares[name] + results[of_squares]
                greatest[name] = np.maximum(
                    greatest[name], results[of_greatest]
                )
    return {name: (squares[name], greatest[name]) for name in added}


def _with_signs(
    backward: Backward, samples: Iterable[Sample]
) -> Iterator[Sample]:
    """Yield the samples with the random signs that the derivative needs."""
    random = np.random.Generator(np.random.PCG64(SEED))
    for sample in samples:
        signs = {
            name: random.choice([-1.0, 1.0], shape)
            for name, shape in backward.signs.items()
        }
        yield {**sample, **signs}


def _rounded_images(
    model: ir.Model, options: QuantizeOptions
) -> list[ir.Value]:
    """Return the images that become integers of 8 bits or less, and are not integers before.

    They are the results of clips, and all other operands of convolutions.
    """
    integers = set().union(*made_of_bytes(model.graph, model.graph))
    rounded: list[ir.Value] = []
    for node in model.graph:
        for value in node.outputs:
            if rank_of(value) != 4 or value.name in integers:
                continue
            bits = options.activation_bits_of(str(value.name))
            if bits <= 8 and _is_rounded(node, value):
                rounded.append(value)
    return rounded


def _is_rounded(node: ir.Node, value: ir.Value) -> bool:
    if node.op_type in CLIPS:
        return True
    if node.op_type in PASSES_INTEGERS_ON:
        return False
    return any(
        use.node.op_type == "Conv" and use.idx == 0 for use in value.uses()
    )


def _in_front_of_clip(value: ir.Value) -> str:
    """Return the name of the value, or of the operand of the clip that computes it.

    A number that the clip stops at a bound is not rounded.
    """
    node = value.producer()
    if node is None or node.op_type not in CLIPS:
        return str(value.name)
    operand = node.inputs[0]
    if operand is None or operand.producer() is None:
        return str(value.name)
    return str(operand.name)


def _may_be_negative(value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.op_type not in CLIPS:
        return True
    return node.op_type == "Clip" and clip_ends(node)[0] < 0
