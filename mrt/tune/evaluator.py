"""Compares programs with the float model on held-back samples.

It measures the quantities that a target limits, and the distance between two programs.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession
from mrt.errors import BadData
from mrt.evaluate.class_output import choose_class_output
from mrt.evaluate.padding import real_tokens
from mrt.evaluate.scores import Noise
from mrt.exact.ordered_sum import total
from mrt.graph.class_free import class_free
from mrt.tune.margins import (
    ClassMargins,
    expected_disagreement,
    is_distribution,
    relative_error,
)

Outputs = dict[str, npt.NDArray[Any]]
# At least this share of the disagreements is expected to cost a right answer.
LEAST_LOSS = 0.25
# The share of the samples, those with the lowest margins, that the loss of a disagreement
# is estimated on.
LOW_MARGINS = 1 / 3


@dataclass(frozen=True)
class ClassScore:
    """The score of a classifier.

    `drop` and `expected_drop` are points of top-1 (0 without labels). `relative_error`
    is the standard error of what is expected.
    """

    agreement: float
    expected_disagreement: float
    labelled: bool
    drop: float
    expected_drop: float
    samples: int
    relative_error: float


@dataclass(frozen=True)
class Score:
    """The score of a program.

    `worst_snr_db` is the least over the outputs: infinite where nothing differs, minus infinite
    where an output differs that is 0 in float on all samples.
    """

    worst_snr_db: float
    classes: ClassScore | None


@dataclass(frozen=True)
class Pending:
    """Runs under way."""

    futures: Sequence[Future[Outputs]]

    def outputs(self) -> list[Outputs]:
        """Wait for the runs, and return their results in the order of the samples."""
        return [future.result() for future in self.futures]


class Evaluator:
    """Scores programs by the float answers. With `classes`, one output is judged as a classifier's."""

    def __init__(
        self,
        model: ir.Model,
        samples: Sequence[Sample],
        pool: ThreadPoolExecutor,
        *,
        labels: Sequence[int] | None = None,
        others: Iterable[Sample] = (),
        classes: bool = False,
        class_output: str | None = None,
    ) -> None:
        session = FloatSession(model)
        self.samples = samples
        self._pool = pool
        self._real = [session.run(sample) for sample in samples]
        self._class_output = session.names[0]
        self._labels = labels
        self._class_margins: list[ClassMargins] = []
        self._margins: list[float] = []
        if classes:
            self._class_output = _scores_of_classes(
                self._real[0], class_output, class_free(model)
            )
            self._class_margins = [
                self._class_margins_of(real) for real in self._real
            ]
            more = [
                self._class_margins_of(session.run(sample)) for sample in others
            ]
            self._margins = [
                float(margins_of_sample.margins[0])
                for margins_of_sample in (*self._class_margins, *more)
            ]

    def _class_margins_of(self, real: Outputs) -> ClassMargins:
        return ClassMargins.of(real[self._class_output])

    def start(self, program: Proven, count: int | None = None) -> Pending:
        """Begin to run a program on the first `count` samples, or on all."""
        runs, source = machine.choose(program), program.program

        def one(sample: Sample) -> Outputs:
            return dict(
                boundary.dequantize(
                    source, runs.run(boundary.quantize(source, sample))
                )
            )

        return Pending(
            [self._pool.submit(one, sample) for sample in self.samples[:count]]
        )

    def score(self, program: Proven) -> Score:
        """Score a program on all samples."""
        outputs = self.start(program).outputs()
        noises = {name: Noise() for name in self._real[0]}
        for sample, real, output in zip(
            self.samples, self._real, outputs, strict=True
        ):
            for name, noise in noises.items():
                tokens = real_tokens(sample, real[name])
                noise.add(real[name], output[name], tokens)
        ratios = map(_decibels, noises.values())
        return Score(
            min(ratios),
            self._class_score(outputs) if self._class_margins else None,
        )

    def _class_score(self, outputs: Sequence[Outputs]) -> ClassScore:
        vectors = [output[self._class_output].reshape(-1) for output in outputs]
        noises = [
            margins_of_sample.noise(vector)
            for margins_of_sample, vector in zip(
                self._class_margins, vectors, strict=True
            )
        ]
        expected = expected_disagreement(
            self._margins,
            [math.sqrt(float(np.mean(noise**2))) for noise in noises],
        )
        best = [int(np.argmax(vector)) for vector in vectors]
        same = [
            int(margins_of_sample.classes[0]) == winner
            for margins_of_sample, winner in zip(
                self._class_margins, best, strict=True
            )
        ]
        drop = 0.0
        if self._labels is not None:
            right = sum(
                int(c.classes[0]) == label
                for c, label in zip(
                    self._class_margins, self._labels, strict=True
                )
            )
            drop = (
                100
                * (right - sum(map(int.__eq__, best, self._labels)))
                / len(best)
            )
        return ClassScore(
            sum(same) / len(same),
            expected,
            self._labels is not None,
            drop,
            100 * expected * self._loss(),
            len(same),
            relative_error(len(self._margins)),
        )

    def _loss(self) -> float:
        """Return the expected loss of top-1 for each disagreement.

        It is how much more often float's best class is right than its second, on the
        samples where the two are close.
        """
        if self._labels is None:
            return 1.0
        pairs = sorted(
            zip(self._class_margins, self._labels, strict=True),
            key=lambda pair: float(pair[0].margins[0]),
        )
        close = pairs[: max(1, math.ceil(len(pairs) * LOW_MARGINS))]
        ahead = sum(
            (int(c.classes[0]) == label) - (int(c.classes[1]) == label)
            for c, label in close
        )
        return max(ahead / len(close), LEAST_LOSS)

    def distance(
        self, left: Sequence[Outputs], right: Sequence[Outputs]
    ) -> float:
        """Return the power of the difference between two programs' outputs.

        It covers only the outputs that the evaluator compares. It has no unit: it
        serves to compare programs.
        """
        return math.fsum(
            self._apart(place, a, b)
            for place, (a, b) in enumerate(zip(left, right, strict=True))
        )

    def _apart(self, place: int, left: Outputs, right: Outputs) -> float:
        if self._class_margins:
            return _class_distance(
                left[self._class_output], right[self._class_output]
            )
        apart = 0.0
        for name, exact in self._real[place].items():
            tokens = real_tokens(self.samples[place], exact)
            counted = 1.0 if tokens is None else tokens
            signal = total((exact.astype(np.float64) * counted) ** 2)
            error = (left[name] - right[name]) * counted
            apart += total(error**2) / signal if signal else 0.0
        return apart


