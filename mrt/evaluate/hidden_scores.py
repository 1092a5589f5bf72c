"""Measures the scores that saturated probabilities are made of: what a Softmax or Sigmoid reads shows noise that they hide."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray, Meaning
from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from mrt.calibrate.samples import Samples, some_of
from mrt.calibrate.session import Array, FloatSession
from mrt.evaluate.reals import in_order_of, real_of
from mrt.evaluate.scores import Noise
from mrt.exact.ordered_sum import row_sums
from mrt.graph.masked_logits import names_behind_masks
from mrt.graph.scores_of_probabilities import Scores, scores_of_probabilities

MOST_SAMPLES = 32
"""On which they are measured, as many as a conversion measures all on."""


def hidden_scores_db(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    outputs: Collection[str],
) -> dict[str, float | None]:
    """Return the signal to noise of the scores of these outputs, by output, where the program has them; None where nothing differs.

    Both sides run once more, on some of the samples.
    """
    measured = _with_scores(model, program, outputs)
    if not measured:
        return {}
    names = sorted({str(it.scores.value.name) for it in measured.values()})
    session, runs = FloatSession(model, names), machine.choose(program)
    for sample in some_of(samples, MOST_SAMPLES):
        watcher = _Watcher(measured, session.run(sample))
        integers = boundary.quantize(program.program, sample)
        runs.run(integers, observe=watcher.observe)
    return {name: it.decibels for name, it in measured.items()}


@dataclass
class _Measured:
    """The scores of one output: the program's values that stand for them, each with its noise."""

    scores: Scores
    meanings: Mapping[int, Meaning]
    noises: dict[int, Noise] = field(default_factory=dict)

    @property
    def decibels(self) -> float | None:
        """The signal to noise of the worst of them; None where nothing differs."""
        ratios = (noise.decibels() for noise in self.noises.values())
        return min((it for it in ratios if it is not None), default=None)

    def add(self, number: int, real: Array, value: IntArray) -> None:
        """Add one sample's, without what is common to all numbers along the axis on which that does not count."""
        integer = in_order_of(real, real_of(value, self.meanings[number]))
        finite = np.isfinite(real)  # others are probabilities of 0 or 1
        noise = self.noises.setdefault(number, Noise())
        noise.add(
            self._centred(np.where(finite, real, 0)),
            self._centred(np.where(finite, integer, 0)),
        )

    def _centred(self, values: Array) -> Array:
        exact, axis = values.astype(np.float64), self.scores.free_axis
        if axis is None:
            return exact
        moved = np.moveaxis(exact, axis, -1)
        rows = moved.reshape(-1, moved.shape[-1])
        means = row_sums(rows)[:, None] / rows.shape[1]
        return np.asarray(rows - means)


@dataclass(frozen=True)
class _Watcher:
    """Adds what a program computes of scores beside float's values of the same sample."""

    measured: Mapping[str, _Measured]
    real: Mapping[str, Array]

    def observe(self, number: int, value: IntArray) -> None:
        """Take the value of one instruction."""
        for it in self.measured.values():
            if number in it.meanings:
                it.add(number, self.real[str(it.scores.value.name)], value)


def _with_scores(
    model: ir.Model, program: Proven, outputs: Collection[str]
) -> dict[str, _Measured]:
    """Return the scores of these outputs that both sides have; masked ones are none, since masks are no numbers to compare."""
    masked = names_behind_masks(list(model.graph))
    measured: dict[str, _Measured] = {}
    for output in model.graph.outputs:
        name = str(output.name)
        scores = scores_of_probabilities(output) if name in outputs else None
        if scores is None or scores.value.name in masked:
            continue
        if scores.value.producer() is None:
            continue  # an input has no noise but its own rounding
        meanings = _meanings(program, name, scores.value)
        if meanings:
            measured[name] = _Measured(scores, meanings)
    return measured


def _meanings(
    proven: Proven, output: str, scores: ir.Value
) -> dict[int, Meaning]:
    """Return the values, by number, that stand for scores and from which the output is computed without another one."""
    program = proven.program
    metadata, first = program.metadata, program.first_instruction
    sources = {} if metadata is None else metadata.values
    meanings: dict[int, Meaning] = {}
    waiting = [it.value for it in program.outputs if it.name == output]
    seen = set(waiting)
    while waiting:
        number = waiting.pop()
        if number < first:
            continue
        meaning = sources.get(number)
        if meaning is not None and meaning.source == scores.name:
            meanings[number] = meaning
            continue
        operands = set(program.instructions[number - first].operands) - seen
        waiting += operands
        seen |= operands
    return {
        number: meaning
        for number, meaning in meanings.items()
        if _fits(proven, number, meaning, scores)
    }


def _fits(
    proven: Proven, number: int, meaning: Meaning, scores: ir.Value
) -> bool:
    """Whether a value has as many elements as float's, and a meaning for each of its channels."""
    if scores.shape is None or not scores.shape.is_static():
        return False
    kind = proven.types[number]
    has_meaning = len(meaning.channels) in (0, kind.channels)
    return has_meaning and kind.elements == np.prod(scores.shape.numpy())
