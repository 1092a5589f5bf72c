"""Moves slices toward the inputs, so that a detector's parts keep their own scales.

The rows of a detector (class, score, box) are joined from parts and sliced apart again.
With the slice in front of the join, each part is used in its own scale. Only for models
that choose among boxes (domain "mrt", or a TopK): elsewhere a slice may be cheaper after the
nodes that move the entire value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from mrt.graph.names import fresh_name
from mrt.graph.patch import Patch
from mrt.graph.values import (
    OWN_DOMAIN,
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.canonical_operators import OWN_OPERATORS

SUPPRESSION = "NonMaxSuppression"


@dataclass(frozen=True)
class Cut:
    """The elements start to end - 1 along one axis."""

    axis: int
    start: int
    end: int


def pull_slices(model: ir.Model) -> int:
    """Slice(f(x, ...)) -> f(Slice(x), ...).

    f is Concat, Reshape, Transpose, Pad, Gather, another Slice, or NonMaxSuppression,
    which then keeps fewer boxes. Applies where the slice can move on to a Concat of
    other parts, to padding that it removes, or to a NonMaxSuppression. Equal.
    """
    if not any(map(_chooses, model.graph)):
        return 0
    count = 0
    for node in nodes(model, "Slice"):
        cut, shape = _cut(node), shape_of(first(node))
        maker = first(node).producer()
        if (
            cut is None
            or maker is None
            or shape is None
            or not _leads_on(first(node), cut)
        ):
            continue
        patch = Patch(node)
        patch.finish(_PULLS[maker.op_type](patch, maker, cut))
        count += 1
    return count


def _chooses(node: ir.Node) -> bool:
    """Whether a node chooses among boxes: a NonMaxSuppression does, and a TopK may."""
    return node.domain == OWN_DOMAIN or node.op_type == "TopK"


def _cut(node: ir.Node) -> Cut | None:
    """Return the Cut of a Slice of one axis, forwards and without gaps; else None."""
    shape = shape_of(first(node))
    starts, ends, axes, steps = (
        constant_integers(operand(node, index)) for index in (1, 2, 3, 4)
    )
    if (
        shape is None
        or starts is None
        or ends is None
        or set(steps or ()) - {1}
    ):
        return None
    kept = [
        Cut(
            axis % len(shape),
            *(_place(place, shape[axis]) for place in (start, end)),
        )
        for axis, start, end in zip(
            axes or range(len(starts)), starts, ends, strict=True
        )
    ]
    kept = [cut for cut in kept if (cut.start, cut.end) != (0, shape[cut.axis])]
    return kept[0] if len(kept) == 1 and kept[0].start < kept[0].end else None


def _place(place: int, size: int) -> int:
    return min(max(place + size if place < 0 else place, 0), size)


def _leads_on(value: ir.Value, cut: Cut) -> bool:
    """Whether a slice of `value` can move on to where it saves or separates something."""
    waiting = [(value, cut)]
    visited = set(waiting)
    while waiting:
        value, cut = waiting.pop()
        if _is_worthwhile(value, cut):
            return True
        behind = [pair for pair in _before(value, cut) if pair not in visited]
        visited.update(behind)
        waiting += behind
    return False


def _before(value: ir.Value, cut: Cut) -> list[tuple[ir.Value, Cut]]:
    """Return the values, with their cuts, to which a slice of `value` can move."""
    node = value.producer()
    if node is None or not _is_passed(node):
        return []
    return _behind(node, cut) or []


def _is_passed(node: ir.Node) -> bool:
    return node.op_type in _PULLS and node.domain in ("", OWN_DOMAIN)


def _is_worthwhile(value: ir.Value, cut: Cut) -> bool:
    """Whether a slice in front of the node that made `value` saves or separates something."""
    node, shape = value.producer(), shape_of(value)
    if node is None or shape is None or not _is_passed(node):
        return False
    if node.op_type == SUPPRESSION:
        return (
            node.domain == OWN_DOMAIN
            and cut.axis == 1
            and cut.start == 0
            and not int_attribute(node, "gaps", 0)
        )
    if (
        node.op_type == "Concat"
        and int_attribute(node, "axis", 0) % len(shape) == cut.axis
    ):
        return True
    return (
        node.op_type == "Pad"
        and _pads(node, cut.axis) not in (None, (0, 0))
        and _within_pad(node, cut) is not None
    )


def _behind(node: ir.Node, cut: Cut) -> list[tuple[ir.Value, Cut]] | None:
    """Return the operands whose slices make up the slice of the result, with their Cuts.

    None where the slice of the result is not a result of slices.
    """
    x, axis = first(node), cut.axis
    shape, result = shape_of(x), shape_of(node.outputs[0])
    if shape is None or result is None:
        return None
    match node.op_type:
        case "Concat":
            return [(value, cut) for value in node.inputs if value is not None]
        case "Pad":
            return [(x, cut)] if _pads(node, axis) == (0, 0) else None
        case "Transpose":
            perm = (
                ints_attribute(node, "perm") or tuple(range(len(shape)))[::-1]
            )
            return [(x, Cut(perm[axis], cut.start, cut.end))]
        case "Reshape":
            moved = _same_axis(shape, result, axis)
            return (
                None if moved is None else [(x, Cut(moved, cut.start, cut.end))]
            )
        case "Slice":
            other = _cut(node)
            return (
                [(x, cut)] if other is not None and other.axis != axis else None
            )
        case "Gather":
            return _behind_gather(node, cut)
        case _:
            return None


def _behind_gather(
    node: ir.Node, cut: Cut
) -> list[tuple[ir.Value, Cut]] | None:
    data, indices = first(node), operand(node, 1)
    shape, places = shape_of(data), shape_of(indices)
    if shape is None or places is None or indices is None:
        return None
    picked = int_attribute(node, "axis", 0) % len(shape)
    if cut.axis < picked:
        return [(data, cut)]
    if cut.axis < picked + len(places):
        return [(indices, Cut(cut.axis - picked, cut.start, cut.end))]
    return [(data, Cut(cut.axis - len(places) + 1, cut.start, cut.end))]


def _same_axis(
    shape: Sequence[int], result: Sequence[int], axis: int
) -> int | None:
    """Return the axis of x that a Reshape leaves as axis `axis` of its result.

    The two have the same size and the same number of elements in front of them. None if
    there is no such axis.
    """
    for other, size in enumerate(shape):
        if size == result[axis] and prod(shape[:other]) == prod(result[:axis]):
            return other
    return None


def _pads(node: ir.Node, axis: int) -> tuple[int, int] | None:
    """Return the pads before and after one axis.

    None unless the Pad is of mode constant, with pads for all axes.
    """
    pads = constant_integers(operand(node, 1))
    rank = len(shape_of(first(node)) or ())
    if (
        pads is None
        or len(pads) != 2 * rank
        or operand(node, 3) is not None
        or string_attribute(node, "mode", "constant") != "constant"
    ):
        return None
    return pads[axis], pads[axis + rank]


def _within_pad(node: ir.Node, cut: Cut) -> Cut | None:
    """Return the Cut of the operand of a Pad, or None.

    None unless only the axis of the cut is padded and the cut has no element of
    padding.
    """
    pads, shape = constant_integers(operand(node, 1)), shape_of(first(node))
    sides = _pads(node, cut.axis)
    if (
        pads is None
        or shape is None
        or sides is None
        or sum(pads) != sum(sides)
        or min(pads) < 0
    ):
        return None
    start, end = cut.start - sides[0], cut.end - sides[0]
    return (
        Cut(cut.axis, start, end)
        if start >= 0 and end <= shape[cut.axis]
        else None
    )


def _sliced(patch: Patch, value: ir.Value, cut: Cut) -> ir.Value:
    shape = shape_of(value) or ()
    if (cut.start, cut.end) == (0, shape[cut.axis]):
        return value
    sliced = patch.slice(value, cut.axis, cut.start, cut.end)
    sliced.shape = ir.Shape(
        [
            cut.end - cut.start if axis == cut.axis else size
            for axis, size in enumerate(shape)
        ]
    )
    return sliced


def _pull_concat(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    axis = int_attribute(node, "axis", 0) % len(shape_of(node.outputs[0]) or ())
    start = 0
    parts = []
    for value in node.inputs:
        assert value is not None
        if axis != cut.axis:
            parts.append(_sliced(patch, value, cut))
            continue
        size = (shape_of(value) or ())[axis]
        inner = Cut(axis, max(cut.start - start, 0), min(cut.end - start, size))
        start += size
        if inner.start < inner.end:
            parts.append(_sliced(patch, value, inner))
    return (
        patch.add("Concat", *parts, axis=axis)
        if len(parts) > 1
        else patch.add("Identity", parts[0])
    )


def _pull_pad(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    inner = _within_pad(node, cut)
    if _pads(node, cut.axis) != (0, 0) and inner is not None:
        return patch.add("Identity", _sliced(patch, first(node), inner))
    return patch.add(
        "Pad",
        _sliced(patch, first(node), cut),
        *node.inputs[1:],
        mode="constant",
    )


def _pull_reshape(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    value, moved = (_behind(node, cut) or [])[0]
    return patch.add(
        "Reshape",
        _sliced(patch, value, moved),
        patch.axes(list(shape_of(patch.output) or ()), "shape"),
    )


def _pull_transpose(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    value, moved = (_behind(node, cut) or [])[0]
    perm = (
        ints_attribute(node, "perm")
        or tuple(range(len(shape_of(value) or ())))[::-1]
    )
    return patch.add("Transpose", _sliced(patch, value, moved), perm=perm)


def _pull_slice(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    return patch.add(
        "Slice", _sliced(patch, first(node), cut), *node.inputs[1:]
    )


def _pull_gather(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    value, moved = (_behind(node, cut) or [])[0]
    pulled = _sliced(patch, value, moved)
    pair = [pulled if operand is value else operand for operand in node.inputs]
    return patch.add(
        "Gather",
        *pair,
        axis=int_attribute(node, "axis", 0) % len(shape_of(first(node)) or ()),
    )


def _pull_suppression(patch: Patch, node: ir.Node, cut: Cut) -> ir.Value:
    """Keep only the boxes up to the end of the cut: they come best first."""
    name = fresh_name(patch.graph, f"{patch.base}.{SUPPRESSION.lower()}")
    fewer = ir.Node(
        OWN_DOMAIN,
        SUPPRESSION,
        node.inputs,
        [*node.attributes.values()],
        name=name,
    )
    fewer.attributes["keep"] = ir.AttrInt64("keep", cut.end)
    fewer.outputs[0].name = name
    patch.graph.insert_before(patch.node, fewer)
    return fewer.outputs[0]


_PULLS: dict[str, Callable[[Patch, ir.Node, Cut], ir.Value]] = {
    "Concat": _pull_concat,
    "Pad": _pull_pad,
    "Reshape": _pull_reshape,
    "Transpose": _pull_transpose,
    "Slice": _pull_slice,
    "Gather": _pull_gather,
    SUPPRESSION: _pull_suppression,
}
assert SUPPRESSION in OWN_OPERATORS
