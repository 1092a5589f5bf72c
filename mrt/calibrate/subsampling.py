"""Some rows of a large image stand for all: neighbouring numbers are much alike, so fewer show how they are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ENOUGH_OF_ALL_SAMPLES = 2**22  # numbers of one value, over all samples
ENOUGH_OF_ONE_SAMPLE = 2**15  # no sample is cut below this
COARSER = 8  # times fewer numbers of a value that has little effect


@dataclass(frozen=True)
class Subsampling:
    """Keeps about `most` numbers of each sample of a value."""

    most: int

    @classmethod
    def of(cls, samples: int) -> Subsampling:
        """The subsampling that suits this number of samples."""
        share = ENOUGH_OF_ALL_SAMPLES // max(samples, 1)
        return cls(max(ENOUGH_OF_ONE_SAMPLE, share))

    def subsample(
        self, values: npt.NDArray[Any], sample: int
    ) -> npt.NDArray[Any]:
        """Rows at equal distances of an image [N,C,H,W] with more than `most` numbers; other arrays unchanged.

        Each sample gives other rows in turn, so that all rows count alike: the first and
        the last rows of an image are unlike the rest.
        """
        return _rows(values, sample, self.most)

    def coarse_subsample(
        self, values: npt.NDArray[Any], sample: int
    ) -> npt.NDArray[Any]:
        """As `subsample`, for a value that has little effect."""
        return _rows(values, sample, self.most // COARSER)


def _rows(values: npt.NDArray[Any], sample: int, most: int) -> npt.NDArray[Any]:
    if values.ndim != 4 or values.size <= most:
        return values
    height = values.shape[2]
    step = min(-(-values.size // most), height)
    return np.ascontiguousarray(values[:, :, sample % step :: step])
