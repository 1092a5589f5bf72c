"""Automatic mixed precision: a search for the cheapest bits that meet a target.

It chooses the values that get 16 bits and the weights that get 15.
"""

from mrt.tune.search import TuningResult, tune
from mrt.tune.target import TuningTarget

__all__ = ["TuningResult", "TuningTarget", "tune"]
