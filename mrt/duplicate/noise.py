"""How much noise the rounding of each channel makes at the outputs, as a few samples tell."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession
from mrt.duplicate.add_duplicates import paired_channels
from mrt.duplicate.backward import Backward, sums_of_channels
from mrt.duplicate.channel_chains import CLIPS
from mrt.graph.canonical_values import clip_ends
from mrt.graph.values import rank_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.picture_inputs import made_of_bytes

Floats = npt.NDArray[np.float64]
HOLDING = ("MaxPool", "Concat")  # what they give are the integers that they take
ROUNDING = 1 / 12  # the variance of a rounding error, in steps squared
SEED = 0
AT_ONCE = 2  # samples; each has all its values in memory


def noise_of_channels(
    model: ir.Model,
    samples: Iterable[Sample],
    options: QuantizeOptions,
    scaled: frozenset[str],
) -> dict[str, Floats]:
    """[C] for each image of 8 bits or less between layers: the power of its noise over that of the outputs, added up over samples.

    Values in `scaled` have a scale for each channel, of the others one is shared. What lies in front of an operator whose
    derivative is not known is left out.
    """
    values = {str(value.name): value for value in _rounded(model, options)}
    backward = Backward(model)
    added = sums_of_channels(
        backward, {name: _held_by(value) for name, value in values.items()}
    )
    if not added:
        return {}
    session, random = (
        FloatSession(backward.model),
        np.random.Generator(np.random.PCG64(SEED)),
    )
    squares = {name: np.zeros(1) for name in added}
    greatest = {name: np.zeros(1) for name in added}
    signed = (
        {
            **sample,
            **{
                name: random.choice([-1.0, 1.0], shape)
                for name, shape in backward.signs.items()
            },
        }
        for sample in samples
    )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(session.run, signed):
            for name, outputs in added.items():
                squares[name] = squares[name] + found[outputs[0]]
                greatest[name] = np.maximum(greatest[name], found[outputs[1]])
    noise = {}
    for name, square in squares.items():
        steps = options.steps_from_zero(
            options.activation_bits_of(name), negative=_may_be_negative(values[name])
        )
        size = greatest[name] if name in scaled else greatest[name].max()
        noise[name] = np.asarray(ROUNDING * square * (size / steps) ** 2)
        noise[name][paired_channels(values[name])] /= (
            2  # two errors half a step apart, as large as one of half a step
        )
    return noise


def _rounded(model: ir.Model, options: QuantizeOptions) -> list[ir.Value]:
    """The images that become integers of 8 bits or less: what clips give, and what else convolutions read; bytes are integers."""
    exact = set().union(*made_of_bytes(model.graph, model.graph))
    return [
        value
        for node in model.graph
        for value in node.outputs
        if rank_of(value) == 4
        and options.activation_bits_of(str(value.name)) <= 8
        and value.name not in exact
        if node.op_type in CLIPS
        or (
            node.op_type not in HOLDING
            and any(use.node.op_type == "Conv" and use.idx == 0 for use in value.uses())
        )
    ]


def _held_by(value: ir.Value) -> str:
    """The value itself, or what a clip makes it of: a number that is held at an end is not rounded."""
    node = value.producer()
    if (
        node is not None
        and node.op_type in CLIPS
        and node.inputs[0] is not None
        and node.inputs[0].producer() is not None
    ):
        value = node.inputs[0]
    return str(value.name)


def _may_be_negative(value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.op_type not in CLIPS:
        return True
    return node.op_type == "Clip" and clip_ends(node)[0] < 0
