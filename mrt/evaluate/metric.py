"""A user's own measure of quality: a Python function, named `module:function`, of all outputs, and labels or targets."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.errors import BadData, BadOption

Array = npt.NDArray[Any]
Metric = Callable[[dict[str, Array], Array | None], float]


def load_metric(text: str) -> Metric:
    """Import `function` of `module`, which may lie in the current folder; BadOption if that fails."""
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise BadOption(
            f"--metric {text}: expected MODULE:FUNCTION, such as my_metrics:mean_error"
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as problem:  # whatever the user's module raises
        raise BadOption(
            f"--metric {text}: the module cannot be imported: {problem}"
        ) from None
    function = getattr(module, name, None)
    if not callable(function):
        raise BadOption(
            f"--metric {text}: the module {module_name} has no function {name}"
        )
    metric: Metric = function
    return metric


class CollectedOutputs:
    """The outputs of all samples, kept for a metric of the whole."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[Array]] = {}

    def add(self, outputs: Mapping[str, Array]) -> None:
        """Add one sample's outputs."""
        for name, output in outputs.items():
            self._arrays.setdefault(name, []).append(np.array(output))

    def measure(self, metric: Metric, expected: Array | None) -> float:
        """The metric of all outputs, stacked along a new first axis, and of classes or targets; BadData if it is no number."""
        stacked = {
            name: np.stack(list_) for name, list_ in self._arrays.items()
        }
        try:
            value = float(metric(stacked, expected))
        except Exception as problem:  # whatever the user's function raises
            raise BadData(
                f"--metric: the function failed: {type(problem).__name__}: {problem}"
            ) from None
        if not math.isfinite(value):
            raise BadData(
                f"--metric: the function returned {value}; expected a finite number"
            )
        return value