def _decibels(noise: Noise) -> float:
    """Return the signal to noise of an output as a number to compare: infinite without noise, minus infinite without signal."""
    if not noise.noise:
        return math.inf
    if not noise.signal:
        return -math.inf
    return -10 * math.log10(noise.noise / noise.signal)


def _scores_of_classes(
    real: Outputs, class_output: str | None, without: Container[str]
) -> str:
    """The name of the output that holds a score for each class; BadData where there is none."""
    chosen = choose_class_output(real, class_output, without)
    if chosen is not None and not chosen.is_label:
        return chosen.name
    listed = ", ".join(
        f"'{name}' of shape {list(output.shape)}"
        for name, output in real.items()
    )
    raise BadData(
        f"{listed} is no vector of classes: use --target-snr"
        if len(real) == 1
        else f"it is not plain which output holds a score for each class ({listed}): "
        "name it with --class-output, or use --target-snr"
    )


def _class_distance(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
    """Return a squared distance that leaves out a difference common to all classes.

    Such a difference cannot change the order of the classes. Between probabilities it
    is the squared Hellinger distance, up to a factor.
    """
    if is_distribution(left) and is_distribution(right):
        return total((np.sqrt(left) - np.sqrt(right)) ** 2)
    return float(np.var(left - right)) * left.size
