"""Automatic mixed precision: which values get 16 bits and which weights 15, so that a target is met at the least cost."""

from mrt.tune.search import TuningResult, tune
from mrt.tune.target import Target

__all__ = ["Target", "TuningResult", "tune"]
