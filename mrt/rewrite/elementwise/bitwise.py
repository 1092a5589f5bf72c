"""Lowers bitwise operators with constant masks and shifts to integer arithmetic.

The results are sums of remainders and products with powers of two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, first, nodes, operand, string_attribute

MOST_SHIFT = 30  # integers of a program have at most 32 bits
LARGEST = 2**31 - 1


def lower_bitwise(model: ir.Model) -> int:
    """BitShift(x, s) -> x * 2^s or x / 2^s; BitwiseNot(x) -> -1 - x, for bytes 255 - x.

    BitwiseAnd(x, m) -> the sum, over the runs of ones in m, of x mod 2^b - x mod 2^a,
    where a run has the bits a to b - 1. Or and Xor are computed from And. Applies to
    constant shifts, and to one constant mask for all elements. Equal; a shift of 32 bits
    to the left that overflows is refused where the program is proven.
    """
    return sum(_LOWER[node.op_type](node) for node in nodes(model, *_LOWER))


def _kind(node: ir.Node) -> np.dtype[np.generic] | None:
    kind = first(node).dtype
    return None if kind is None else kind.numpy()


def _shift(node: ir.Node) -> bool:
    steps, kind = constant(operand(node, 1)), _kind(node)
    if (
        steps is None
        or kind is None
        or not steps.size
        or steps.max() > MOST_SHIFT
    ):
        return False
    factors = np.left_shift(
        np.ones(steps.shape, np.int64), steps.astype(np.int64)
    )
    patch = Patch(node)
    operator = (
        "Mul" if string_attribute(node, "direction", "") == "LEFT" else "Div"
    )
    patch.finish(
        patch.add(
            operator,
            first(node),
            patch.constant(factors.astype(kind), "factor"),
        )
    )
    return True


def _not(node: ir.Node) -> bool:
    kind = _kind(node)
    if kind is None or kind.kind not in "iu":
        return False
    patch = Patch(node)
    most = -1 if kind.kind == "i" else 2 ** (8 * kind.itemsize) - 1
    if most > LARGEST:
        return False
    x = patch.add("Cast", first(node), to=int(ir.DataType.INT64))
    complement = patch.add("Add", patch.add("Neg", x), _integer(patch, most))
    patch.finish(
        patch.add("Cast", complement, to=int(ir.DataType.from_numpy(kind)))
    )
    return True


def _masked(node: ir.Node) -> bool:
    """Lower And, Or and Xor with a mask m, in integers wide enough for 2^b.

    x or m = x + m - (x and m); x xor m = x + m - 2 * (x and m).
    """
    x, exact = first(node), constant(operand(node, 1))
    if exact is None and node.inputs[1] is not None:  # a mask comes first, too
        x, exact = node.inputs[1], constant(operand(node, 0))
    kind = _kind(node)
    if (
        exact is None
        or exact.size != 1
        or kind is None
        or kind.kind not in "iu"
    ):
        return False
    mask = int(exact.reshape(()))
    runs = _runs(mask, signed=kind.kind == "i")
    if runs is None:
        return False
    patch = Patch(node)
    wide = patch.add("Cast", x, to=int(ir.DataType.INT64))
    value = _and(patch, wide, runs)
    if node.op_type != "BitwiseAnd":
        total = patch.add("Add", wide, _integer(patch, mask))
        if node.op_type == "BitwiseXor":
            value = patch.add("Mul", value, _integer(patch, 2))
        value = patch.add("Sub", total, value)
    patch.finish(patch.add("Cast", value, to=int(ir.DataType.from_numpy(kind))))
    return True


def _and(
    patch: Patch, x: ir.Value, runs: list[tuple[int, int | None]]
) -> ir.Value:
    """Add the parts of x that each run of ones keeps.

    A run without an end keeps every bit from its start up, so its upper part is x
    itself.
    """
    total: ir.Value | None = None
    for start, end in runs:
        term = x if end is None else _rest(patch, x, end)
        term = patch.add("Sub", term, _rest(patch, x, start)) if start else term
        total = term if total is None else patch.add("Add", total, term)
    return patch.add("Mul", x, _integer(patch, 0)) if total is None else total


def _rest(patch: Patch, x: ir.Value, bits: int) -> ir.Value:
    return patch.add("Mod", x, _integer(patch, 1 << bits), fmod=0)


def _integer(patch: Patch, number: int) -> ir.Value:
    return patch.constant(np.array(number, np.int64), "number")


def _runs(mask: int, *, signed: bool) -> list[tuple[int, int | None]] | None:
    """Return the runs of ones in a mask as (first bit, bit after the last).

    None is the end of a run that goes on past bit 30. Returns None for a signed type if
    a run starts or ends at bit 31: it would need a power of two that has 33 bits.
    """
    runs: list[tuple[int, int | None]] = []
    start: int | None = None
    for bit in range(MOST_SHIFT + 1):
        if mask >> bit & 1:
            start = bit if start is None else start
        elif start is not None:
            runs.append((start, bit))
            start = None
    if start is not None:
        runs.append((start, None))
        return None if signed and mask >= 0 else runs
    return None if signed and mask < 0 else runs


_LOWER: dict[str, Callable[[ir.Node], bool]] = {
    "BitShift": _shift,
    "BitwiseAnd": _masked,
    "BitwiseNot": _not,
    "BitwiseOr": _masked,
    "BitwiseXor": _masked,
}
