"""Warnings beside a result that may be right: how samples are prepared, and how far integers are from float."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from mrt import project
from mrt.calibrate.first_normalization import (
    SAMPLES,
    Spread,
    first_normalization,
    measure,
)
from mrt.calibrate.sample_checks import near_chance
from mrt.config import Config, DataSettings
from mrt.errors import MrtError
from mrt.evaluate import Evaluation
from mrt.evaluate.limits import LEAST_AGREEMENT, LEAST_DECIBELS
from mrt.evaluate.unreachable_scores import unreachable_score_warnings

FACTOR = 4
"""By which the spread of samples must be off. Data as in training is within 0.7 to 1.1; bytes in place of 0..1 are at 255."""
FEW_SAMPLES = 20
"""With fewer, a share of equal answers leaves so much open that its interval is named."""
_ADVICE = (
    "Calibrate on samples like these, about 100; see the worst layers by mrt compare; "
    "or give more bits (--stream-bits 16, --target-agreement, --target-snr)"
)


@dataclass
class Remarks:
    """What people should know beside a result: notes, and warnings that it may be worthless."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


_NOISE = (
    "no data was given, so the ranges were measured on synthetic noise, not on your data. The program runs and is proven, "
    "but expect it to lose accuracy, maybe all of it. Give about 100 real samples (--data)"
)
_NOISE_OF_SOME = (
    "no data was given. The model's file gives the scales but of {}: where these lie was measured on synthetic noise. "
    "Give about 100 real samples (--data)"
)
MOST_NAMES = 5


def noise_warning(measured: Collection[str], *, of_all: bool) -> str:
    """Say what noise in place of data costs: little where the file gives nearly all scales, but those of `measured`."""
    if of_all:
        return _NOISE
    names = sorted(measured)
    listed = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f" and {len(names) - MOST_NAMES} more"
    return _NOISE_OF_SOME.format(listed)


def preparation_warnings(
    model: ir.Model, config: Config, data: DataSettings
) -> list[str]:
    """Return a warning if the samples are spread otherwise than those on which the model's first normalization was trained.

    `model` is as it was read. The list is empty where the model has no such normalization, and where
    the samples cannot be read, which whoever needs them reports.
    """
    if data.path is None or config.model.random_weights is not None:
        return []
    try:
        normalization = first_normalization(model)
        if normalization is None:
            return []
        subset = replace(data, held_back=0, samples=_few(data.samples))
        samples = project.open_data(model, config, subset)
        spread = measure(model, normalization, samples)
    except MrtError:
        return []
    return [] if spread is None else _spread_warnings(spread, samples.source)


def _few(samples: int | None) -> int:
    return SAMPLES if samples is None else min(SAMPLES, samples)


def _spread_warnings(spread: Spread, source: str) -> list[str]:
    # Samples that do not vary at all are doubtful for another reason.
    if 1 / FACTOR <= spread.ratio <= FACTOR or spread.ratio == 0:
        return []
    times = f"{spread.ratio:.3g} times as much as"
    if spread.ratio < 1:
        times = f"{1 / spread.ratio:.3g} times less than"
    return [
        f"{source}: behind the first layer, the samples vary {times} those that the model was trained on, by the statistics "
        f"of '{spread.name}'. Are they prepared as in training (--preset, --scale, --mean, --std)?"
    ]


def evaluation_warnings(
    report: Evaluation, model: ir.Model, source: str
) -> list[str]:
    """Return warnings of figures of a comparison with float that are too low, or are of too few samples."""
    warnings = chance_warnings(report, model, source)
    warnings += _few_sample_warnings(report, source)
    warnings += unreachable_score_warnings(report)
    low = _low_figures(report)
    if low:
        clipped = _clipped_integers(report, model)
        advice = _advice_on_clipped(clipped) if clipped else _ADVICE
        warnings.append(f"{'; '.join(low)}. {advice}")
    return warnings


def _clipped_integers(report: Evaluation, model: ir.Model) -> list[str]:
    """Return the inputs of integers that were clipped, each with its calibrated minimum and maximum."""
    floats = (None, ir.DataType.FLOAT)
    integers = [it.name for it in model.graph.inputs if it.dtype not in floats]
    clippings = [report.clipped.get(name or "") for name in integers]
    return [
        f"'{it.name}' at {it.low:.10g} and {it.high:.10g}"
        for it in clippings
        if it is not None and it.count
    ]


def _advice_on_clipped(clipped: list[str]) -> str:
    return (
        f"Integers were clipped at the ends of calibration, which more bits do not widen ({', '.join(clipped)}): "
        "calibrate on samples like these, about 100"
    )


def chance_warnings(
    report: Evaluation, model: ir.Model, source: str
) -> list[str]:
    """Return a warning if float itself, by the labels of the samples, cannot be distinguished from guessing."""
    if report.of_float.top1 is None:
        return []
    hits = round(report.of_float.top1 * report.samples)
    return near_chance(hits, report.samples, _classes(model), source)


def _few_sample_warnings(report: Evaluation, source: str) -> list[str]:
    """Return a warning, with the interval of the agreement, if that is of few samples."""
    agreement = report.agreement
    if agreement is None or report.answers >= FEW_SAMPLES:
        return []
    low, high = report.confidence_interval(agreement)
    count = (
        "1 sample is"
        if report.answers == 1
        else f"{report.answers} samples are"
    )
    return [
        f"{source}: {count} few: the share of equal answers may be anything from {100 * low:.0f} to {100 * high:.0f} %; "
        "a hundred leave a few points open"
    ]


def _low_figures(report: Evaluation) -> list[str]:
    """Return a clause for each figure below the limits of a verdict."""
    low: list[str] = []
    if report.agreement is not None and report.agreement < LEAST_AGREEMENT:
        low.append(
            f"the integers' answer is that of float on only {100 * report.agreement:.1f} % of {report.answers} samples"
        )
    for name, decibels in report.snr_db.items():
        if decibels is not None and decibels < LEAST_DECIBELS:
            error = 100 * 10 ** (-decibels / 20)
            low.append(
                f"output '{name}' has {decibels:.1f} dB: its error is {error:.0f} % of the value"
            )
    if lost := report.lost_column:
        error = 100 * 10 ** (-lost.decibels / 20)
        low.append(
            f"{lost.name} has {lost.decibels:.1f} dB: its error is {error:.0f} % of the value"
        )
    return low


def _classes(model: ir.Model) -> int:
    """Return the length of the first output, if it is a vector; else 0."""
    shape = model.graph.outputs[0].shape
    sizes = [] if shape is None else list(shape)
    fixed = [size for size in sizes if isinstance(size, int) and size > 1]
    return fixed[0] if len(fixed) == 1 else 0
