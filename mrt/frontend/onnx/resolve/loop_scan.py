"""Unroll a Loop or Scan that runs a known number of times, or no more than so many, into its steps, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mrt.frontend.limits import MOST_NODES, weight
from mrt.frontend.onnx.resolve.bodies import (
    ResolvePatch,
    bodies_of,
    body_named,
    inline_body,
    remove_with_bodies,
    replace_outputs,
)
from mrt.frontend.onnx.resolve.if_both import FIRST_WHERE
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.values import ints_attribute, nodes, operand, producer

MOST_STEPS = 1024
MOST_DECISIONS = 64
"""The most steps of a loop that a computed condition ends, or a known one before a trip count that allows too many.

Its steps are written before it is found too long, and again behind each loop that is not.
"""

FIRST_SCAN = 9  # the first opset whose Scan has no axis for the batch
TOO_LONG = (
    "loop_scan.too_long"  # key in node.metadata_props: why a loop stays a loop
)
ENDLESS = 2**63 - 1  # the number of steps if a Loop states none

Values = Sequence[ir.Value]
Results = list[ir.Value] | None  # None where the loop cannot be unrolled


def unroll_one_loop(
    model: ir.Model, shapes: Shapes, *, may_choose: bool = False
) -> bool:
    """Unroll the first Loop or Scan whose number of steps is known; return whether there was one.

    With `may_choose`, a Loop whose end a computed condition decides is unrolled as well: each of its steps
    keeps the states once an earlier one has ended it.
    """
    loops = nodes(model, "Loop", "Scan")
    if not loops:
        return False
    known_values = KnownValues(model, shapes)
    for node in loops:
        body = body_named(node, "body")
        if body is None or not node.outputs:
            continue
        steps = _Steps(model, node, body, known_values, may_choose)
        unroll = _unroll_loop if node.op_type == "Loop" else _unroll_scan
        results = unroll(steps, known_values)
        if results is not None and steps.keep_shapes(shapes):
            replace_outputs(node, results)
            return True
        steps.undo()
    return False


@dataclass
class _Stack:
    """The values that the steps produce for one stacked output."""

    axis: int = 0
    reverse: bool = False
    values: list[ir.Value] = field(default_factory=list)


class _Steps:
    """Copies of a body in front of its node, each with value names of its own."""

    def __init__(
        self,
        model: ir.Model,
        node: ir.Node,
        body: ir.Graph,
        known_values: KnownValues,
        may_choose: bool,
    ) -> None:
        self.model = model
        self._may_choose = may_choose
        self._running: ir.Value | None = None  # computed: whether it goes on
        self._chosen: list[tuple[ir.Value, ir.Value]] = []
        self._known = known_values  # a condition may follow from shapes
        self.node = node
        self.body = body
        self.count = 0  # steps written so far
        graph = model.graph
        self._nodes_before = set(graph)
        self._initializers_before = set(graph.initializers)
        self._prefix = f"{node.outputs[0].name}."
        self._keeps_going = self._has_constant_condition()
        self._size = _unrolled_size(body, KnownValues(model, None))

    def has_room(self, steps: int) -> bool:
        """Return whether so many steps, or one more, can be written out; note on the loop why not."""
        most = MOST_STEPS
        if not self._keeps_going:
            most = MOST_STEPS if steps <= MOST_STEPS else MOST_DECISIONS
            steps = self.count + 1
        problem = self._too_long(steps, most)
        if problem:
            self.node.metadata_props[TOO_LONG] = problem
        return not problem

    def _too_long(self, steps: int, most: int) -> str:
        """Return what is too much about so many steps, or nothing."""
        if steps > most:
            return f"it {self._length(steps)}; at most {most} steps are written out"
        added, before = steps * self._size, len(self._nodes_before)
        if before + added > MOST_NODES:
            return (
                f"its {steps} steps of {self._size} nodes or more, beside {before} nodes of the model, "
                f"are too many; at most {MOST_NODES} nodes in all"
            )
        return ""

    def _length(self, steps: int) -> str:
        """Describe a length that is too much; where each step decides on the next, only those before are known."""
        if not self._keeps_going:
            return f"decides after each step whether to go on, and goes on after {self.count}"
        return "runs without end" if steps == ENDLESS else f"runs {steps} times"

    def _has_constant_condition(self) -> bool:
        """Return whether a step's condition is always the one that it received.

        A Scan has no condition, so the answer is yes.
        """
        if self.node.op_type == "Scan":
            return True
        if not self.body.outputs or len(self.body.inputs) < 2:
            return False
        value = self.body.outputs[0]
        for _ in range(len(self.body)):
            maker = producer(value, "Identity")
            source = None if maker is None else operand(maker, 0)
            if source is None:
                break
            value = source
        return value is self.body.inputs[1]

    def decide(self, condition: ir.Value) -> bool | None:
        """Return whether the loop goes on after a step; None if that is not known."""
        if self._keeps_going:
            return True
        decision = self._known.single(condition)
        return None if decision is None else bool(decision)

    def may_end(self, condition: ir.Value, limit: int) -> bool:
        """Let a computed condition end the loop for all later steps; return False where these are too many.

        A loop that is left a loop is given the reason, unless its number of steps may follow from shapes.
        """
        has_where = self.model.graph.opset_imports.get("", 0) >= FIRST_WHERE
        if not (self._may_choose and has_where):
            return False
        if limit > MOST_DECISIONS:
            inputs = self.model.graph.inputs
            if None in [self._known.shape(value) for value in inputs]:
                return False
            allows = "any number of" if limit == ENDLESS else str(limit)
            self.node.metadata_props[TOO_LONG] = (
                f"a computed condition ends it, and its trip count allows {allows} steps; with at most {MOST_DECISIONS} all "
                "are written out, and those that count are chosen"
            )
            return False
        patch = self.patch()
        # One element may have axes, which a choice would add to its results.
        scalar = patch.constant(np.zeros(0, np.int64), "scalar")
        running = patch.add("Reshape", condition, scalar)
        if self._running is not None:
            running = patch.add("And", self._running, running)
        self._running = running
        return True

    def choose(self, new: Values, old: Values) -> list[ir.Value]:
        """Return the new states, or the old ones where a computed condition has ended the loop."""
        if self._running is None:
            return list(new)
        self._chosen += zip(new, old, strict=True)
        patch = self.patch()
        return [
            patch.add("Where", self._running, *pair)
            for pair in zip(new, old, strict=True)
        ]

    def keep_shapes(self, shapes: Shapes) -> bool:
        """Return whether states between which is chosen have one known shape, to which a choice adds nothing."""
        if not self._chosen:
            return True
        known_values = KnownValues(self.model, shapes)
        return all(
            known_values.shape(new) == known_values.shape(old) is not None
            for new, old in self._chosen
        )

    def add(self, arguments: Values) -> Results:
        """Write one copy of the body, and return its outputs; None if it cannot be copied."""
        prefix = f"{self._prefix}{self.count}."
        self.count += 1
        try:
            copy = self.body.clone(allow_outer_scope_values=True)
        except Exception:  # the library has no error type for an invalid body
            return None
        return inline_body(self.node, copy, arguments, prefix)

    def patch(self) -> ResolvePatch:
        """Return a patch whose nodes are named after the next step."""
        patch = ResolvePatch(self.node, self.node.outputs[0])
        patch.base = f"{self._prefix}{self.count}"
        return patch

    def stack(self, stack: _Stack) -> ir.Value | None:
        """Join the values of the steps along a new axis; return None if there was no step."""
        if not stack.values:
            return None
        slices: list[ir.Value] = []
        for value in stack.values:
            patch = ResolvePatch(self.node, value)
            slices.append(patch.unsqueeze(value, stack.axis))
        if stack.reverse:
            slices.reverse()
        return self.patch().add("Concat", *slices, axis=stack.axis)

    def finish(self, states: Values, stacks: Sequence[_Stack]) -> Results:
        """Return the last states and the stacks, which are the node's outputs."""
        results = list(states)
        for stack in stacks:
            stacked = self.stack(stack)
            if stacked is None:
                return None
            results.append(stacked)
        return results

    def undo(self) -> None:
        """Remove the steps again."""
        graph = self.model.graph
        for node in reversed(graph):
            if node not in self._nodes_before:
                remove_with_bodies(node)
        for name in list(graph.initializers):
            if name not in self._initializers_before:
                del graph.initializers[name]


