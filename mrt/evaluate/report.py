"""The result of comparing float and integer.

Its JSON keys are part of the command's interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Accuracy:
    """Fractions of the samples whose class was found.

    They are None without labels or without a vector of classes.
    """

    top1: float | None
    top5: float | None
    samples_per_second: float


@dataclass(frozen=True)
class Report:
    """The figures of float and integer.

    `agreement` is the fraction of equal top-1 classes in the first output.
    """

    samples: int
    of_float: Accuracy
    of_integer: Accuracy
    agreement: float | None
    # Of each output, first output first; None where nothing differs.
    snr_db: Mapping[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return one flat object; `snr_db` is that of the first output."""
        return {
            "samples": self.samples,
            "float.top1": self.of_float.top1,
            "float.top5": self.of_float.top5,
            "integer.top1": self.of_integer.top1,
            "integer.top5": self.of_integer.top5,
            "agreement": self.agreement,
            "snr_db": next(iter(self.snr_db.values())),
            "snr_db.outputs": dict(self.snr_db),
            "float.samples_per_second": self.of_float.samples_per_second,
            "integer.samples_per_second": self.of_integer.samples_per_second,
        }
