"""A Loop or Scan that runs a known number of times becomes its steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.resolve.functions import MOST_NODES
from mrt.frontend.onnx.resolve.if_branch import rename
from mrt.frontend.onnx.resolve.known_values import Known, Shapes, is_small

MOST_STEPS = 1024
MOST_DECISIONS = 64  # steps of a loop that decides anew each time whether to go on


def unroll_loops(proto: onnx.ModelProto, shapes: Shapes) -> bool:
    """Write out the first Loop or Scan whose number of steps is known; whether there was one."""
    if not any(node.op_type in ("Loop", "Scan") for node in proto.graph.node):
        return False
    known = Known(proto, shapes)
    for index, node in enumerate(proto.graph.node):
        bodies = [item.g for item in node.attribute if item.name == "body"]
        if (
            node.op_type not in ("Loop", "Scan")
            or node.domain not in DEFAULT_DOMAINS
            or len(bodies) != 1
        ):
            continue
        steps = _Steps(proto, node, bodies[0])
        made = steps.loop(known) if node.op_type == "Loop" else steps.scan(known)
        if made is not None:
            nodes = [
                onnx.NodeProto.FromString(item.SerializeToString())
                for item in proto.graph.node
            ]
            nodes[index : index + 1] = made
            del proto.graph.node[:]
            proto.graph.node.extend(nodes)
            return True
    return False


class _Steps:
    """Copies of a body, each under names of its own."""

    def __init__(
        self, proto: onnx.ModelProto, node: onnx.NodeProto, body: onnx.GraphProto
    ) -> None:
        self.proto, self.node, self.body = proto, node, body
        versions = [
            entry.version
            for entry in proto.opset_import
            if entry.domain in DEFAULT_DOMAINS
        ]
        self.opset = versions[0] if versions else 0
        taken = {
            name for item in proto.graph.node for name in (*item.input, *item.output)
        }
        taken |= {tensor.name for tensor in proto.graph.initializer}
        self.prefix = f"{node.output[0] if node.output else 'loop'}."
        while any(name.startswith(self.prefix) for name in taken):
            self.prefix += "_"
        self._count = 0  # steps written so far
        self.made: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def loop(self, known: Known) -> list[onnx.NodeProto] | None:
        """As many steps as said, or until the condition says no."""
        most, go_on = self._limit(known), self._goes_on(known)
        states = list(self.node.input[2:])
        kept = len(self.node.output) - len(states)
        if (
            most is None
            or go_on is None
            or kept < 0
            or len(self.body.input) != 2 + len(states)
        ):
            return None
        if len(self.body.output) != 1 + len(states) + kept:
            return None
        stacked: list[list[str]] = [[] for _ in range(kept)]
        while go_on and self._count < most:
            if not self._has_room(most):
                return None
            results = self._step(
                [
                    self._constant(self._count, np.int64),
                    self._constant(True, np.bool_),
                    *states,
                ]
            )
            decided = self._decided(results[0])
            if decided is None:
                return None
            go_on, states = decided, results[1 : 1 + len(states)]
            for column, name in zip(stacked, results[1 + len(states) :], strict=True):
                column.append(name)
        return self._finish(states, stacked, axes=[0] * kept, reverse=[0] * kept)

    def scan(self, known: Known) -> list[onnx.NodeProto] | None:
        """A step for each entry of the axes that are scanned."""
        numbers = {
            item.name: list(item.ints) or item.i
            for item in self.node.attribute
            if item.name != "body"
        }
        scanned = numbers.get("num_scan_inputs", 0)
        if (
            not isinstance(scanned, int)
            or not 0 < scanned <= len(self.node.input)
            or self.opset < 9
        ):
            return None
        count = len(self.node.input) - scanned
        states, sources = list(self.node.input[:count]), list(self.node.input[count:])
        kept = len(self.node.output) - count
        if (
            len(self.body.input) != len(self.node.input)
            or kept < 0
            or len(self.body.output) != count + kept
        ):
            return None
        axes = _list(numbers, "scan_input_axes", scanned)
        shapes = [known.shape(name) for name in sources]
        if any(
            shape is None or not -len(shape) <= axis < len(shape)
            for shape, axis in zip(shapes, axes, strict=True)
        ):
            return None
        lengths = {
            shape[axis]
            for shape, axis in zip(shapes, axes, strict=True)
            if shape is not None
        }
        steps = lengths.pop() if len(lengths) == 1 else 0
        if not 0 < steps <= MOST_STEPS or not self._has_room(steps):
            return None
        backwards = _list(numbers, "scan_input_directions", scanned)
        stacked: list[list[str]] = [[] for _ in range(kept)]
        for step in range(steps):
            places = [
                self._constant(steps - 1 - step if back else step, np.int64)
                for back in backwards
            ]
            parts = [self._add("Gather", [name, place], axis=axis)
                     for name, place, axis in zip(sources, places, axes, strict=True)]  # fmt: skip
            results = self._step([*states, *parts])
            states = results[:count]
            for column, name in zip(stacked, results[count:], strict=True):
                column.append(name)
        ends = _list(numbers, "scan_output_axes", kept)
        return self._finish(
            states,
            stacked,
            axes=ends,
            reverse=_list(numbers, "scan_output_directions", kept),
        )

    def _limit(self, known: Known) -> int | None:
        """The number of steps at most; None where it is not known, or too large to write out."""
        name = self.node.input[0] if self.node.input else ""
        most = known.value(name) if name else np.array(2**63 - 1)
        return None if most is None or most.size != 1 else int(most.reshape(()))

    def _goes_on(self, known: Known) -> bool | None:
        name = self.node.input[1] if len(self.node.input) > 1 else ""
        begins = known.value(name) if name else np.array(True)
        return None if begins is None or begins.size != 1 else bool(begins.reshape(()))

    def _has_room(self, most: int) -> bool:
        """Whether a loop so long, or one more step of it, can be written out."""
        fixed = self._keeps_going()
        steps = min(most, MOST_STEPS + 1) if fixed else self._count + 1
        if steps > (MOST_STEPS if fixed else MOST_DECISIONS):
            return False
        return len(self.proto.graph.node) + steps * len(self.body.node) <= MOST_NODES

    def _keeps_going(self) -> bool:
        """Whether the condition is the one that a step was given, or a constant; a Scan has none."""
        if self.node.op_type == "Scan":
            return True
        makers = {name: item for item in self.body.node for name in item.output}
        name = self.body.output[0].name
        while (
            name in makers
            and makers[name].op_type == "Identity"
            and len(makers[name].input) == 1
        ):
            name = makers[name].input[0]
        return bool(name == self.body.input[1].name)

    def _decided(self, name: str) -> bool | None:
        """What a step's condition is."""
        if self._keeps_going():
            return True
        copy = onnx.ModelProto(ir_version=self.proto.ir_version)
        copy.opset_import.extend(self.proto.opset_import)
        copy.graph.node.extend([*self.proto.graph.node, *self.made])
        copy.graph.initializer.extend(
            tensor for tensor in self.proto.graph.initializer if is_small(tensor)
        )
        copy.graph.initializer.extend(self.tensors)
        found = Known(copy, None).value(name)
        return None if found is None or found.size != 1 else bool(found.reshape(()))

    def _step(self, given: Sequence[str]) -> list[str]:
        """One copy of the body; the names of its results."""
        prefix = f"{self.prefix}{self._count}."
        self._count += 1
        inner = [name for item in self.body.node for name in item.output] + [
            t.name for t in self.body.initializer
        ]
        names = {name: f"{prefix}{name}" for name in inner if name}
        names |= {
            value.name: name for value, name in zip(self.body.input, given, strict=True)
        }
        for tensor in self.body.initializer:
            held = onnx.TensorProto.FromString(tensor.SerializeToString())
            held.name = names[tensor.name]
            self.tensors.append(held)
        for item in self.body.node:
            made = onnx.NodeProto.FromString(item.SerializeToString())
            made.name = f"{prefix}{made.name}" if made.name else ""
            rename(made, names)
            self.made.append(made)
        return [names.get(value.name, value.name) for value in self.body.output]

    def _constant(self, number: int, kind: type[np.generic]) -> str:
        name = f"{self.prefix}constant{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.array(number, kind), name))
        return name

    def _add(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{self.prefix}{operator.lower()}{len(self.made)}"
        self.made.append(
            helper.make_node(operator, inputs, [name], name=name, **attributes)
        )
        return name

    def _finish(
        self,
        states: list[str],
        stacked: list[list[str]],
        *,
        axes: list[int],
        reverse: list[int],
    ) -> list[onnx.NodeProto] | None:
        """The last states and the stacks of what each step gave, under the node's own names."""
        ends = list(states)
        for column, axis, back in zip(stacked, axes, reverse, strict=True):
            if not column:
                return None
            apart = [
                self._apart(name, axis) for name in (column[::-1] if back else column)
            ]
            ends.append(self._add("Concat", apart, axis=axis))
        for name, own in zip(ends, self.node.output, strict=True):
            if own:
                self.made.append(
                    helper.make_node("Identity", [name], [own], name=f"{own}.taken")
                )
        self.proto.graph.initializer.extend(self.tensors)
        return self.made

    def _apart(self, name: str, axis: int) -> str:
        if self.opset >= 13:
            tensor = numpy_helper.from_array(
                np.array([axis], np.int64), f"{self.prefix}axes{len(self.tensors)}"
            )
            self.tensors.append(tensor)
            return self._add("Unsqueeze", [name, tensor.name])
        place = f"{self.prefix}unsqueeze{len(self.made)}"
        self.made.append(
            helper.make_node("Unsqueeze", [name], [place], name=place, axes=[axis])
        )
        return place


def _list(numbers: dict[str, list[int] | int], name: str, length: int) -> list[int]:
    """An attribute with an entry for each, all 0 where it is left out."""
    value = numbers.get(name, [])
    return value if isinstance(value, list) and len(value) == length else [0] * length
