"""The one table from instruction to the kernel that is written for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cvm.export.c import detection
from cvm.export.c.elementwise import EXPRESSIONS
from cvm.export.c.instruction import CInstruction
from cvm.export.cuda import elementwise, products
from cvm.export.cuda.work import Work
from cvm.program import IntArray


@dataclass(frozen=True)
class Row:
    """One of three: the whole kernel over x0, x1, .. and y; a kernel of sums; or an expression, which the target c has.

    A kernel of sums is given the lines that finish a sum, or four where `fours` holds. `constant` gives an operand's
    integers in another order.
    """

    kernel: Callable[[CInstruction], Work] | None = None
    sums: Callable[[CInstruction, Sequence[str]], Work] | None = None
    fours: Callable[[CInstruction], bool] = lambda node: False
    constant: Callable[[CInstruction, int], IntArray | None] | None = None


def _nms(node: CInstruction) -> Work:
    """One thread, since whether a box is kept depends on those before it."""
    return Work(1, detection.nms(node).splitlines())


_PRODUCTS = Row(
    sums=products.sums,
    fours=products.four_at_once,
    constant=products.constant,
)
TABLE: Mapping[str, Row] = {
    "conv2d": _PRODUCTS,
    "conv2d_transpose": Row(
        sums=products.transposed, constant=products.constant
    ),
    "dense": _PRODUCTS,
    "matmul": Row(sums=products.matrices),
    **{name: Row() for name in EXPRESSIONS},
    "gather": Row(elementwise.gather),
    **{
        name: Row(elementwise.along(name))
        for name in ("reduce_sum", "reduce_max", "reduce_min", "argmax")
    },
    "argsort": Row(elementwise.argsort),
    "max_pool2d": Row(elementwise.max_pool2d),
    "avg_pool2d": Row(elementwise.avg_pool2d),
    **{name: Row(elementwise.copies(name)) for name in elementwise.COPIES},
    "pad": Row(elementwise.pad),
    "resize": Row(elementwise.resize),
    "nms": Row(_nms),
}
