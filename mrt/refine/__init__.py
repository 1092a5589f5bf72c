"""What is decided on samples besides ranges: scales of channels, weights, biases. It becomes part of the table."""

from mrt.refine.float_notes import FloatStatistics
from mrt.refine.options import STAGES, RefineOptions
from mrt.refine.stages import refine

__all__ = ["STAGES", "FloatStatistics", "RefineOptions", "refine"]
