"""The one table from instruction to the kernel that is written for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cvm.export.c import detection, movement
from cvm.export.c.elementwise import EXPRESSIONS
from cvm.export.c.instruction import CInstruction
from cvm.export.c.table import ConstantOrder
from cvm.export.cuda import elementwise, products
from cvm.export.cuda.work import KernelWork


@dataclass(frozen=True)
class KernelRow:
    """One of three: the whole kernel over x0, x1, .. and y; a kernel of sums; or an expression, which the target c has.

    A kernel of sums is given the lines that finish a sum, or four where `fours` holds. `constant` gives an operand's
    integers in another order, `scratch` a number of 32-bit integers that a kernel needs besides.
    """

    kernel: Callable[[CInstruction], KernelWork] | None = None
    sums: Callable[[CInstruction, Sequence[str]], KernelWork] | None = None
    fours: Callable[[CInstruction], bool] = lambda node: False
    constant: ConstantOrder | None = None
    scratch: Callable[[CInstruction], int] | None = None


def _nms(node: CInstruction) -> KernelWork:
    """One thread, since whether a box is kept depends on those before it."""
    return KernelWork(1, detection.nms(node).splitlines())


_PRODUCTS = KernelRow(
    sums=products.sums,
    fours=products.gives_four,
    constant=products.constant,
)
TABLE: Mapping[str, KernelRow] = {
    "conv2d": _PRODUCTS,
    "conv2d_transpose": KernelRow(
        sums=products.transposed, constant=products.constant
    ),
    "dense": _PRODUCTS,
    "matmul": KernelRow(sums=products.matrices, fours=lambda node: True),
    **{name: KernelRow() for name in EXPRESSIONS},
    "gather": KernelRow(elementwise.gather),
    **{
        name: KernelRow(elementwise.along(name))
        for name in ("reduce_sum", "reduce_max", "reduce_min", "argmax")
    },
    "argsort": KernelRow(elementwise.argsort),
    "max_pool2d": KernelRow(elementwise.max_pool2d),
    "avg_pool2d": KernelRow(elementwise.avg_pool2d),
    **{name: KernelRow(elementwise.copies(name)) for name in movement.COPIES},
    "pad": KernelRow(elementwise.pad),
    "resize": KernelRow(elementwise.resize),
    "nms": KernelRow(_nms, scratch=detection.nms_scratch),
}
