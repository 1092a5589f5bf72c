"""Computes the printed figures from readings: medians, ratios, shares of the peak, gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.footprint import Footprint

OURS = "engine"
FAST = "engine-fast-on-avx2"
REFERENCE = "reference"


@dataclass(frozen=True)
class Row:
    """The readings of one contender with one model on some threads.

    There are none where `note` gives the reason why it took no part.
    """

    contender: str
    readings_ms: tuple[float, ...] = ()
    busy_cores: float | None = None
    snr_db: float | None = None  # of its answer, against onnxruntime in float32
    note: str = ""

    @property
    def median_ms(self) -> float | None:
        """The median of the readings."""
        return median(self.readings_ms) if self.readings_ms else None


@dataclass(frozen=True)
class Measured:
    """One model on some threads."""

    threads: int
    multiply_accumulates: int
    rows: tuple[Row, ...]
    peak_readings: tuple[float, ...] = ()  # giga-MAC/s

    def row(self, contender: str) -> Row | None:
        """Return the row of a contender that took part."""
        return next(
            (
                row
                for row in self.rows
                if row.contender == contender and row.readings_ms
            ),
            None,
        )

    @property
    def peak(self) -> float | None:
        """The int8 peak in giga-MAC/s, measured in the same rounds."""
        return median(self.peak_readings) if self.peak_readings else None

    def time(self, contender: str) -> float | None:
        """Return the contender's median in milliseconds."""
        row = self.row(contender)
        return None if row is None else row.median_ms

    def rate(self, contender: str) -> float | None:
        """Return the contender's rate in giga-MAC/s."""
        return divided(self.multiply_accumulates / 1e6, self.time(contender))

    def share(self, contender: str) -> float | None:
        """Return the contender's share of the peak, at most 1."""
        return divided(self.rate(contender), self.peak)

    def ratio(self, contender: str) -> float | None:
        """Return our engine's time over the contender's, from medians: below 1 we are faster."""
        return divided(self.time(OURS), self.time(contender))


@dataclass(frozen=True)
class Outcome:
    """One model: measurements on each number of threads, and the footprint of a process."""

    model: str
    measured: tuple[Measured, ...]
    footprint: Footprint

    def on(self, threads: int) -> Measured | None:
        """Return the measurements on so many threads."""
        return next(
            (
                measured
                for measured in self.measured
                if measured.threads == threads
            ),
            None,
        )

    def gain(self, threads: int, contender: str = OURS) -> float | None:
        """Return how many times faster the contender is on `threads` than on one."""
        single, many = self.on(1), self.on(threads)
        return (
            divided(single.time(contender), many.time(contender))
            if single and many
            else None
        )

    def peak_gain(self, threads: int) -> float | None:
        """Return how many times higher the peak of so many threads is than that of one."""
        single, many = self.on(1), self.on(threads)
        return divided(many.peak, single.peak) if single and many else None


def divided(top: float | None, bottom: float | None) -> float | None:
    """Return the quotient, or None where either number is not known."""
    return None if top is None or bottom is None else top / bottom


def snr_db(signal: Sequence[float], answer: Sequence[float]) -> float:
    """Return signal to noise in decibels; infinite where the two are equal."""
    noise = math.fsum(
        (ours - right) ** 2 for right, ours in zip(signal, answer, strict=True)
    )
    power = math.fsum(right**2 for right in signal)
    return (
        math.inf
        if noise == 0
        else 10 * math.log10(power / noise)
        if power
        else -math.inf
    )


def as_json(
    machine: dict[str, Any], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Return all figures, for a file."""
    return {
        "machine": machine,
        "models": {
            outcome.model: _outcome_json(outcome) for outcome in outcomes
        },
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    threads = {
        str(measured.threads): {
            "multiply_accumulates": measured.multiply_accumulates,
            "peak_gmacs": measured.peak,
            "gain": outcome.gain(measured.threads),
            "peak_gain": outcome.peak_gain(measured.threads),
            "contenders": {
                row.contender: _row_json(measured, row) for row in measured.rows
            },
        }
        for measured in outcome.measured
    }
    return {"footprint": asdict(outcome.footprint), "threads": threads}


def _row_json(measured: Measured, row: Row) -> dict[str, Any]:
    snr = (
        row.snr_db
        if row.snr_db is not None and math.isfinite(row.snr_db)
        else None
    )  # JSON has no infinity
    return {
        "median_ms": row.median_ms,
        "engine_ratio": measured.ratio(row.contender),
        "gmacs": measured.rate(row.contender),
        "peak_share": measured.share(row.contender),
        "busy_cores": row.busy_cores,
        "snr_db": snr,
        "note": row.note,
        "readings_ms": list(row.readings_ms),
    }
