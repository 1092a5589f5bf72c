"""Refuse operands that no operator of ONNX takes: one left empty, a rank, an axis, a reduction.

The library's shape inference accepts them. The operators here look up, write, pad or
reverse elements; `operands` has those that compute with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from mrt.graph.values import int_attribute, operand, string_attribute

Shape = tuple[int, ...]
Check = Callable[[ir.Node, Sequence[Shape]], str | None]

_OF_ANY_NUMBER = ("Concat", "Einsum", "Max", "Mean", "Min", "Sum")
_REDUCTIONS = ("none", "add", "mul", "max", "min")
_THETAS = ((2, 3), (3, 4))  # of pictures, of volumes


def empty_operand(node: ir.Node) -> str | None:
    """Return what is wrong if an operand is left empty in a list of which all are read."""
    if node.op_type not in _OF_ANY_NUMBER or None not in node.inputs:
        return None
    place = list(node.inputs).index(None) + 1
    return (
        f"operand {place} of {len(node.inputs)} is left empty; expected a value"
    )


def _gather_elements(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, indices = shapes[:2]
    return _axis(node, x) or _element_indices(node, x, indices)


def _scatter_elements(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, indices, updates = shapes[:3]
    if updates != indices:
        return f"updates {list(updates)}; expected the shape of the indices, {list(indices)}"
    return _gather_elements(node, (x, indices)) or _reduction(node)


def _element_indices(node: ir.Node, x: Shape, indices: Shape) -> str | None:
    axis = int_attribute(node, "axis", 0) % len(x)
    fits = len(indices) == len(x) and all(
        size <= length or place == axis
        for place, (size, length) in enumerate(zip(indices, x, strict=True))
    )
    if fits:
        return None
    return (
        f"indices {list(indices)}; expected as many axes as its input {list(x)}, "
        f"none longer than there but axis {axis}"
    )


def _gather_nd(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, indices = shapes[:2]
    batch = int_attribute(node, "batch_dims", 0)
    fits = (
        0 <= batch < min(len(x), len(indices))
        and indices[:batch] == x[:batch]
        and 0 <= indices[-1] <= len(x) - batch
    )
    if fits:
        return None
    return (
        f"indices {list(indices)} and batch_dims={batch} do not go together "
        f"with its input {list(x)}"
    )


def _scatter_nd(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, indices, updates = shapes[:3]
    if not indices or indices[-1] > len(x):
        return (
            f"indices {list(indices)}; expected a last axis of at most "
            f"{len(x)} for its input {list(x)}"
        )
    expected = indices[:-1] + x[indices[-1] :]
    if updates != expected:
        return f"updates {list(updates)}; expected {list(expected)}"
    return _reduction(node)


def _compress(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, condition = shapes[:2]
    if len(condition) != 1:
        return f"condition {list(condition)}; expected one axis"
    return _axis(node, x) if "axis" in node.attributes else None


def _unique(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    return _axis(node, shapes[0]) if "axis" in node.attributes else None


def _reverse_sequence(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, lengths = shapes[:2]
    time = int_attribute(node, "time_axis", 0)
    batch = int_attribute(node, "batch_axis", 1)
    if (time, batch) not in ((0, 1), (1, 0)):
        return f"time_axis={time} and batch_axis={batch}; expected 0 and 1, or 1 and 0"
    if len(x) < 2 or lengths != (x[batch],):
        return (
            f"sequence_lens {list(lengths)} do not go together "
            f"with its input {list(x)}"
        )
    return None


def _non_max_suppression(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    boxes, scores = shapes[:2]
    if len(boxes) == len(scores) == 3:
        return None
    return f"boxes {list(boxes)} and scores {list(scores)}; expected three axes each"


def _affine_grid(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    theta = shapes[0]
    if len(theta) == 3 and theta[1:] in _THETAS:
        return None
    return f"theta {list(theta)}; expected [batch, 2, 3] or [batch, 3, 4]"


def _pad(node: ir.Node, shapes: Sequence[Shape]) -> str | None:
    x, pads = shapes[:2]
    count = len(x)
    if operand(node, 3) is not None:
        axes = shapes[3]
        if len(axes) != 1:
            return f"axes {list(axes)}; expected one axis"
        count = axes[0]
    if pads in ((2 * count,), (1, 2 * count)):
        return None
    return (
        f"pads {list(pads)} for {count} axes of its input {list(x)}; "
        f"expected [{2 * count}]"
    )


def _axis(node: ir.Node, x: Shape) -> str | None:
    axis = int_attribute(node, "axis", 0)
    if -len(x) <= axis < len(x):
        return None
    return f"axis={axis}; its input {list(x)} has {len(x)} axes"


def _reduction(node: ir.Node) -> str | None:
    reduction = string_attribute(node, "reduction", "none")
    if reduction in _REDUCTIONS:
        return None
    return f"reduction={reduction}; expected one of {', '.join(_REDUCTIONS)}"


RANK_CHECKS: dict[str, Check] = {
    "AffineGrid": _affine_grid,
    "Compress": _compress,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonMaxSuppression": _non_max_suppression,
    "Pad": _pad,
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Unique": _unique,
}
