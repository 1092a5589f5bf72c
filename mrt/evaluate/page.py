"""Writes the comparison of layers as one self-contained HTML file.

It shows the SNR along the network, and a histogram of every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from mrt.calibrate.histogram import CENTRE, Histogram
from mrt.evaluate.layers import Layer
from mrt.evaluate.layers_report import decibels, worst_first
from mrt.html import document, table

# The plot along the network, in pixels.
WIDTH, HEIGHT, LEFT, BOTTOM = 960, 260, 46, 24
BARS, TALL = 80, 120  # the bars and the height of a histogram
CEILING = 60.0  # decibels; better layers are drawn here


def page(layers: Sequence[Layer], title: str, samples: int) -> str:
    """Return the whole file.

    Names from the model are escaped, and no other file is loaded.
    """
    ranked = worst_first(layers)
    body = [
        f"<h1>{escape(title)}</h1>",
        "<p>Every integer value beside the float value that it stands for, "
        f"over {samples} samples. SNR is the power of the float value over that of the "
        "difference: 6 dB are one bit.</p>",
        "<h2>Along the network</h2>",
        _along(layers),
        "<h2>Worst first</h2>",
        _table(ranked),
        "<h2>How values are distributed</h2>",
        f"<p>Counts on a logarithmic scale. {_key('float')}float"
        f"{_key('integer')}integer; {_key('bad')}the interval of the integers.</p>",
        *(_section(layer) for layer in ranked),
    ]
    return document(title, body)


def _key(colour: str) -> str:
    return f'<span class="key" style="background:var(--{colour})"></span>'


def _along(layers: Sequence[Layer]) -> str:
    """Draw one point for each layer, linked to its histogram."""
    highest = min(max((layer.snr_db or 0.0) for layer in layers) + 5, CEILING)
    lowest = min(0.0, *(layer.snr_db or 0.0 for layer in layers))

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - 10) * (index + 0.5) / len(layers)

    def y(value: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (highest - min(value, highest)) / (
            highest - lowest
        )

    lines = [
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" stroke="var(--line)"/>'
        f'<text x="{LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark}</text>'
        for mark in range(int(lowest // 10) * 10, int(highest) + 1, 10)
        if mark >= lowest
    ]
    values = [
        highest if layer.snr_db is None else layer.snr_db for layer in layers
    ]
    path = " ".join(
        f"{x(index):.1f},{y(value):.1f}" for index, value in enumerate(values)
    )
    points = [
        f'<a href="#v{layer.number}"><circle cx="{x(index):.1f}" cy="{y(value):.1f}" r="4" fill="var(--integer)">'
        f"<title>%{layer.number} {escape(layer.source)}: {decibels(layer)} dB</title></circle></a>"
        for index, (layer, value) in enumerate(zip(layers, values, strict=True))
    ]
    caption = f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle">values in the program\'s order; SNR in dB</text>'
    drawn = "".join(
        [
            *lines,
            f'<polyline points="{path}" fill="none" stroke="var(--faint)"/>',
            *points,
            caption,
        ]
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="SNR along the network">{drawn}</svg>'


def _table(ranked: Sequence[Layer]) -> str:
    head = (
        "SNR dB",
        "value",
        "instruction",
        "type",
        "range",
        "clipped",
        "float value",
    )
    return table(head, [_row(layer) for layer in ranked], numbers=True)


def _row(layer: Layer) -> tuple[str, ...]:
    return (
        decibels(layer),
        f'<a href="#v{layer.number}">%{layer.number}</a>',
        layer.instruction,
        layer.dtype,
        f"{layer.low:.4g} .. {layer.high:.4g}",
        f"{layer.clipped:.3%}",
        escape(layer.source),
    )


def _section(layer: Layer) -> str:
    heading = f"%{layer.number} {layer.instruction} · {escape(layer.source)} · {decibels(layer)} dB"
    return f'<section id="v{layer.number}"><b>{heading}</b><br>{_histogram(layer)}</section>'


def _histogram(layer: Layer) -> str:
    """Draw both distributions over their hull, and the bounds of the integers."""
    low, high = _hull(layer)
    tops = [
        _bars(histogram, low, high) for histogram in (layer.real, layer.integer)
    ]
    most = max(float(np.log1p(bars).max()) for bars in tops) or 1.0
    step = (WIDTH - 2 * LEFT) / BARS
    drawn = []
    for bars, colour, share in zip(
        tops, ("var(--float)", "var(--integer)"), (1.0, 0.4), strict=True
    ):
        for index, height in enumerate(np.log1p(bars) / most * TALL):
            if height:
                drawn.append(
                    f'<rect x="{LEFT + index * step:.1f}" y="{TALL - height:.1f}" width="{step * share:.1f}" '
                    f'height="{height:.1f}" fill="{colour}"/>'
                )
    for end in (layer.low, layer.high):
        if low <= end <= high:
            at = LEFT + (end - low) / (high - low) * (WIDTH - 2 * LEFT)
            drawn.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{TALL}" stroke="var(--bad)" stroke-dasharray="4 3"/>'
            )
    for mark in (low, (low + high) / 2, high):
        at = LEFT + (mark - low) / (high - low) * (WIDTH - 2 * LEFT)
        drawn.append(
            f'<text x="{at:.1f}" y="{TALL + 16}" text-anchor="middle">{mark:.3g}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {TALL + 22}" role="img" aria-label="histogram">{"".join(drawn)}</svg>'


def _hull(layer: Layer) -> tuple[float, float]:
    """Return the hull of the numbers on both sides, to the width of a bin."""
    ends = []
    for histogram in (layer.real, layer.integer):
        filled = np.flatnonzero(histogram.counts) - CENTRE
        ends += [
            float(filled.min(initial=0)) * histogram.width,
            (float(filled.max(initial=0)) + 1) * histogram.width,
        ]
    low, high = min(ends), max(ends)
    margin = (high - low) / BARS
    return low - margin, high + margin


def _bars(
    histogram: Histogram, low: float, high: float
) -> npt.NDArray[np.float64]:
    """Count the numbers in equal parts of low..high."""
    filled = np.flatnonzero(histogram.counts)
    middles = (
        filled - CENTRE + 0.5 * np.sign(filled - CENTRE)
    ) * histogram.width
    places = np.clip(
        ((middles - low) / (high - low) * BARS).astype(np.int64), 0, BARS - 1
    )
    return np.bincount(
        places, weights=histogram.counts[filled], minlength=BARS
    ).astype(np.float64)
