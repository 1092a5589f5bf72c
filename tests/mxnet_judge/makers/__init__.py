"""A maker for every operator of the front end, by family."""

from tests.mxnet_judge.makers import (
    algebra,
    constants,
    detection,
    elementwise,
    heads,
    indexing,
    layers,
    norms,
    pooling,
    reductions,
    shapes,
)
from tests.mxnet_judge.makers.registry import MAKERS, Drawn, Maker

__all__ = [
    "MAKERS",
    "Drawn",
    "Maker",
    "algebra",
    "constants",
    "detection",
    "elementwise",
    "heads",
    "indexing",
    "layers",
    "norms",
    "pooling",
    "reductions",
    "shapes",
]