def _unroll_loop(steps: _Steps, known_values: KnownValues) -> Results:
    """Write steps up to the trip count, or until the condition is false."""
    node, body = steps.node, steps.body
    states = _all_present(node.inputs[2:])
    if states is None:
        return None
    stacked = len(node.outputs) - len(states)
    limit = _number_or(known_values, operand(node, 0), ENDLESS)
    goes_on = _number_or(known_values, operand(node, 1), 1)
    if limit is None or goes_on is None:
        return None
    if stacked < 0 or len(body.inputs) != 2 + len(states):
        return None
    if len(body.outputs) != 1 + len(states) + stacked:
        return None
    stacks = [_Stack() for _ in range(stacked)]
    while goes_on and steps.count < limit:
        if not steps.has_room(limit):
            return None
        patch = steps.patch()
        iteration = patch.constant(np.array(steps.count), "iteration")
        condition = patch.constant(np.array(True), "condition")
        results = steps.add([iteration, condition, *states])
        if results is None:
            return None
        states = steps.choose(results[1 : 1 + len(states)], states)
        goes_on = steps.decide(results[0])
        if goes_on is None:
            if stacked or not steps.may_end(results[0], limit):
                return None
            goes_on = True
        _append(stacks, results[1 + len(states) :])
    return steps.finish(states, stacks)


