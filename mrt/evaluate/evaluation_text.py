"""The text of `mrt evaluate`: figures with their intervals, a sentence for each that is missing, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from mrt.evaluate.evaluation import Accuracy, Evaluation
from mrt.evaluate.verdict import Verdict

MISSING_LABELS = (
    "no accuracy: the data has no labels (y in an .npz, labels.csv in a folder)"
)
MISSING_CLASSES = (
    "no accuracy: it is not plain which output holds the classes; "
    "name it with --class-output, or measure with --metric"
)
NO_CLASSES = "no accuracy: no output holds classes; --metric measures a figure of your own"


def report_lines(report: Evaluation) -> list[str]:
    """The lines for people."""
    lines = [f"{report.samples} samples", *_table(report)]
    if report.agreement is not None:
        lines.append(f"  same top-1 {_fraction(report, report.agreement)}")
    for name, fraction in report.equal.items():
        lines.append(f"  equal in '{name}': {_percent(fraction)}")
    for name, decibels in report.snr_db.items():
        text = "no difference" if decibels is None else f"{decibels:.1f} dB"
        padding = ", without padding" if name in report.without_padding else ""
        lines.append(f"  signal to noise of '{name}'{padding}: {text}")
    if lost := report.lost_column:
        lines.append(
            f"  signal to noise of {lost.name}: {lost.decibels:.1f} dB"
        )
    lines += [f"  {sentence}" for sentence in _remarks(report)]
    verdict = Verdict.of(report, fresh=None)
    return [*lines, f"  against float: {verdict.sentence}"]


def _table(report: Evaluation) -> Iterator[str]:
    sides = (report.of_float, report.of_integer)
    yield _row("", "float", "integer")
    yield _row("top-1", *(_fraction(report, side.top1) for side in sides))
    if report.has_top5:
        yield _row("top-5", *(_fraction(report, side.top5) for side in sides))
    if report.of_float.metric is not None:
        yield _row("metric", *map(_metric, sides))
    yield _row(
        "samples/s", *(f"{side.samples_per_second:.1f}" for side in sides)
    )


def _row(name: str, left: str, right: str) -> str:
    return f"  {name:<10} {left:>24} {right:>24}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f} %"


def _fraction(report: Evaluation, fraction: float | None) -> str:
    """A fraction of the samples, with its confidence interval."""
    if fraction is None:
        return "-"
    low, high = report.confidence_interval(fraction)
    return f"{_percent(fraction)} ({100 * low:.1f}..{100 * high:.1f})"


def _metric(side: Accuracy) -> str:
    return "-" if side.metric is None else f"{side.metric:.6g}"


def _remarks(report: Evaluation) -> Iterator[str]:
    output = report.class_output
    if output is None:
        yield MISSING_CLASSES if report.classes.some_output_fits else NO_CLASSES
    else:
        if len(report.snr_db) + len(report.equal) > 1:
            content = "the class" if output.is_label else "scores of classes"
            yield f"classes are taken from output '{output.name}', which holds {content}"
        if not report.classes.labelled:
            yield MISSING_LABELS
    yield from (
        str(clipping) for clipping in report.clipped.values() if clipping.count
    )
