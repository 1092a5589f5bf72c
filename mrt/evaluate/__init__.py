"""Compares float and integer over the same samples: accuracy, agreement, signal to noise."""

from mrt.evaluate.compare import evaluate
from mrt.evaluate.evaluation import Evaluation

__all__ = ["Evaluation", "evaluate"]
