"""Compares float and integer over the same samples: accuracy, agreement, signal to noise."""

from mrt.evaluate.compare import evaluate
from mrt.evaluate.report import Report

__all__ = ["Report", "evaluate"]
