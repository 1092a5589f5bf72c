"""Read the sum or mean of rows that a list names, where conditions decide which of known places it holds.

So torch exports nn.EmbeddingBag with padding_idx: an If for each place appends it, a Gather
takes the rows of the list. A program has fixed shapes: it takes the rows of all places and
multiplies each by 1 or 0, which gives the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.frontend.onnx.resolve.bodies import (
    ResolvePatch,
    int_or,
    remove_with_bodies,
)
from mrt.frontend.onnx.resolve.if_both import Append, append_of
from mrt.frontend.onnx.resolve.if_branch import InferenceBudget
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.values import Array, first, nodes, operand, producer

FIRST_OPSET = 18  # whose reductions read their axes, and which has CastLike
_REDUCTIONS = ("ReduceMean", "ReduceSum")


@dataclass(frozen=True)
class _List:
    """A list of places, each of which an If appends or leaves out."""

    value: ir.Value
    appends: list[Append]
    places: Array


@dataclass(frozen=True)
class _Readers:
    """All that reads a list: its length, and reductions of the rows that it names; possibly through an Identity."""

    identities: list[ir.Node]
    sizes: list[ir.Node]
    lookups: list[ir.Node]
    reductions: list[ir.Node]


def resolve_kept_rows(
    model: ir.Model, shapes: Shapes, budget: InferenceBudget
) -> bool:
    """Read the first such list; return whether there was one."""
    if model.graph.opset_imports.get("", 0) < FIRST_OPSET:
        return False
    appends = [append_of(node) for node in nodes(model, "If")]
    if not any(appends) or not budget.allows(model):
        return False
    known = KnownValues(model, shapes)
    inner = {append.before for append in appends if append is not None}
    for append in appends:
        if append is None or append.node.outputs[0] in inner:
            continue
        kept_list = _list_of(append, known)
        readers = None if kept_list is None else _readers(kept_list, known)
        if kept_list is not None and readers is not None:
            _write(kept_list, readers)
            return True
    return False


def _list_of(last: Append, known: KnownValues) -> _List | None:
    """Return the list that ends with this append; None unless it begins empty and all places are known."""
    appends: list[Append] = []
    append: Append | None = last
    value = last.node.outputs[0]
    while append is not None:
        appends.insert(0, append)
        value = append.before
        maker = producer(value, "If")
        append = None if maker is None else append_of(maker)
    begin = known.array(value)
    places = [known.array(append.piece) for append in appends]
    if begin is None or begin.size or begin.dtype != np.int64:
        return None
    single = [
        place for place in places if place is not None and place.size == 1
    ]
    if len(single) < len(places):
        return None
    joined = np.concatenate([place.reshape(1) for place in single])
    return _List(last.node.outputs[0], appends, joined)


def _readers(kept_list: _List, known: KnownValues) -> _Readers | None:
    """Return what reads a list; None if anything does that is neither of both."""
    readers, waiting = _Readers([], [], [], []), [kept_list.value]
    while waiting:
        some = waiting.pop()
        if some.is_graph_output():
            return None
        for use in some.uses():
            if use.node.op_type == "Identity":
                readers.identities.append(use.node)
                waiting.append(use.node.outputs[0])
            elif use.node.op_type == "Size":
                readers.sizes.append(use.node)
            elif use.idx == 1 and _is_lookup(use.node, kept_list.places, known):
                readers.lookups.append(use.node)
            else:
                return None
    for lookup in readers.lookups:
        rows = lookup.outputs[0]
        reductions = [use.node for use in rows.uses()]
        if rows.is_graph_output() or not all(
            _reduces_rows(node, known) for node in reductions
        ):
            return None
        readers.reductions.extend(reductions)
    return readers


def _is_lookup(node: ir.Node, places: Array, known: KnownValues) -> bool:
    """Return whether a node takes rows of a matrix that has all these places."""
    if node.op_type != "Gather" or int_or(node, "axis", 0):
        return False
    shape = known.shape(operand(node, 0)) or ()
    if len(shape) != 2:
        return False
    return bool((-shape[0] <= places).all() and (places < shape[0]).all())


def _reduces_rows(node: ir.Node, known: KnownValues) -> bool:
    if node.op_type not in _REDUCTIONS or not int_or(node, "keepdims", 1):
        return False
    axes = operand(node, 1)
    return axes is not None and known.single(axes) == 0


def _write(kept_list: _List, readers: _Readers) -> None:
    last = kept_list.appends[-1].node
    patch = ResolvePatch(last)
    flags = [_flag(patch, append) for append in kept_list.appends]
    kept = patch.add("Concat", *flags, axis=0)
    counted = patch.add("Cast", kept, to=int(ir.DataType.INT64))
    places = patch.constant(kept_list.places, "places")
    for size in readers.sizes:
        at_size = ResolvePatch(size)
        at_size.finish(at_size.add("ReduceSum", counted, keepdims=0))
    for lookup in readers.lookups:
        lookup.replace_input_with(1, places)
    for reduction in readers.reductions:
        _reduce_kept(reduction, counted, len(kept_list.places))
    unread = [append.node for append in kept_list.appends] + readers.identities
    for node in reversed(unread):
        # Something else may read the list as it was before its last place.
        if node.outputs[0].uses():
            return
        remove_with_bodies(node)


def _flag(patch: ResolvePatch, append: Append) -> ir.Value:
    """Write whether a place is kept, [1]."""
    condition = operand(append.node, 0)
    flag = patch.reshape(condition, [1])
    return flag if append.when else patch.add("Not", flag)


def _reduce_kept(node: ir.Node, counted: ir.Value, most: int) -> None:
    """Write the sum of the kept rows, [1, columns], or their mean, which is 0 of none."""
    patch, rows = ResolvePatch(node), first(node)
    weights = patch.add("CastLike", patch.reshape(counted, [1, -1]), rows)
    total = patch.add("MatMul", weights, rows)
    if node.op_type == "ReduceMean":
        counts = np.maximum(np.arange(most + 1), 1)
        shares = patch.constant(1 / counts.astype(np.float32), "shares")
        count = patch.add("ReduceSum", counted, keepdims=1)
        total = patch.add("Mul", total, patch.add("Gather", shares, count))
    patch.finish(total)
