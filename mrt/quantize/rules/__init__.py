"""How each operator of a canonical graph is written in integers; one module for each family.

The first of these that applies writes a node; `graph.py` asks for 1 to 4, `lowering.py` for the rest:

    1. the product of an input with factors of its columns: declared with the input
    2. a function of one value that a quotient reads: a table of octave codes    curves/octave_curves.py
    3. another function of one value: sign, gate or table                        curves/
    4. a sum of squares: an octave code                                          sum_of_squares.py
    5. an operator of the project's own domain                                   OWN_RULES
    6. integral operands: exactly                                                INTEGER_RULES, integers.py
    7. anything else                                                             RULES

A rule of 7 hands over to the modules of octave codes where its operands are such. Importing a
family registers its rules.
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
