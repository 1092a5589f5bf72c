"""One rule for each operator of a canonical graph, by family; importing a family registers its rules."""

from mrt.quantize.rules import (
    argmax_topk,
    comparison,
    concat,
    division,
    elementwise,
    gather,
    integer_division,
    integer_products,
    linear,
    log_softmax,
    lrn,
    movement,
    normalization,
    pooling,
    reduction,
    resize,
    softmax,
)
from mrt.quantize.rules.registry import RULES

__all__ = [
    "RULES",
    "argmax_topk",
    "comparison",
    "concat",
    "division",
    "elementwise",
    "gather",
    "integer_division",
    "integer_products",
    "linear",
    "log_softmax",
    "lrn",
    "movement",
    "normalization",
    "pooling",
    "reduction",
    "resize",
    "softmax",
]
