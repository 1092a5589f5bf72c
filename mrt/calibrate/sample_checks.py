"""Finds, while calibration runs the float model, what makes samples doubtful: too few, all alike, or answered by guessing."""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.samples import Sample, Samples

_FEWEST = 20  # samples that distinguish a classifier from guessing
_DEVIATIONS = 2  # of the number of hits by guessing


class SampleChecks:
    """A calibration callback that compares samples with each other, and the answers with the labels."""

    def __init__(self, samples: Samples, output: str) -> None:
        self._count, self._source = len(samples), samples.source
        self._labels = samples.labels
        self._output = output
        self._forget()

    def _forget(self) -> None:
        self._first: Sample | None = None
        self._last = -1
        self._differ = False  # a sample from the first
        self._vary = False  # numbers within a sample
        self._hits = 0
        self._answered = 0
        self._classes = 0

    def observe(
        self, index: int, sample: Sample, name: str, tensor: ObservedTensor
    ) -> None:
        """Take one value of one run of the float model."""
        if index != self._last and not (self._differ and self._vary):
            self._compare(sample)
        self._last = index
        if name == self._output and self._labels is not None:
            self._answer(tensor.values, self._labels[index])

    def for_block(self) -> SampleChecks:
        """Return checks of some of the samples, which have seen none."""
        block = copy(self)
        block._forget()
        return block

    def merge(self, block: SampleChecks) -> None:
        """Take what a block's checks have seen, as if its samples had come here."""
        if block._first is not None:
            self._compare(block._first)
        self._differ |= block._differ
        self._vary |= block._vary
        self._hits += block._hits
        self._answered += block._answered
        self._classes = max(self._classes, block._classes)

    def _compare(self, sample: Sample) -> None:
        if self._first is None:
            self._first = {name: array.copy() for name, array in sample.items()}
        self._differ |= any(
            not np.array_equal(array, self._first[name])
            for name, array in sample.items()
        )
        self._vary |= any(
            array.size == 1 or np.ptp(array) > 0 for array in sample.values()
        )

    def _answer(self, values: np.ndarray, label: int) -> None:
        if sum(size > 1 for size in values.shape) != 1:
            return
        self._classes = values.size
        self._answered += 1
        self._hits += int(values.reshape(-1).argmax()) == label

    def doubts(self) -> list[str]:
        """A sentence for everything that is doubtful."""
        count, source = self._count, self._source
        doubts: list[str] = []
        if self._first is not None and not self._vary:
            doubts.append(
                f"{source}: all numbers of a sample are equal, as in pictures of one colour; "
                "ranges measured on them say nothing of real samples"
            )
        if count == 1:
            doubts.append(
                f"{source}: one sample; give about 100, or other samples will lie outside of its ranges"
            )
        elif self._first is not None and not self._differ:
            doubts.append(
                f"{source}: all {count} samples are the same; ranges measured on them hold for this one alone"
            )
        if self._answered == count:
            doubts += near_chance(self._hits, count, self._classes, source)
        return doubts


def near_chance(hits: int, count: int, classes: int, source: str) -> list[str]:
    """Return a sentence if, on so many samples, a float model cannot be distinguished from guessing."""
    if count < _FEWEST or classes < 2:
        return []
    chance = 1 / classes
    spread = math.sqrt(count * chance * (1 - chance))
    if hits > count * chance + _DEVIATIONS * spread:
        return []
    return [
        f"{source}: even in float, the model finds the class of only {100 * hits / count:.1f} % of {count} samples, "
        f"where guessing finds {100 * chance:.1f} %. Are the samples prepared as in training (--preset, --scale, --mean, --std, "
        "--color, --layout), and are the labels the model's numbers of classes?"
    ]
