"""Refuses a sample for which float's own output holds NaN or infinity: no integers can be compared with these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate.observers import NO_SUCH_NUMBERS
from mrt.calibrate.samples import Sample, Samples
from mrt.errors import BadData
from mrt.evaluate.padding import real_tokens

Outputs = Mapping[str, npt.NDArray[Any]]


def check_finite(
    sample: Sample, outputs: Outputs, samples: Samples, index: int
) -> None:
    """Raise BadData if one of float's outputs of a sample holds such numbers, apart from those of padding."""
    for name, values in outputs.items():
        bad = not_finite(sample, values)
        if bad:
            where = f"{samples.source}, {samples.name_of(index)}"
            raise BadData(
                f"{where}: float's output '{name}': {bad} of {values.size} values are NaN or infinite; {NO_SUCH_NUMBERS}"
            )


def not_finite(sample: Sample, values: npt.NDArray[Any]) -> int:
    """Return how many numbers of an output are NaN or infinite, of those that count."""
    if values.dtype.kind != "f":
        return 0
    bad = ~np.isfinite(values)
    tokens = real_tokens(sample, values)
    return int(np.count_nonzero(bad if tokens is None else bad & tokens))
