"""Whether two float models give the same answers: the one of the file, and the one that rewriting made of it.

A program is compared with the rewritten model, so that a mistake of rewriting would not
show in any figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession
from mrt.evaluate.all_rows import AllRows, Outputs
from mrt.evaluate.limits import LEAST_EQUAL
from mrt.evaluate.scores import Equality, Noise

ROUNDING_DECIBELS = 40.0
"""Float sums in another order differ by far less; a mistake, by far more."""


def answers(model: ir.Model, samples: Iterable[Sample]) -> list[Outputs]:
    """Return the outputs of each sample, with all rows that a program gives; the sessions are gone afterwards."""
    session, rows = FloatSession(model), AllRows(AllRows.source(model))
    return [rows.complete(sample, session.run(sample)) for sample in samples]


def differences(
    expected: Sequence[Outputs], actual: Sequence[Outputs]
) -> dict[str, str]:
    """Return how far apart outputs of the same name are, of those that differ by more than float rounding."""
    apart: dict[str, str] = {}
    names = [name for name in expected[0] if name in actual[0]]
    for name in names:
        difference = _difference(
            [outputs[name] for outputs in expected],
            [outputs[name] for outputs in actual],
        )
        if difference is not None:
            apart[name] = difference
    return apart


def _difference(
    expected: Sequence[npt.NDArray[np.generic]],
    actual: Sequence[npt.NDArray[np.generic]],
) -> str | None:
    """Return in words how one output differs over the samples; None if it does not."""
    pairs = list(zip(expected, actual, strict=True))
    if any(one.shape != other.shape for one, other in pairs):
        return "another shape"
    if expected[0].dtype.kind != "f":
        equality = Equality()
        for one, other in pairs:
            equality.add(one, other)
        if equality.fraction >= LEAST_EQUAL:
            return None
        return f"{100 * equality.fraction:.1f} % of integers equal"
    noise = Noise()
    for one, other in pairs:
        noise.add(one, other)
    if not math.isfinite(noise.signal) or noise.noise == 0:
        return None
    if not math.isfinite(noise.noise):
        return "numbers that are not finite"
    decibels = noise.decibels()
    if decibels is None:
        return "0 in the file alone"
    if decibels >= ROUNDING_DECIBELS:
        return None
    return f"SNR {decibels:.1f} dB"
