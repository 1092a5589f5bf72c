"""Of large images some rows are enough to learn how numbers are spread: neighbours say much the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

OF_ALL_SAMPLES = 2**22  # numbers of one value that are enough, over all samples
OF_ONE_SAMPLE = 2**15  # of which no sample gives fewer, if it has as many
HARDLY = 8  # times fewer of a value that hardly matters


@dataclass(frozen=True)
class Subsampling:
    """Leaves of one value `most` numbers or so of each sample."""

    most: int

    @classmethod
    def of(cls, samples: int) -> Subsampling:
        """As suits so many samples."""
        return cls(max(OF_ONE_SAMPLE, OF_ALL_SAMPLES // max(samples, 1)))

    def few(self, values: npt.NDArray[Any], sample: int) -> npt.NDArray[Any]:
        """Of an image [N,C,H,W] with more numbers than that, rows at equal distances; anything else as it is.

        They are other rows of each sample, in turn, so that all count alike: the first and the last are unlike the rest.
        """
        return _rows(values, sample, self.most)

    def fewer(self, values: npt.NDArray[Any], sample: int) -> npt.NDArray[Any]:
        """As `few`, of a value that hardly matters."""
        return _rows(values, sample, self.most // HARDLY)


def _rows(values: npt.NDArray[Any], sample: int, most: int) -> npt.NDArray[Any]:
    if values.ndim != 4 or values.size <= most:
        return values
    step = min(-(-values.size // most), values.shape[2])
    return np.ascontiguousarray(values[:, :, sample % step :: step])
