"""The one table from instruction to what is written for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cvm.export.c import (
    detection,
    linear,
    lookup,
    movement,
    pooling,
    reduction,
    resize,
)
from cvm.export.c.elementwise import EXPRESSIONS, Expression
from cvm.export.c.instruction import CInstruction
from cvm.program import IntArray

ConstantOrder = Callable[[CInstruction, int], IntArray | None]
"""Of an operand of an instruction, by its index, the integers as a body reads them; None if they stay as they are."""


@dataclass(frozen=True)
class Row:
    """Either the body of a function over x0, x1, .. and y, or an expression of one element.

    `rows` is the body again, where it leaves one row after the other in `sums` for the lines that it is given.
    `constant` gives an operand's integers in another order, `scratch` a number of 32-bit integers that the body
    needs besides. Where `any_dtype` is false, constants keep their dtype instead of the narrowest.
    """

    body: Callable[[CInstruction], str] | None = None
    expression: Expression | None = None
    rows: Callable[[CInstruction, str], str] | None = None
    constant: ConstantOrder | None = None
    scratch: Callable[[CInstruction], int] | None = None
    any_dtype: bool = True


TABLE: Mapping[str, Row] = {
    "conv2d": Row(
        linear.conv2d, rows=linear.conv2d, constant=linear.conv2d_constant
    ),
    "conv2d_transpose": Row(linear.conv2d_transpose),
    "dense": Row(linear.dense, rows=linear.dense),
    "matmul": Row(linear.matmul, rows=linear.matmul),
    **{name: Row(expression=write) for name, write in EXPRESSIONS.items()},
    "gather": Row(lookup.gather),
    "reduce_sum": Row(reduction.along("reduce_sum")),
    "reduce_max": Row(reduction.along("reduce_max")),
    "reduce_min": Row(reduction.along("reduce_min")),
    "argmax": Row(reduction.along("argmax")),
    "argsort": Row(reduction.argsort),
    "max_pool2d": Row(pooling.max_pool2d),
    "avg_pool2d": Row(pooling.avg_pool2d),
    **{name: Row(movement.written(name)) for name in movement.COPIES},
    "pad": Row(movement.pad),
    "resize": Row(resize.resize),
    "nms": Row(detection.nms, scratch=detection.nms_scratch, any_dtype=False),
}
