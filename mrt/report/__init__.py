"""Reports the outcome of a model's float operators, and checks that only integers are left."""

from mrt.report.outcomes import FloatGraph, float_graph
from mrt.report.report import Report
from mrt.report.write import writer_for

__all__ = ["FloatGraph", "Report", "float_graph", "writer_for"]
