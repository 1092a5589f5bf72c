"""Counts the samples whose answer differs between float and integers, and keeps those of which float was surest."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from mrt.calibrate.samples import Sample
from mrt.evaluate.class_output import ClassOutput, Outputs
from mrt.evaluate.compare import SampleResult
from mrt.page.limits import ANSWERS


@dataclass(frozen=True)
class Answer:
    """A sample whose class changed; `margin` is by how much float preferred its own, of the spread of its scores."""

    index: int
    sample: Sample
    label: int | None
    of_float: int
    of_integer: int
    margin: float


@dataclass
class Answers:
    """Receives every sample; holds few."""

    changed: int = 0
    # Where the labels are known: right in float alone, right in integers alone.
    lost: int = 0
    won: int = 0
    _surest: list[tuple[float, int, Answer]] = field(default_factory=list)

    def add(self, result: SampleResult) -> None:
        """Count one sample."""
        classes = result.classes
        if classes is None:
            return
        real = classes.best_classes(result.of_float)[0]
        integer = classes.best_classes(result.of_integer)[0]
        if real == integer:
            return
        self.changed += 1
        self.lost += result.label == real
        self.won += result.label == integer
        margin = _margin(classes, result.of_float)
        answer = Answer(
            result.index, result.sample, result.label, real, integer, margin
        )
        heapq.heappush(self._surest, (margin, -result.index, answer))
        if len(self._surest) > ANSWERS:
            heapq.heappop(self._surest)

    def surest(self) -> list[Answer]:
        """The samples kept, the surest first."""
        return [ranked[2] for ranked in sorted(self._surest, reverse=True)]


def _margin(classes: ClassOutput, outputs: Outputs) -> float:
    """How far the best score is above the second, of the distance from the worst to the best."""
    if classes.is_label:
        return 0.0
    scores = np.sort(outputs[classes.name].reshape(-1).astype(np.float64))
    distance = float(scores[-1] - scores[0])
    return float(scores[-1] - scores[-2]) / distance if distance > 0 else 0.0
