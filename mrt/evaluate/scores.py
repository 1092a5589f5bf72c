"""The counts behind a report, added up sample by sample.

They are the classes found, and the power of signal and noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.exact.ordered_sum import total

Array = npt.NDArray[Any]

FEWEST_FOR_A_MEAN = (
    4  # samples; of fewer, a mean takes up too much of the change
)
DEVIATIONS = 2  # standard errors: a figure is off by more once in twenty
FEWEST_TO_BE_CONSTANT = 4  # samples; of fewer, all may happen to be of one kind
NEARLY = 1e-3
"""Of a probability: from a logit of 7 on, a Softmax turns noise of a tenth into less than 1e-4."""


def ranking(output: Array, count: int) -> list[int] | None:
    """Return the `count` best classes, best first; of equals the lower index comes first.

    Return None if `output` is not a vector of classes.
    """
    if sum(size > 1 for size in output.shape) != 1:
        return None
    best = np.argsort(-output.reshape(-1).astype(np.float64), kind="stable")
    return [int(index) for index in best[:count]]


@dataclass
class Hits:
    """How often the true class was the best, or among the best five."""

    top1: int = 0
    top5: int = 0

    def add(self, label: int, best: list[int]) -> None:
        """Count one sample."""
        self.top1 += label == best[0]
        self.top5 += label in best[:5]


@dataclass
class Noise:
    """The power of a float value, and of the integer one's difference from it."""

    signal: float = 0.0
    noise: float = 0.0

    def add(
        self, real: Array, integer: Array, counted: Array | None = None
    ) -> None:
        """Add the numbers of one sample, or those that are `counted`, by booleans that broadcast to them."""
        exact = real.astype(np.float64)
        error = exact - integer
        if counted is not None:
            exact, error = (np.where(counted, it, 0.0) for it in (exact, error))
        self.signal += total(exact**2)
        self.noise += total(error**2)

    def decibels(self) -> float | None:
        """Return 10 log10(signal / noise).

        Return None where that is not a finite number, for example if nothing differs.
        """
        return ratio_in_decibels(self.signal, self.noise)


@dataclass
class OutputNoise(Noise):
    """The same of an output, and the power of its change: what distinguishes the samples.

    That is each element less its mean over them, which takes memory for an element each.
    A number that is about 200 for every sample has much power and may change little.
    """

    change: float = 0.0
    samples: int = 0
    _mean: Any = 0.0
    _counts: Any = 0  # samples, of each element
    _of_samples: list[Noise] = field(default_factory=list)

    def add(
        self, real: Array, integer: Array, counted: Array | None = None
    ) -> None:
        """Add the numbers of one sample; the mean as in Welford, Technometrics 4(3), 1962."""
        of_sample = Noise()
        of_sample.add(real, integer, counted)
        self._of_samples.append(of_sample)
        self.signal += of_sample.signal
        self.noise += of_sample.noise
        self.samples += 1
        is_counted = True if counted is None else counted
        exact = real.astype(np.float64)
        self._counts = self._counts + np.asarray(is_counted, np.int64)
        before = np.where(is_counted, exact - self._mean, 0.0)
        self._mean = self._mean + before / np.maximum(self._counts, 1)
        self.change += total(before * (exact - self._mean))

    def decibels_of_change(self) -> float | None:
        """Return 10 log10(change / noise); None too where the samples are too few."""
        if self.samples < FEWEST_FOR_A_MEAN:
            return None
        return ratio_in_decibels(self.change, self.noise)

    def least_decibels(self) -> float | None:
        """Return the decibels that other samples may have: with a noise, relative to the signal, that is greater by chance.

        Its standard error is that of the jackknife: from the ratios without each of the samples. None where there are
        no decibels, or too few samples to tell.
        """
        if self.samples < 2 or self.decibels() is None:
            return None
        without = [self._ratio_without(it) for it in self._of_samples]
        if math.inf in without:
            return -math.inf
        error = math.sqrt(self.samples - 1) * float(np.std(without))
        greatest = self.noise / self.signal + DEVIATIONS * error
        return -10 * math.log10(greatest) if greatest > 0 else None

    def decibels_of_outlier(self) -> float | None:
        """Return the decibels of the sample that has more noise than all others together; None where none has."""
        if self.samples < FEWEST_FOR_A_MEAN:
            return None
        noisiest = max(self._of_samples, key=lambda it: it.noise)
        is_outlier = 2 * noisiest.noise > self.noise
        return noisiest.decibels() if is_outlier else None

    def median_decibels(self) -> float | None:
        """Return the decibels of the median sample by itself, of those that are not 0 in float.

        None where there are few, or half of them have no noise.
        """
        ratios = [it.noise / it.signal for it in self._of_samples if it.signal]
        if len(ratios) < FEWEST_FOR_A_MEAN:
            return None
        return ratio_in_decibels(1.0, float(np.median(ratios)))

    def _ratio_without(self, sample: Noise) -> float:
        signal = self.signal - sample.signal
        return (self.noise - sample.noise) / signal if signal > 0 else math.inf


def ratio_in_decibels(signal: float, noise: float) -> float | None:
    """Return 10 log10(signal / noise); None where that is not a finite number."""
    ratio = signal / noise if signal > 0 < noise else 0.0
    return 10 * math.log10(ratio) if 0 < ratio < math.inf else None


@dataclass
class Equality:
    """How many elements of an output of integers or booleans are the same on both sides."""

    same: int = 0
    total: int = 0

    def add(self, real: Array, integer: Array) -> None:
        """Add one sample's."""
        exact = real.astype(np.float64)
        self.same += int(np.count_nonzero(exact == integer))
        self.total += real.size

    @property
    def fraction(self) -> float:
        """The fraction of equal elements; 1 where there are none."""
        return self.same / self.total if self.total else 1.0


@dataclass
class Constancy:
    """Whether float gives the outputs of the first sample for every other, too."""

    samples: int = 0
    changes: bool = False
    _first: dict[str, Array] = field(default_factory=dict)

    def add(self, outputs: Mapping[str, Array]) -> None:
        """Add one sample's outputs."""
        self.samples += 1
        if self.samples == 1:
            self._first = {name: it.copy() for name, it in outputs.items()}
        elif not self.changes:
            self.changes = not all(
                np.array_equal(self._first[name], values)
                for name, values in outputs.items()
            )

    @property
    def is_constant(self) -> bool:
        """Whether nothing changes, of enough samples to tell."""
        return self.samples >= FEWEST_TO_BE_CONSTANT and not self.changes


@dataclass
class Saturation:
    """In how many samples an output of probabilities is saturated: nearly 0 or 1 throughout.

    There, noise of what they are computed from hardly shows.
    """

    samples: int = 0
    saturated: int = 0
    exact: int = 0
    are_probabilities: bool = True

    def add(self, real: Array) -> None:
        """Add one sample's numbers."""
        low, high = (
            float(np.min(real, initial=1)),
            float(np.max(real, initial=0)),
        )
        if not 0 <= low <= high <= 1:
            self.are_probabilities = False
            return
        distance = float(np.max(np.minimum(real, 1 - real), initial=0))
        self.samples += 1
        self.saturated += distance < NEARLY
        self.exact += not np.any((real > 0) & (real < 1))

    @property
    def hides_noise(self) -> bool:
        """Whether all samples but one at most are saturated, and not only since they are votes, which are 0 or 1."""
        enough = self.samples >= FEWEST_TO_BE_CONSTANT
        is_rest_saturated = self.samples - self.saturated <= 1
        return (
            self.are_probabilities
            and enough
            and is_rest_saturated
            and self.exact < self.saturated
        )
