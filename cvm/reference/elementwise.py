"""The rules that element-wise instructions share: one dtype, equal ranks, dimensions of 1 repeated."""

from __future__ import annotations

from collections.abc import Sequence

from cvm.program import TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call


def check_dtype(
    call: Call,
    constraint: str,
    types: Sequence[TensorType],
    allowed: tuple[str, ...],
) -> str:
    """The one dtype of all `types`, among `allowed`."""
    dtypes = [type_.dtype for type_ in types]
    holds = dtypes[0] in allowed and len(set(dtypes)) == 1
    expected = f"{'equal operands' if len(dtypes) > 1 else 'an operand'} of {' '.join(allowed)}"
    call.require(
        holds,
        constraint,
        f"operands are {', '.join(dtypes)}; expected {expected}",
    )
    return dtypes[0]


def check_broadcast(call: Call, constraint: str) -> tuple[int, ...]:
    """The result's shape: ranks are equal and, on each axis, every dimension is 1 or the greatest."""
    shapes = [type_.shape for type_ in call.types]
    holds = len({len(shape) for shape in shapes}) == 1
    shape = tuple(max(dimensions) for dimensions in zip(*shapes, strict=False))
    holds = holds and all(
        a in (1, b)
        for operand in shapes
        for a, b in zip(operand, shape, strict=True)
    )
    message = f"shapes {', '.join(map(str, shapes))}: expected equal ranks and dimensions that are equal or 1"
    call.require(holds, constraint, message)
    return shape


def check_unary(call: Call, *allowed: str) -> TensorType:
    """C1 of an instruction with one operand, which has the result's type."""
    check_dtype(call, "C1", call.types, allowed)
    return call.types[0]


def check_binary(call: Call, *allowed: str) -> TensorType:
    """C1 and C2 of an instruction with two operands, which have the result's dtype."""
    dtype = check_dtype(call, "C1", call.types, allowed)
    return TensorType(dtype, check_broadcast(call, "C2"))


def spread_bounds(call: Call) -> list[Bounds]:
    """Every operand's bounds, one interval per channel of the result."""
    assert call.result is not None
    return [operand.spread(call.result) for operand in call.bounds]
