"""A sequence whose length and places are known at conversion is the list of its tensors, and no value of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.resolve.known_values import Known, Shapes
from mrt.frontend.onnx.resolve.outputs import captured

MOST_PIECES = 4096


def resolve_sequences(proto: onnx.ModelProto, shapes: Shapes) -> bool:
    """Replace what reads known sequences by Slices, Concats and the tensors themselves; whether anything was."""
    if not any(node.op_type in SEQUENCES for node in proto.graph.node):
        return False
    lists = _Lists(proto, Known(proto, shapes))
    nodes = [made for node in proto.graph.node for made in lists.settle(node)]
    if not lists.changed:
        return False
    kept, read = [], {value.name for value in proto.graph.output}
    for node in reversed(
        nodes
    ):  # a sequence that nothing reads any more goes, and so does what only it read
        if (
            node.op_type not in _MAKERS
            or node.domain not in DEFAULT_DOMAINS
            or read.intersection(node.output)
        ):
            kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
            read |= {
                *node.input,
                *(name for item in node.attribute for name in captured(item)),
            }
    kept.reverse()
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    proto.graph.initializer.extend(lists.tensors)
    return True


class _Lists:
    """The tensors of each sequence met so far."""

    def __init__(self, proto: onnx.ModelProto, known: Known) -> None:
        self.known, self.changed = known, False
        self.found: dict[str, list[str]] = {}
        self.made: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        versions = [
            entry.version
            for entry in proto.opset_import
            if entry.domain in DEFAULT_DOMAINS
        ]
        self.opset = versions[0] if versions else 0
        self.taken = {
            name for node in proto.graph.node for name in (*node.input, *node.output)
        }
        self.taken |= {tensor.name for tensor in proto.graph.initializer}

    def settle(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes in the place of one: those of the tensors that a new sequence has, or of what is read of one."""
        if node.domain not in DEFAULT_DOMAINS:
            return [node]
        self.made = []
        if node.op_type in _MAKERS:
            tensors = _MAKERS[node.op_type](self, node)
            if tensors is not None:
                self.found[node.output[0]] = tensors
            return [*self.made, node]
        if node.op_type == "Identity" and node.input[0] in self.found:
            self.found[node.output[0]] = self.found[node.input[0]]
            self.changed = True
            return []
        tensors = (
            self.found.get(node.input[0])
            if node.op_type in _READERS and node.input
            else None
        )
        if tensors is not None and _READERS[node.op_type](self, node, tensors):
            self.changed = True
            return self.made
        return [node]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output."""
        name = self._name(f"{operator.lower()}")
        self.made.append(
            helper.make_node(operator, inputs, [name], name=name, **attributes)
        )
        return name

    def integers(self, *values: int) -> str:
        """A constant."""
        name = self._name("integers")
        self.tensors.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def turned(self, operator: str, x: str, axis: int) -> str:
        """Squeeze or Unsqueeze of an axis."""
        if self.opset >= 13:
            return self.add(operator, x, self.integers(axis))
        return self.add(operator, x, axes=[axis])

    def _name(self, base: str) -> str:
        count = len(self.taken)
        while (name := f"sequence.{base}.{count}") in self.taken:
            count += 1
        self.taken.add(name)
        return name

    def whole(
        self, node: onnx.NodeProto, index: int, default: int | None = None
    ) -> int | None:
        """A number that is an operand."""
        if index >= len(node.input) or not node.input[index]:
            return default
        value = self.known.value(node.input[index])
        return None if value is None or value.size != 1 else int(value.reshape(()))


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((item.i for item in node.attribute if item.name == name), default)


def _construct(lists: _Lists, node: onnx.NodeProto) -> list[str] | None:
    return list(node.input)


def _empty(lists: _Lists, node: onnx.NodeProto) -> list[str] | None:
    return []


def _insert(lists: _Lists, node: onnx.NodeProto) -> list[str] | None:
    tensors = lists.found.get(node.input[0])
    place = lists.whole(node, 2, len(tensors or ()))
    if tensors is None or place is None or not -len(tensors) <= place <= len(tensors):
        return None
    place = place + len(tensors) if place < 0 else place
    return [*tensors[:place], node.input[1], *tensors[place:]]


def _erase(lists: _Lists, node: onnx.NodeProto) -> list[str] | None:
    tensors = lists.found.get(node.input[0])
    place = lists.whole(node, 1, -1)
    if tensors is None or place is None or not -len(tensors) <= place < len(tensors):
        return None
    return [name for index, name in enumerate(tensors) if index != place % len(tensors)]


def _split(lists: _Lists, node: onnx.NodeProto) -> list[str] | None:
    """Pieces of one size, the last of which may be shorter, or of the sizes given; single entries lose their axis if so said."""
    axis, shape = _attribute(node, "axis", 0), lists.known.shape(node.input[0])
    given = (
        lists.known.value(node.input[1])
        if len(node.input) > 1 and node.input[1]
        else np.array(1)
    )
    if shape is None or given is None or not -len(shape) <= axis < len(shape):
        return None
    size, numbers = shape[axis], [int(number) for number in given.reshape(-1)]
    if given.ndim == 0:
        if numbers[0] < 1 or size > MOST_PIECES * numbers[0]:
            return None
        numbers = [
            min(numbers[0], size - start) for start in range(0, size, numbers[0])
        ]
    if (
        sum(numbers) != size
        or min(numbers, default=0) < 1
        or len(numbers) > MOST_PIECES
    ):
        return None
    pieces, start, squeezed = (
        [],
        0,
        len(node.input) < 2 and not _attribute(node, "keepdims", 1),
    )
    for number in numbers:
        ends = [lists.integers(value) for value in (start, start + number, axis)]
        piece = lists.add("Slice", node.input[0], *ends)
        pieces.append(lists.turned("Squeeze", piece, axis) if squeezed else piece)
        start += number
    return pieces


def _at(lists: _Lists, node: onnx.NodeProto, tensors: list[str]) -> bool:
    place = lists.whole(node, 1)
    if place is None or not -len(tensors) <= place < len(tensors):
        return False
    lists.made.append(
        helper.make_node("Identity", [tensors[place]], node.output, name=node.name)
    )
    return True


def _length(lists: _Lists, node: onnx.NodeProto, tensors: list[str]) -> bool:
    value = numpy_helper.from_array(np.array(len(tensors), np.int64))
    lists.made.append(
        helper.make_node("Constant", [], node.output, name=node.name, value=value)
    )
    return True


def _join(lists: _Lists, node: onnx.NodeProto, tensors: list[str]) -> bool:
    if not tensors:
        return False
    axis = _attribute(node, "axis", 0)
    parts = (
        [lists.turned("Unsqueeze", name, axis) for name in tensors]
        if _attribute(node, "new_axis", 0)
        else tensors
    )
    lists.made.append(
        helper.make_node("Concat", parts, node.output, name=node.name, axis=axis)
    )
    return True


_MAKERS: dict[str, Callable[[_Lists, onnx.NodeProto], list[str] | None]] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SplitToSequence": _split,
}
_READERS: dict[str, Callable[[_Lists, onnx.NodeProto, list[str]], bool]] = {
    "ConcatFromSequence": _join,
    "SequenceAt": _at,
    "SequenceLength": _length,
}
SEQUENCES = frozenset({*_MAKERS, *_READERS})
