"""Where the code can be changed, by the operators of cosmic-ray, and a sample of these places."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.plugins import get_operator, operator_names

UNUSED = ("VariableReplacer", "VariableInserter", "ExceptionReplacer")
# Keywords that only guard against faults of ours: a zip of equal lengths is the same with
# and without strict, and nothing assigns to a frozen object.
GUARDS = ("strict", "frozen", "slots")


@dataclass(frozen=True)
class Mutation:
    """One change: the n-th place of an operator in a file, and the line where it begins."""

    path: str
    operator: str
    occurrence: int
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.operator} #{self.occurrence}"


def operators() -> list[str]:
    """The operators in use, by name."""
    names = [name for name in operator_names() if name.startswith("core/")]
    kept = []
    for name in names:
        short = name.removeprefix("core/")
        identity = "ComparisonOperator" in short and any(
            part in f"{short}_" for part in ("_Is_", "_IsNot_", "Operator_Is")
        )
        if not identity and short not in UNUSED:
            kept.append(name)
    return kept


def mutations(path: Path, root: Path) -> Iterator[Mutation]:
    """All mutations of a file, except in annotations and docstrings, which nothing runs, and in guards."""
    text = path.read_text(encoding="utf-8")
    ignored = _ignored_spans(ast.parse(text))
    tree = parso.parse(text)
    nodes = list(_nodes(tree))
    for name in operators():
        operator = get_operator(name)()
        occurrence = 0
        for node in nodes:
            for start, stop in operator.mutation_positions(node):
                place = (start, stop)
                if not any(_inside(place, span) for span in ignored):
                    relative = str(path.relative_to(root))
                    yield Mutation(relative, name, occurrence, start[0])
                occurrence += 1


def sample(
    paths: list[Path], root: Path, count: int, seed: int
) -> list[Mutation]:
    """`count` mutations: places first (so that one with many operators counts once), then an operator."""
    generator = random.Random(seed)
    by_place: dict[tuple[str, int, str], list[Mutation]] = {}
    for path in paths:
        for mutation in mutations(path, root):
            kind = mutation.operator.split("_")[0]
            key = (mutation.path, mutation.line, kind)
            by_place.setdefault(key, []).append(mutation)
    places = sorted(by_place)
    chosen = generator.sample(places, min(count, len(places)))
    return [generator.choice(by_place[place]) for place in sorted(chosen)]


def _nodes(node: parso.tree.NodeOrLeaf) -> Iterator[parso.tree.NodeOrLeaf]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


Span = tuple[tuple[int, int], tuple[int, int]]


def _inside(place: Span, span: Span) -> bool:
    return span[0] <= place[0] and place[1] <= span[1]


def _ignored_spans(tree: ast.AST) -> list[Span]:
    annotations: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in GUARDS:
            annotations.append(node.value)
        if isinstance(node, ast.arg) and node.annotation is not None:
            annotations.append(node.annotation)
        if isinstance(node, ast.AnnAssign):
            annotations.append(node.annotation)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            annotations.append(node.returns)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            annotations.extend(node.args[:1])
    return [
        (
            (item.lineno, item.col_offset),
            (item.end_lineno or item.lineno, item.end_col_offset or 0),
        )
        for item in annotations
    ]
