"""Elements that change their places: each is a copy from one view to another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from cvm.export.c.instruction import CInstruction, literal
from cvm.export.c.nest import View, contiguous, copy, nest, strides_of


def reshape(node: CInstruction) -> str:
    """The same elements in the same order."""
    shape = node.result.shape
    return _copy(shape, contiguous(shape), contiguous(shape))


def transpose(node: CInstruction) -> str:
    """Axes of x, in another order."""
    own = strides_of(node.operands[0].shape)
    strides = tuple(own[axis] for axis in node.integers("perm"))
    return _copy(
        node.result.shape, contiguous(node.result.shape), View(strides)
    )


def concat(node: CInstruction) -> str:
    """Each operand is copied to where it begins."""
    axis, own = node.integer("axis"), strides_of(node.result.shape)
    sizes = [operand.shape[axis] for operand in node.operands]
    parts = []
    for index, begin in enumerate(accumulate(sizes[:-1], initial=0)):
        shape = node.operands[index].shape
        target = View(own, begin * own[axis])
        parts.append(_copy(shape, target, contiguous(shape), f"x{index}"))
    return "\n".join(parts)


def slice_(node: CInstruction) -> str:
    """A box of x."""
    own = strides_of(node.operands[0].shape)
    source = View(own, _place(node.integers("start"), own))
    return _copy(node.result.shape, contiguous(node.result.shape), source)


def pad(node: CInstruction) -> str:
    """The value everywhere, then x in the middle."""
    own, shape = strides_of(node.result.shape), node.operands[0].shape
    value = literal(node.integer("value"))
    fill = nest([prod(node.result.shape)], [f"y[i0] = {value};"])
    target = View(own, _place(node.integers("pads")[::2], own))
    return "\n".join([*fill, _copy(shape, target, contiguous(shape))])


def tile(node: CInstruction) -> str:
    """Each axis becomes two: the repetition, over which x stands still, and the index within x."""
    shape, multiples = node.operands[0].shape, node.integers("multiples")
    own = strides_of(shape)
    pairs = list(zip(multiples, shape, strict=True))
    counts = [count for pair in pairs for count in pair]
    strides = [step for stride in own for step in (0, stride)]
    return _copy(counts, contiguous(counts), View(tuple(strides)))


def reverse(node: CInstruction) -> str:
    """A negative stride, from the last element of the axis."""
    axis, shape = node.integer("axis"), node.result.shape
    own = strides_of(shape)
    strides = tuple(-s if i == axis else s for i, s in enumerate(own))
    source = View(strides, (shape[axis] - 1) * own[axis])
    return _copy(shape, contiguous(shape), source)


def _place(start: Sequence[int], strides: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(start, strides, strict=True))


def _copy(
    counts: Sequence[int], to: View, source: View, origin: str = "x0"
) -> str:
    return "\n".join(copy(counts, to, source, "y", origin))
