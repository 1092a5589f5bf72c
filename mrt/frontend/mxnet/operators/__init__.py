"""Every MXNet operator that can be converted, by family.

To add one, write a handler here and a row in the test table.
"""

from mrt.frontend.mxnet.operators import (
    attention,
    boxes,
    casts,
    comparison,
    constants,
    convolution,
    detection,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    nn,
    normalization,
    ordering,
    output_layers,
    pooling,
    recurrent,
    reduce,
    resize,
    sequences,
    shape,
    slicing,
    unary,
)
from mrt.frontend.mxnet.operators.registry import OPERATORS

__all__ = [
    "OPERATORS",
    "attention",
    "boxes",
    "casts",
    "comparison",
    "constants",
    "convolution",
    "detection",
    "elementwise",
    "indexing",
    "linear_algebra",
    "movement",
    "nn",
    "normalization",
    "ordering",
    "output_layers",
    "pooling",
    "recurrent",
    "reduce",
    "resize",
    "sequences",
    "shape",
    "slicing",
    "unary",
]
