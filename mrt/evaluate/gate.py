"""Limits that a comparison must meet, for continuous integration.

A limit is written KEY=X, where KEY is a figure of the report's JSON, or `snr`: that of the
worst output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mrt.errors import BadOption
from mrt.evaluate.evaluation import Evaluation

FRACTIONS = (
    "agreement",
    "integer.top1",
    "integer.top5",
    "float.top1",
    "float.top5",
)
FIGURES = (*FRACTIONS, "snr", "snr_db", "integer.metric", "float.metric")


@dataclass(frozen=True)
class Gate:
    """A limit: `figure` must be at least `least`."""

    figure: str
    least: float

    def missed(self, report: Evaluation) -> str | None:
        """Return a sentence about the figure if it misses the limit, else None.

        A figure that is not known misses. Outputs without any difference meet any SNR.
        """
        figures = {**report.to_json(), "snr": report.worst_snr_db}
        value = figures[self.figure]
        if value is None:
            if self.figure.startswith("snr") and _nothing_differs(report):
                return None
            return f"{self.figure} is not known for this model and data; expected at least {self.least:g}"
        if self.figure.startswith("snr") and report.noise.zeros_differ:
            return (
                f"{self.figure}: of an output float gives nothing but 0, and the program other numbers; "
                f"expected at least {self.least:g}"
            )
        return (
            None
            if value >= self.least
            else f"{self.figure} is {value:.6g}; expected at least {self.least:g}"
        )


def _nothing_differs(report: Evaluation) -> bool:
    """Whether there are outputs of reals, all the same on both sides."""
    if report.noise.zeros_differ or not report.snr_db:
        return False
    return all(ratio is None for ratio in report.snr_db.values())


def _number(text: str, *, is_fraction: bool) -> float:
    """A number, or a percentage where a fraction is meant; NaN for anything else."""
    try:
        if is_fraction and text.rstrip().endswith("%"):
            return float(text.rstrip()[:-1]) / 100
        return float(text)
    except ValueError:
        return math.nan


def parse_gate(text: str) -> Gate:
    """Parse KEY=X, or raise BadOption; a fraction may be a percentage, and KEY>=X means the same."""
    figure, equals, number = text.replace(">=", "=").partition("=")
    least = _number(number, is_fraction=figure in FRACTIONS)
    if figure not in FIGURES or not equals or not math.isfinite(least):
        raise BadOption(
            f"--require {text}: expected KEY=X with a number, and KEY one of {', '.join(FIGURES)}"
        )
    if figure in FRACTIONS and least > 1:
        raise BadOption(
            f"--require {text}: a share of the samples is at most 1; write 97 % as {figure}=97% or {figure}=0.97"
        )
    return Gate(figure, least)