def _number_or(
    known_values: KnownValues, value: ir.Value | None, default: int
) -> int | None:
    """Return an operand's number, the default if it is absent, None if it is not known."""
    return default if value is None else known_values.single(value)


def _all_present(values: Sequence[ir.Value | None]) -> list[ir.Value] | None:
    present = [value for value in values if value is not None]
    return present if len(present) == len(values) else None


def _append(stacks: Sequence[_Stack], values: Values) -> None:
    for stack, value in zip(stacks, values, strict=True):
        stack.values.append(value)


def _unrolled_size(body: ir.Graph, known_values: KnownValues) -> int:
    """Count the nodes of a body with those of its bodies, each as often as its loop is known to run.

    A nest of small loops can be as large as the product of their steps.
    """
    total = 0
    waiting = [(body, 1)]
    while waiting and total <= MOST_NODES:
        graph, times = waiting.pop()
        for node in graph:
            total += times * weight(len(node.inputs) + len(node.outputs))
            steps = 1
            if node.op_type == "Loop":
                steps = max(known_values.single(operand(node, 0)) or 1, 1)
            waiting += [(inner, times * steps) for inner in bodies_of(node)]
    return total


@dataclass(frozen=True)
class _Scanned:
    """An input of a Scan that is read slice by slice."""

    value: ir.Value
    axis: int
    reverse: bool


def _unroll_scan(steps: _Steps, known_values: KnownValues) -> Results:
    """Write a step for each entry of the scanned axes."""
    node, body = steps.node, steps.body
    count = _scan_inputs(node, steps.model)
    inputs = _all_present(node.inputs)
    if count is None or inputs is None:
        return None
    states = inputs[: len(inputs) - count]
    stacked = len(node.outputs) - len(states)
    if stacked < 0 or len(body.inputs) != len(inputs):
        return None
    if len(body.outputs) != len(states) + stacked:
        return None
    scanned = _scanned(node, inputs[len(states) :])
    length = _common_length(scanned, known_values)
    if length is None or not steps.has_room(length):
        return None
    stacks = _stacks(node, stacked)
    for index in range(length):
        slices = [_slice(steps, source, index, length) for source in scanned]
        results = steps.add([*states, *slices])
        if results is None:
            return None
        states = results[: len(states)]
        _append(stacks, results[len(states) :])
    return steps.finish(states, stacks)


def _scan_inputs(node: ir.Node, model: ir.Model) -> int | None:
    """Return the number of scanned inputs, if the attribute is present and possible."""
    attribute = node.attributes.get("num_scan_inputs")
    if attribute is None or attribute.type != ir.AttributeType.INT:
        return None
    if model.opset_imports.get("", 0) < FIRST_SCAN:
        return None
    count = attribute.as_int()
    return count if 0 < count <= len(node.inputs) else None


def _scanned(node: ir.Node, values: Values) -> list[_Scanned]:
    axes = _list(node, "scan_input_axes", len(values))
    directions = _list(node, "scan_input_directions", len(values))
    return [
        _Scanned(value, axis, bool(direction))
        for value, axis, direction in zip(values, axes, directions, strict=True)
    ]


def _stacks(node: ir.Node, count: int) -> list[_Stack]:
    axes = _list(node, "scan_output_axes", count)
    directions = _list(node, "scan_output_directions", count)
    return [
        _Stack(axis, bool(direction))
        for axis, direction in zip(axes, directions, strict=True)
    ]


def _list(node: ir.Node, name: str, length: int) -> tuple[int, ...]:
    """Return an attribute with so many integers, all 0 if it is absent."""
    attribute = node.attributes.get(name)
    if attribute is None or attribute.type != ir.AttributeType.INTS:
        return (0,) * length
    integers = ints_attribute(node, name) or ()
    return integers if len(integers) == length else (0,) * length


def _common_length(
    scanned: Sequence[_Scanned], known_values: KnownValues
) -> int | None:
    """Return the length of the scanned axes, if they agree."""
    lengths = set[int]()
    for source in scanned:
        shape = known_values.shape(source.value)
        if shape is None:
            return None
        if not -len(shape) <= source.axis < len(shape):
            return None
        lengths.add(shape[source.axis])
    if len(lengths) != 1:
        return None
    length = lengths.pop()
    return length if length > 0 else None


def _slice(
    steps: _Steps, source: _Scanned, index: int, length: int
) -> ir.Value:
    """Gather one entry of the scanned axis."""
    if source.reverse:
        index = length - 1 - index
    patch = steps.patch()
    position = patch.constant(np.array(index), "index")
    return patch.add("Gather", source.value, position, axis=source.axis)
