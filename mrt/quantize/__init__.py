"""Decides scales and bits, and writes a program: a pure function of the rewritten model, the calibration table and the options."""

from mrt.quantize.graph import quantize
from mrt.quantize.options import LayerBits, QuantizeOptions

__all__ = ["LayerBits", "QuantizeOptions", "quantize"]
