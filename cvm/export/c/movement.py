"""Elements that change their places: copies from one view to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from cvm.export.c.instruction import CInstruction, literal
from cvm.export.c.nest import View, contiguous, copy, nest, strides_of


@dataclass(frozen=True)
class Copy:
    """A space of indices, and where its elements lie in the result and in an operand."""

    counts: Sequence[int]
    to: View
    source: View
    operand: int = 0

    def text(self) -> str:
        """Loops of C."""
        origin = f"x{self.operand}"
        return "\n".join(copy(self.counts, self.to, self.source, "y", origin))


def written(name: str) -> Callable[[CInstruction], str]:
    """The writer of an instruction's copies, one after the other."""
    return lambda node: "\n".join(copy.text() for copy in COPIES[name](node))


def pad(node: CInstruction) -> str:
    """The value everywhere, then x in the middle."""
    y_strides, shape = strides_of(node.result.shape), node.operands[0].shape
    value = literal(node.integer("value"))
    fill = nest([prod(node.result.shape)], [f"y[i0] = {value};"])
    target = View(y_strides, _place(node.integers("pads")[::2], y_strides))
    return "\n".join([*fill, Copy(shape, target, contiguous(shape)).text()])


def _reshape(node: CInstruction) -> list[Copy]:
    """The same elements in the same order."""
    shape = node.result.shape
    return [Copy(shape, contiguous(shape), contiguous(shape))]


def _transpose(node: CInstruction) -> list[Copy]:
    """Axes of x, in another order."""
    x_strides = strides_of(node.operands[0].shape)
    strides = tuple(x_strides[axis] for axis in node.integers("perm"))
    shape = node.result.shape
    return [Copy(shape, contiguous(shape), View(strides))]


def _concat(node: CInstruction) -> list[Copy]:
    """Each operand is copied to where it begins."""
    axis, y_strides = node.integer("axis"), strides_of(node.result.shape)
    shapes = [operand.shape for operand in node.operands]
    sizes = [shape[axis] for shape in shapes]
    begins = accumulate(sizes[:-1], initial=0)
    return [
        Copy(
            shape,
            View(y_strides, begin * y_strides[axis]),
            contiguous(shape),
            index,
        )
        for index, (shape, begin) in enumerate(zip(shapes, begins, strict=True))
    ]


def _slice(node: CInstruction) -> list[Copy]:
    """A box of x."""
    x_strides = strides_of(node.operands[0].shape)
    source = View(x_strides, _place(node.integers("start"), x_strides))
    return [Copy(node.result.shape, contiguous(node.result.shape), source)]


def _tile(node: CInstruction) -> list[Copy]:
    """Each axis becomes two: the repetition, over which x stands still, and the index within x."""
    shape, multiples = node.operands[0].shape, node.integers("multiples")
    x_strides = strides_of(shape)
    pairs = list(zip(multiples, shape, strict=True))
    counts = [count for pair in pairs for count in pair]
    strides = [step for stride in x_strides for step in (0, stride)]
    return [Copy(counts, contiguous(counts), View(tuple(strides)))]


def _reverse(node: CInstruction) -> list[Copy]:
    """A negative stride, from the last element of the axis."""
    axis, shape = node.integer("axis"), node.result.shape
    x_strides = strides_of(shape)
    strides = tuple(-s if i == axis else s for i, s in enumerate(x_strides))
    source = View(strides, (shape[axis] - 1) * x_strides[axis])
    return [Copy(shape, contiguous(shape), source)]


def _place(start: Sequence[int], strides: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(start, strides, strict=True))


COPIES: Mapping[str, Callable[[CInstruction], list[Copy]]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": _concat,
    "slice": _slice,
    "tile": _tile,
    "reverse": _reverse,
}
