"""Every MXNet operator that can be converted, by family. To add one: a handler here, a row in the test table."""

from mrt.frontend.mxnet.operators import (
    attention,
    casts,
    comparison,
    constants,
    elementwise,
    heads,
    indexing,
    linear_algebra,
    nn,
    ordering,
    pooling,
    reduce,
    sequences,
    shape,
    unary,
)
from mrt.frontend.mxnet.operators.registry import OPERATORS

__all__ = [
    "OPERATORS",
    "attention",
    "casts",
    "comparison",
    "constants",
    "elementwise",
    "heads",
    "indexing",
    "linear_algebra",
    "nn",
    "ordering",
    "pooling",
    "reduce",
    "sequences",
    "shape",
    "unary",
]
