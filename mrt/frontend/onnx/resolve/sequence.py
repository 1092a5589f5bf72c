"""Replace a sequence whose length and positions are known at conversion by its tensors, and an optional by what it holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.frontend.onnx.resolve.bodies import (
    ResolvePatch,
    int_or,
    remove_with_bodies,
)
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.values import Array, nodes, operand, producer

MOST_PIECES = 4096

Tensors = list[ir.Value]
MaybeTensors = Tensors | None  # None where the sequence is not known
MaybeValue = ir.Value | None  # None where the node cannot be replaced


def resolve_sequences(model: ir.Model, shapes: Shapes) -> bool:
    """Replace readers of known sequences by Slices, Concats and the tensors themselves.

    Return whether anything was replaced.
    """
    if not nodes(model, *SEQUENCES):
        return False
    resolver = _Resolver(model, KnownValues(model, shapes))
    for node in list(model.graph):
        resolver.resolve(node)
    resolver.remove_unread()
    return resolver.changed


class _Resolver:
    """The resolution of a model's sequences, with the tensors of each known one."""

    def __init__(self, model: ir.Model, known_values: KnownValues) -> None:
        self.known_values = known_values
        self.changed = False
        self.tensors: dict[ir.Value, Tensors] = {}
        self._graph = model.graph
        self._nodes_before = set(model.graph)
        self._initializers_before = set(model.graph.initializers)

    def resolve(self, node: ir.Node) -> None:
        """Record the tensors of a new sequence, or replace a node that reads a known one."""
        if node.domain or len(node.outputs) != 1:
            return
        make = _MAKERS.get(node.op_type)
        if make is not None:
            elements = make(self, node)
            if elements is not None:
                self.tensors[node.outputs[0]] = elements
            return
        tensors = self.tensors_of(operand(node, 0))
        if tensors is None:
            return
        if node.op_type == "Identity":
            self._bypass(node)
            return
        read = _READERS.get(node.op_type)
        result = None if read is None else read(self, node, tensors)
        if result is not None:
            ResolvePatch(node).finish(result)
            self.changed = True

    def _bypass(self, node: ir.Node) -> None:
        """Make the readers of an Identity read the sequence itself."""
        sequence = node.inputs[0]
        output = node.outputs[0]
        if sequence is None or output.is_graph_output():
            return
        output.replace_all_uses_with(sequence)
        remove_with_bodies(node)
        self.changed = True

    def tensors_of(self, sequence: ir.Value | None) -> MaybeTensors:
        """Return the tensors of a sequence, if they are known."""
        return None if sequence is None else self.tensors.get(sequence)

    def integer(self, node: ir.Node, index: int, default: int) -> int | None:
        """Return an operand's number, the default if it is absent, None if it is not known."""
        value = operand(node, index)
        return default if value is None else self.known_values.single(value)

    def remove_unread(self) -> None:
        """Remove sequences that nothing reads any more, and values that only they read."""
        for node in reversed(self._graph):
            if any(map(_is_read, node.outputs)):
                continue
            is_new = node not in self._nodes_before
            is_maker = node.op_type in _MAKERS and not node.domain
            if is_new or is_maker:
                remove_with_bodies(node)
        initializers = self._graph.initializers
        for name, value in list(initializers.items()):
            is_new = name not in self._initializers_before
            if is_new and not _is_read(value):
                del initializers[name]


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _construct(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    tensors = [value for value in node.inputs if value is not None]
    return tensors if len(tensors) == len(node.inputs) else None


def _empty(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    return []


def _insert(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    tensors = resolver.tensors_of(operand(node, 0))
    inserted = operand(node, 1)
    if tensors is None or inserted is None:
        return None
    position = resolver.integer(node, 2, len(tensors))
    if position is None or not -len(tensors) <= position <= len(tensors):
        return None
    if position < 0:
        position += len(tensors)
    return [*tensors[:position], inserted, *tensors[position:]]


def _erase(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    tensors = resolver.tensors_of(operand(node, 0))
    position = resolver.integer(node, 1, -1)
    if tensors is None or position is None:
        return None
    if not -len(tensors) <= position < len(tensors):
        return None
    remaining = list(tensors)
    del remaining[position]
    return remaining


def _split(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    """Slice a tensor into pieces; those of length 1 lose their axis if keepdims is 0."""
    x = operand(node, 0)
    axis = int_or(node, "axis", 0)
    shape = resolver.known_values.shape(x)
    if x is None or shape is None:
        return None
    if not -len(shape) <= axis < len(shape):
        return None
    lengths = _lengths(resolver, node, shape[axis])
    if lengths is None:
        return None
    patch = ResolvePatch(node)
    lacks_split = operand(node, 1) is None
    squeezes = lacks_split and not int_or(node, "keepdims", 1)
    pieces: Tensors = []
    start = 0
    for length in lengths:
        begin = patch.axes([start], "start")
        end = patch.axes([start + length], "end")
        axes = patch.axes([axis])
        piece = patch.add("Slice", x, begin, end, axes)
        if squeezes:
            piece = patch.squeeze(piece, axis)
        pieces.append(piece)
        start += length
    return pieces


def _lengths(resolver: _Resolver, node: ir.Node, size: int) -> list[int] | None:
    """Return the lengths of the pieces.

    If the operand is one number, all pieces have that length except perhaps the last. If
    it is a list, they have the lengths in the list.
    """
    split = operand(node, 1)
    split_array: Array | None = np.array(1)
    if split is not None:
        split_array = resolver.known_values.array(split)
    if split_array is None:
        return None
    lengths = [int(number) for number in split_array.reshape(-1)]
    if split_array.ndim == 0:
        length = lengths[0]
        if length < 1 or size > MOST_PIECES * length:
            return None
        starts = range(0, size, length)
        lengths = [min(length, size - start) for start in starts]
    if len(lengths) > MOST_PIECES or sum(lengths) != size:
        return None
    return lengths if min(lengths, default=0) >= 1 else None


def _at(resolver: _Resolver, node: ir.Node, tensors: Tensors) -> MaybeValue:
    if operand(node, 1) is None:
        return None
    position = resolver.integer(node, 1, 0)
    if position is None or not -len(tensors) <= position < len(tensors):
        return None
    return ResolvePatch(node).add("Identity", tensors[position])


def _length(resolver: _Resolver, node: ir.Node, tensors: Tensors) -> MaybeValue:
    patch = ResolvePatch(node)
    count = np.array(len(tensors), np.int64)
    length = patch.constant(count, "length")
    return patch.add("Identity", length)


def _join(resolver: _Resolver, node: ir.Node, tensors: Tensors) -> MaybeValue:
    if not tensors:
        return None
    axis = int_or(node, "axis", 0)
    patch = ResolvePatch(node)
    joined = tensors
    if int_or(node, "new_axis", 0):
        joined = [patch.unsqueeze(tensor, axis) for tensor in tensors]
    return patch.add("Concat", *joined, axis=axis)


def _optional(resolver: _Resolver, node: ir.Node) -> MaybeTensors:
    """Return the tensor that an optional holds; one of a sequence, or of nothing, is not read."""
    held = operand(node, 0)
    is_sequence = held is None or producer(held, *_MAKERS) is not None
    return None if held is None or is_sequence else [held]


def _element(
    resolver: _Resolver, node: ir.Node, tensors: Tensors
) -> MaybeValue:
    if producer(node.inputs[0], "Optional") is None:
        return None
    return ResolvePatch(node).add("Identity", tensors[0])


def _has_element(
    resolver: _Resolver, node: ir.Node, tensors: Tensors
) -> MaybeValue:
    if producer(node.inputs[0], "Optional") is None:
        return None
    patch = ResolvePatch(node)
    return patch.add("Identity", patch.constant(np.array(True), "has"))


_Maker = Callable[[_Resolver, ir.Node], MaybeTensors]
_MAKERS: dict[str, _Maker] = {
    "Optional": _optional,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SplitToSequence": _split,
}
_Reader = Callable[[_Resolver, ir.Node, Tensors], MaybeValue]
_READERS: dict[str, _Reader] = {
    "ConcatFromSequence": _join,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceLength": _length,
}
SEQUENCES = frozenset({*_MAKERS, *_READERS})
