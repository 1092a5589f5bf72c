"""Brings float's outputs to the rows of a program's, which always gives the most that a NonMaxSuppression can.

Float's own rows come first. The others are what the float model gives where its NonMaxSuppression has that many rows: those of
no box, so that a box that the program alone keeps counts as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession, SessionSource
from mrt.errors import BadModel
from mrt.rewrite.fixed_rows import with_fixed_rows

Array = npt.NDArray[Any]
Outputs = dict[str, Array]


class AllRows:
    """A session of the float model that gives all rows; there is none for a model that chooses among no boxes."""

    def __init__(self, source: SessionSource | None) -> None:
        self._session = None if source is None else FloatSession(source)

    @staticmethod
    def source(model: ir.Model) -> SessionSource | None:
        """Return all that the session is opened from, here or on another machine."""
        fixed = with_fixed_rows(model)
        return None if fixed is None else SessionSource.of(fixed)

    def complete(self, sample: Sample, real: Outputs) -> Outputs:
        """Return float's outputs of a sample with the rows that they lack."""
        if self._session is None:
            return real
        full = self._session.run(sample)
        return {
            name: _completed(values, full[name])
            for name, values in real.items()
        }

    def like(
        self, sample: Sample, real: Outputs, integer: Mapping[str, Array]
    ) -> Outputs:
        """Return float's outputs of a sample in the shapes of the program's; BadModel where they do not fit."""
        if not _misfits(real, integer):
            return real
        real = self.complete(sample, real)
        for name in _misfits(real, integer):
            raise BadModel(
                f"output '{name}': float gives {list(real[name].shape)} of a sample, the program "
                f"{list(integer[name].shape)}; give the program that was made from this model"
            )
        return real


def _misfits(real: Outputs, integer: Mapping[str, Array]) -> list[str]:
    """Return the outputs that have another shape in the program."""
    return [
        name
        for name, values in real.items()
        if values.shape != integer[name].shape
    ]


def _completed(real: Array, full: Array) -> Array:
    """Return `full` with float's own numbers in front, if it has room for them."""
    pairs = zip(real.shape, full.shape, strict=False)
    if real.ndim != full.ndim or any(own > most for own, most in pairs):
        return real
    completed = full.astype(real.dtype)
    completed[tuple(map(slice, real.shape))] = real
    return np.asarray(completed)
