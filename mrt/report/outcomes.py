"""The outcome of each float operator, found by the names of values.

Rewriting keeps a name only for an equal value, so equal names mean equal values.

A value that has its name before and after rewriting is an anchor. Every operator
belongs to the anchors for which it is computed: those reached from it without passing
another anchor. So does every operator of the rewritten graph, and every instruction by
the value for which it was written. The operators between the same anchors on both sides
are the same computation. Several operators of the model between the same anchors are
reported together, because more is not known of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import onnx_ir as ir

from cvm.program import Program

FOLDED = "folded"
REMOVED = "removed"
UNUSED = "unused"
KEPT = "kept"
REWRITTEN = "rewritten"
FUSED = "fused"
MEANINGS = {
    FOLDED: "computed once, at conversion: a constant",
    REMOVED: "changes nothing, or nothing at inference",
    UNUSED: "no output needs it",
    KEPT: "one operator of the same kind, quantized",
    REWRITTEN: "other operators of the same meaning",
    FUSED: "together with its neighbours one computation",
}
_SHAPES = ("Shape", "Size")  # values with fixed shapes have constant ones
_NOTHING = ("Identity", "Dropout")
# Of more anchors that follow on an operator, the first in the graph are named: all of
# them, for each of many operators, would be a report of gigabytes.
MOST_ANCHORS = 64
Anchors = frozenset[str]


@dataclass(frozen=True)
class Operator:
    """A node of a float graph, with its values by name."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class FloatGraph:
    """The operators of a graph in order, and the names of its inputs that are not constants."""

    operators: tuple[Operator, ...]
    inputs: frozenset[str]

    @cached_property
    def made(self) -> dict[str, Operator]:
        """The operator that computes each value, by name."""
        return {
            name: operator
            for operator in self.operators
            for name in operator.outputs
        }

    @cached_property
    def depending(self) -> frozenset[str]:
        """The values that depend on the contents of the inputs."""
        names = set(self.inputs)
        for operator in self.operators:
            if operator.kind not in _SHAPES and names.intersection(
                operator.inputs
            ):
                names.update(operator.outputs)
        return frozenset(names)

    def anchors_of(self, anchors: frozenset[str]) -> list[Anchors]:
        """Return, for each operator, the anchors for which it is computed: the nearest MOST_ANCHORS beside its own."""
        places = {name: place for place, name in enumerate(self.made)}
        ahead: dict[str, Anchors] = {name: frozenset() for name in self.made}
        results: list[Anchors] = []
        for operator in reversed(self.operators):
            reached = _union(
                frozenset({name}) if name in anchors else ahead[name]
                for name in operator.outputs
            )
            nearest = reached
            if len(reached) > MOST_ANCHORS:
                nearest = _nearest(reached, places)
            for name in set(operator.inputs):
                if name in ahead:
                    both = _union((ahead[name], nearest))
                    ahead[name] = _nearest(both, places)
            results.append(reached)
        return results[::-1]


@dataclass(frozen=True)
class OperatorOutcome:
    """The outcome of one operator.

    `into` are anchors, `places` the rewritten operators there, `instructions` are by
    name.
    """

    operator: Operator
    what: str
    into: tuple[str, ...] = ()
    places: tuple[Operator, ...] = ()
    instructions: Mapping[str, int] = field(default_factory=dict)
    together: int = 1  # the number of operators that share these
    # The value whose instructions do its work, where it has no instruction of its own.
    taken_up_by: str = ""


def float_graph(model: ir.Model) -> FloatGraph:
    """Return the part of a graph that a report needs, before passes change the graph."""
    operators = []
    for node in model.graph:
        outputs = tuple(str(value.name) for value in node.outputs if value.name)
        kind = (
            f"{node.domain}.{node.op_type}"
            if node.domain not in ("", "ai.onnx")
            else node.op_type
        )
        operators.append(
            Operator(
                node.name or (outputs or ("?",))[0],
                kind,
                tuple(_read(node)),
                outputs,
            )
        )
    inputs = (
        str(value.name)
        for value in model.graph.inputs
        if value.name not in model.graph.initializers
    )
    return FloatGraph(tuple(operators), frozenset(inputs))


def _read(node: ir.Node) -> Iterator[str]:
    """Yield the names of the values that a node reads, including those that its branches read."""
    yield from (
        value.name for value in node.inputs if value is not None and value.name
    )
    for attribute in node.attributes.values():
        graphs = (
            [attribute.as_graph()]
            if attribute.type == ir.AttributeType.GRAPH
            else []
        )
        for graph in (
            attribute.as_graphs()
            if attribute.type == ir.AttributeType.GRAPHS
            else graphs
        ):
            for inner in graph:
                yield from _read(inner)


