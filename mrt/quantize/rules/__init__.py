"""How each operator of a canonical graph is written in integers; one module for each family.

`lower` writes a node. Importing a family registers its rules.
"""

from mrt.quantize.rules import (
    argmax_topk,
    comparison,
    concat,
    division,
    elementwise,
    fake_quantize,
    gather,
    integer_division,
    integer_products,
    linear,
    log_softmax,
    lrn,
    matmul,
    movement,
    non_max_suppression,
    normalization,
    pooling,
    reduction,
    resize,
    softmax,
)
from mrt.quantize.rules.lowering import lower
from mrt.quantize.rules.registry import INTEGER_RULES, OWN_RULES, RULES

__all__ = [
    "INTEGER_RULES",
    "OWN_RULES",
    "RULES",
    "argmax_topk",
    "comparison",
    "concat",
    "division",
    "elementwise",
    "fake_quantize",
    "gather",
    "integer_division",
    "integer_products",
    "linear",
    "log_softmax",
    "lower",
    "lrn",
    "matmul",
    "movement",
    "non_max_suppression",
    "normalization",
    "pooling",
    "reduction",
    "resize",
    "softmax",
]
