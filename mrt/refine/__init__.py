"""Makes the decisions of a calibration table besides ranges, on samples.

They are the duplicated channels, the scales and centres of channels, and the
weights and biases of layers.
"""

from mrt.refine.float_statistics import FloatStatistics
from mrt.refine.options import STAGES, RefineOptions
from mrt.refine.refinement import refine, refine_model

__all__ = [
    "STAGES",
    "FloatStatistics",
    "RefineOptions",
    "refine",
    "refine_model",
]