def outcomes(
    before: FloatGraph,
    after: FloatGraph,
    program: Program,
    source_map: Mapping[int, str],
) -> list[OperatorOutcome]:
    """Return the outcome of every operator of `before`, in order.

    `source_map` maps an instruction to the value of `after` for which it was written.
    """
    anchors = frozenset(before.made) & frozenset(after.made)
    ahead = before.anchors_of(anchors)
    plain = [
        _plain_outcome(operator, names, before, anchors)
        for operator, names in zip(before.operators, ahead, strict=True)
    ]
    instructions = _instructions_by_value(program, source_map)
    at_anchors = _AtAnchors(
        Counter(
            name
            for names, outcome in zip(ahead, plain, strict=True)
            if outcome is None
            for name in names
        ),
        _by_anchor(after.operators, after.anchors_of(anchors)),
        instructions,
        _next_with_instructions(after.operators, instructions),
    )
    return [
        _outcome(operator, at_anchors.rewritten_at(names))
        if outcome is None
        else OperatorOutcome(operator, outcome)
        for operator, names, outcome in zip(
            before.operators, ahead, plain, strict=True
        )
    ]


def _plain_outcome(
    operator: Operator,
    ahead: frozenset[str],
    before: FloatGraph,
    anchors: frozenset[str],
) -> str | None:
    """Return the outcome of an operator that leaves nothing in the rewritten graph, else None."""
    if not before.depending.intersection(operator.outputs):
        return FOLDED
    if not ahead:
        return UNUSED
    return (
        REMOVED
        if operator.kind in _NOTHING
        and not anchors.intersection(operator.outputs)
        else None
    )


@dataclass(frozen=True)
class _AtAnchors:
    """The operators and the instructions at each anchor."""

    before: Mapping[str, int]  # the count of the model's operators
    after: Mapping[str, Sequence[Operator]]  # the rewritten operators
    instructions: Mapping[str, Counter[str]]  # of each rewritten value
    # The first value downstream of each that has instructions.
    next_with_instructions: Mapping[str, tuple[int, str]]
    _rewritten: dict[Anchors, _Rewritten] = field(default_factory=dict)

    def rewritten_at(self, into: Anchors) -> _Rewritten:
        """What is at these anchors; it is the same object for the same anchors."""
        if into not in self._rewritten:
            self._rewritten[into] = self._find(into)
        return self._rewritten[into]

    def _find(self, into: Anchors) -> _Rewritten:
        names = tuple(sorted(into))
        every = (other for name in names for other in self.after[name])
        places = tuple(dict.fromkeys(every))
        values = (name for other in places for name in other.outputs)
        instructions: Counter[str] = Counter()
        for name in dict.fromkeys(values):
            instructions.update(self.instructions.get(name, {}))
        following = [
            self.next_with_instructions[name]
            for name in names
            if name in self.next_with_instructions
        ]
        return _Rewritten(
            names,
            places,
            dict(sorted(instructions.items())),
            max(self.before[name] for name in names),
            "" if instructions or not following else min(following)[1],
        )


@dataclass(frozen=True)
class _Rewritten:
    """What is at some anchors, with the fields of OperatorOutcome."""

    into: tuple[str, ...]
    places: tuple[Operator, ...]
    instructions: Mapping[str, int]
    together: int
    taken_up_by: str


def _outcome(operator: Operator, rewritten: _Rewritten) -> OperatorOutcome:
    """Return the outcome of an operator that still exists in some form."""
    same_kind = [other.kind for other in rewritten.places[:2]] == [
        operator.kind
    ]
    alone = KEPT if same_kind else REWRITTEN
    return OperatorOutcome(
        operator,
        alone if rewritten.together == 1 else FUSED,
        rewritten.into,
        rewritten.places,
        rewritten.instructions,
        rewritten.together,
        rewritten.taken_up_by,
    )


def _by_anchor(
    operators: Iterable[Operator], ahead: Sequence[frozenset[str]]
) -> dict[str, list[Operator]]:
    operators_by_anchor: dict[str, list[Operator]] = {}
    for operator, names in zip(operators, ahead, strict=True):
        for name in names:
            operators_by_anchor.setdefault(name, []).append(operator)
    return operators_by_anchor


def _instructions_by_value(
    program: Program, source_map: Mapping[int, str]
) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        counts.setdefault(source_map.get(number, ""), Counter())[
            instruction.name
        ] += 1
    return counts


def _next_with_instructions(
    operators: Sequence[Operator],
    instructions: Mapping[str, Counter[str]],
) -> dict[str, tuple[int, str]]:
    """Return, for each value, the first value downstream that has instructions, with its operator's place in the graph."""
    first: dict[str, tuple[int, str]] = {}
    for place, operator in reversed(list(enumerate(operators))):
        written = [name for name in operator.outputs if name in instructions]
        behind = [first[name] for name in operator.outputs if name in first]
        if not written and not behind:
            continue
        nearest = (place, written[0]) if written else min(behind)
        for name in operator.inputs:
            first[name] = min(nearest, first.get(name, nearest))
    return first


def _union(sets: Iterable[Anchors]) -> Anchors:
    """Return the union, which is one of the sets itself where they are equal: long chains share one."""
    distinct = set(sets)
    if len(distinct) == 1:
        return distinct.pop()
    return frozenset[str]().union(*distinct)


def _nearest(names: Anchors, places: Mapping[str, int]) -> Anchors:
    """Return the first MOST_ANCHORS of these in the graph."""
    if len(names) <= MOST_ANCHORS:
        return names
    ordered = sorted(names, key=lambda name: places[name])
    return frozenset(ordered[:MOST_ANCHORS])
