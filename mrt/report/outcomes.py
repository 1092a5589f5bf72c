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

FOLDED, REMOVED, UNUSED, KEPT, REWRITTEN, FUSED = (
    "folded",
    "removed",
    "unused",
    "kept",
    "rewritten",
    "fused",
)
MEANINGS = {
    FOLDED: "computed once, at conversion: a constant",
    REMOVED: "changes nothing, or nothing at inference",
    UNUSED: "no output needs it",
    KEPT: "one operator of the same kind, quantised",
    REWRITTEN: "other operators of the same meaning",
    FUSED: "together with its neighbours one computation",
}
_SHAPES = ("Shape", "Size")  # values with fixed shapes have constant ones
_NOTHING = ("Identity", "Dropout")


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
        return {name: item for item in self.operators for name in item.outputs}

    @cached_property
    def depending(self) -> frozenset[str]:
        """The values that depend on the contents of the inputs."""
        found = set(self.inputs)
        for item in self.operators:
            if item.kind not in _SHAPES and found.intersection(item.inputs):
                found.update(item.outputs)
        return frozenset(found)

    def anchors_of(self, anchors: frozenset[str]) -> list[frozenset[str]]:
        """Return, for each operator, the anchors for which it is computed."""
        ahead: dict[str, set[str]] = {name: set() for name in self.made}
        results: list[frozenset[str]] = []
        for item in reversed(self.operators):
            own = [
                {name} if name in anchors else ahead[name]
                for name in item.outputs
            ]
            reached = frozenset[str]().union(*own)
            for name in item.inputs:
                if name in ahead:
                    ahead[name] |= reached
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
    given = (
        str(value.name)
        for value in model.graph.inputs
        if value.name not in model.graph.initializers
    )
    return FloatGraph(tuple(operators), frozenset(given))


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
        _plain_outcome(item, names, before, anchors)
        for item, names in zip(before.operators, ahead, strict=True)
    ]
    at_anchors = _AtAnchors(
        Counter(
            name
            for names, what in zip(ahead, plain, strict=True)
            if what is None
            for name in names
        ),
        _by_anchor(after.operators, after.anchors_of(anchors)),
        after.operators,
        _instructions_by_value(program, source_map),
    )
    return [
        _outcome(item, tuple(sorted(names)), at_anchors)
        if what is None
        else OperatorOutcome(item, what)
        for item, names, what in zip(
            before.operators, ahead, plain, strict=True
        )
    ]


def _plain_outcome(
    item: Operator,
    ahead: frozenset[str],
    before: FloatGraph,
    anchors: frozenset[str],
) -> str | None:
    """Return the outcome of an operator that leaves nothing in the rewritten graph, else None."""
    if not before.depending.intersection(item.outputs):
        return FOLDED
    if not ahead:
        return UNUSED
    return (
        REMOVED
        if item.kind in _NOTHING and not anchors.intersection(item.outputs)
        else None
    )


@dataclass(frozen=True)
class _AtAnchors:
    """The operators and the instructions at each anchor."""

    before: Mapping[str, int]  # the count of the model's operators
    after: Mapping[str, Sequence[Operator]]  # the rewritten operators
    rewritten: Sequence[Operator]  # all rewritten operators, in order
    instructions: Mapping[str, Counter[str]]  # of each rewritten value


def _outcome(
    item: Operator, into: tuple[str, ...], at_anchors: _AtAnchors
) -> OperatorOutcome:
    """Return the outcome of an operator that still exists in some form; `into` are its anchors."""
    places = tuple(
        dict.fromkeys(
            other for name in into for other in at_anchors.after[name]
        )
    )
    together = max(at_anchors.before[name] for name in into)
    alone = (
        KEPT if [other.kind for other in places] == [item.kind] else REWRITTEN
    )
    instructions: Counter[str] = Counter()
    for name in dict.fromkeys(
        name for other in places for name in other.outputs
    ):
        instructions.update(at_anchors.instructions.get(name, {}))
    return OperatorOutcome(
        item,
        alone if together == 1 else FUSED,
        into,
        places,
        dict(sorted(instructions.items())),
        together,
        "" if instructions else _next_with_instructions(into, at_anchors),
    )


def _by_anchor(
    operators: Iterable[Operator], ahead: Sequence[frozenset[str]]
) -> dict[str, list[Operator]]:
    found: dict[str, list[Operator]] = {}
    for item, names in zip(operators, ahead, strict=True):
        for name in names:
            found.setdefault(name, []).append(item)
    return found


def _instructions_by_value(
    program: Program, source_map: Mapping[int, str]
) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for number, item in enumerate(
        program.instructions, program.first_instruction
    ):
        found.setdefault(source_map.get(number, ""), Counter())[item.name] += 1
    return found


def _next_with_instructions(
    start: Iterable[str], at_anchors: _AtAnchors
) -> str:
    """Return the first value downstream for which the program has instructions.

    Values are searched in the order of the graph.
    """
    reached = set(start)
    for item in at_anchors.rewritten:
        if reached.intersection(item.inputs):
            reached.update(item.outputs)
            if found := [
                name for name in item.outputs if name in at_anchors.instructions
            ]:
                return found[0]
    return ""
