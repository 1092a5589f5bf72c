"""Writes the comparison of layers: a table, worst first, and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mrt.evaluate.layers import Layer

FORMAT = "mrt-compare-1"


def worst_first(layers: Sequence[Layer]) -> list[Layer]:
    """Sort layers by signal to noise; those without any difference come last."""
    return sorted(
        layers,
        key=lambda layer: math.inf if layer.snr_db is None else layer.snr_db,
    )


def decibels(layer: Layer) -> str:
    """Return the signal to noise, or a dash where nothing differs."""
    return "-" if layer.snr_db is None else f"{layer.snr_db:.1f}"


def table(layers: Sequence[Layer], most: int | None = None) -> list[str]:
    """Lines of columns, worst first, at most so many."""
    shown = worst_first(layers)[:most]
    rows = [
        (
            "SNR dB",
            "value",
            "instruction",
            "type",
            "range",
            "clipped",
            "float value",
        )
    ]
    for layer in shown:
        span = f"{layer.low:.4g} .. {layer.high:.4g}"
        rows.append(
            (
                decibels(layer),
                f"%{layer.number}",
                layer.instruction,
                layer.dtype,
                span,
                f"{layer.clipped:.3%}",
                layer.source,
            )
        )
    widths = [
        max(len(row[column]) for row in rows)
        for column in range(len(rows[0]) - 1)
    ]
    lines = [
        "  ".join(
            [
                *(
                    cell.rjust(width)
                    for cell, width in zip(row, widths, strict=False)
                ),
                row[-1],
            ]
        )
        for row in rows
    ]
    rest = len(layers) - len(shown)
    return [*lines, f"and {rest} more, all better"] if rest else lines


def to_json(layers: Sequence[Layer], samples: int) -> dict[str, Any]:
    """Return the layers in the program's order; `snr_db` is null where nothing differs."""
    return {
        "format": FORMAT,
        "samples": samples,
        "layers": [
            {
                "value": layer.number,
                "instruction": layer.instruction,
                "source": layer.source,
                "dtype": layer.dtype,
                "scale": layer.scale,
                "low": layer.low,
                "high": layer.high,
                "snr_db": layer.snr_db,
                "clipped": layer.clipped,
            }
            for layer in layers
        ],
    }
