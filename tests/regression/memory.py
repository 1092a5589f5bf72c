"""The peak of a conversion's memory, in classes: it is measured in a process that does nothing before."""

from __future__ import annotations

import sys

import onnx_ir as ir

from tests.support.peak_memory import peak_kilobytes

STEP = 128  # MB, where classes end
WEIGHTS, MORE = (
    4,
    1000,
)  # a conversion may take so many times the float weights, and so many MB
TOO_MUCH = ", too much"


def class_of(megabytes: float, weights: float) -> str:
    """Return the class of a peak, and whether it is beyond what a model of such weights may take."""
    end = int(megabytes // STEP + 1) * STEP
    return f"under {end} MB" + (
        TOO_MUCH if megabytes > WEIGHTS * weights + MORE else ""
    )


def peak_class(model: ir.Model) -> str | None:
    """Return the class of this process so far, which has converted this model; None where it does not tell."""
    if sys.platform != "linux":
        return None
    weights = sum(
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    )
    return class_of(peak_kilobytes() / 1000, weights / 1e6)


def megabytes(figure: object) -> int:
    """Return where a class ends."""
    return int(str(figure).split()[1])
