"""Decides scales and bits, and writes a program.

The program is a pure function of the rewritten model, the calibration table and the
options.

`quantize` is imported when it is first used, so that a command can read the
declarations of options without loading numpy and onnx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mrt.quantize.options import LayerBits, QuantizeOptions

if TYPE_CHECKING:
    from mrt.quantize.graph import quantize

__all__ = ["LayerBits", "QuantizeOptions", "quantize"]


def __getattr__(name: str) -> Any:
    if name != "quantize":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mrt.quantize.graph import quantize

    return quantize
