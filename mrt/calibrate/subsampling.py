"""Chooses some rows of a large image to represent all.

Neighbouring numbers are much alike, so some rows have nearly the distribution of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ENOUGH_OF_ALL_SAMPLES = 2**22  # enough numbers of one value, over all samples
ENOUGH_OF_ONE_SAMPLE = 2**15  # no sample is reduced below this
COARSER = 8  # a value that has little effect has so many times fewer numbers


@dataclass(frozen=True)
class Subsampling:
    """Keeps about `most` numbers of each sample of a value."""

    most: int

    @classmethod
    def of(cls, samples: int) -> Subsampling:
        """Return the subsampling that suits this number of samples."""
        share = ENOUGH_OF_ALL_SAMPLES // max(samples, 1)
        return cls(max(ENOUGH_OF_ONE_SAMPLE, share))

    def subsample(
        self, values: npt.NDArray[Any], sample: int
    ) -> npt.NDArray[Any]:
        """Return some rows of an image [N,C,H,W] if it has more than `most` numbers.

        The rows lie at equal distances. Other arrays are returned unchanged. Each
        sample contributes other rows in turn, so that all rows have the same weight:
        the first and the last rows of an image are unlike the rest.
        """
        return _rows(values, sample, self.most)

    def coarse_subsample(
        self, values: npt.NDArray[Any], sample: int
    ) -> npt.NDArray[Any]:
        """Return a subsample as `subsample` does, but of a value that has little effect."""
        return _rows(values, sample, self.most // COARSER)


def _rows(values: npt.NDArray[Any], sample: int, most: int) -> npt.NDArray[Any]:
    if values.ndim != 4 or values.size <= most:
        return values
    height = values.shape[2]
    step = min(-(-values.size // most), height)
    return np.ascontiguousarray(values[:, :, sample % step :: step])
