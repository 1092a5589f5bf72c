"""Decompose ensembles of decision trees: all conditions at once, the leaf reached, its weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch

MOST_ENTRIES = 1 << 24  # the most conditions times leaves of each tree, summed
# For each mode, the operator that compares, and whether its answer is negated.
CONDITIONS = {
    "BRANCH_LEQ": ("Greater", True),
    "BRANCH_LT": ("Less", False),
    "BRANCH_GTE": ("Less", True),
    "BRANCH_GT": ("Greater", False),
}
_NODE_COLUMNS = (
    "treeids",
    "nodeids",
    "featureids",
    "values",
    "modes",
    "truenodeids",
    "falsenodeids",
)
_LEAF_COLUMNS = ("treeids", "nodeids", "ids", "weights")

Array = npt.NDArray[np.float32]
Attributes = Mapping[str, Any]
Weights = list[
    tuple[int, float]
]  # for one leaf, results and the weights that are added to them


@dataclass(frozen=True)
class Branch:
    """One node of a tree, with the fields that the file states."""

    feature: int
    threshold: float
    mode: str
    yes: int
    no: int

    @property
    def is_leaf(self) -> bool:
        """Whether the node ends a path; its other fields then have no meaning."""
        return self.mode == "LEAF"


@dataclass(frozen=True)
class TreeStep:
    """One condition on the path to a leaf, its answer (1 for yes, -1 for no), and the step before it.

    Leaves share the steps that they have in common, so that deep trees take little memory.
    """

    before: TreeStep | None
    condition: int
    answer: float


Leaf = tuple[int, TreeStep | None]
"""The number of a leaf, and the last step to it."""


@dataclass(frozen=True)
class Tree:
    """Conditions on features, the path to each leaf (1 for yes, -1 for no), and its weights."""

    features: tuple[int, ...]
    thresholds: tuple[float, ...]
    paths: Array  # [conditions, leaves]
    weights: Array  # [leaves, results]
    mode: str
    leaves: tuple[int, ...]


def decompose_trees(patch: ProtoPatch, trees: list[Tree], base: Array) -> str:
    """Add up all trees, and return the sums [rows, results]."""
    total = patch.constant(base.reshape(1, -1))
    for tree in trees:
        total = patch.add("Add", _decompose_tree(patch, tree), total)
    return total


def _decompose_tree(patch: ProtoPatch, tree: Tree) -> str:
    """Write the weights of the leaf on whose path all answers agree."""
    features = patch.constant(np.array(tree.features, np.int64))
    columns = patch.add("Gather", patch.x, features, axis=1)
    thresholds = patch.constant(np.array(tree.thresholds, np.float32))
    operator, is_negated = CONDITIONS[tree.mode]
    answers = patch.add(operator, columns, thresholds)
    if is_negated:
        answers = patch.add("Not", answers)
    yes = patch.add("Cast", answers, to=1)
    agreeing = patch.add("MatMul", yes, patch.constant(tree.paths))
    yes_of_path = (tree.paths > 0).sum(axis=0).astype(np.float32)
    enough = patch.constant(yes_of_path - np.float32(0.5))
    chosen = patch.add("Cast", patch.add("Greater", agreeing, enough), to=1)
    return patch.add("MatMul", chosen, patch.constant(tree.weights))


def read_trees(
    attributes: Attributes, role: str, results: int
) -> list[Tree] | str:
    """Return the trees of a TreeEnsembleClassifier (role "class") or Regressor ("target").

    Return a string with the reason if they cannot be read.
    """
    columns = [attributes.get(f"nodes_{name}", ()) for name in _NODE_COLUMNS]
    leaf_columns = [
        attributes.get(f"{role}_{name}", ()) for name in _LEAF_COLUMNS
    ]
    if not _have_one_length(columns) or not _have_one_length(leaf_columns):
        return "lists of nodes of different lengths"
    if not columns[0]:
        return "lists of nodes of different lengths"
    weights = _read_weights(leaf_columns, results)
    if isinstance(weights, str):
        return weights
    named = {row for rows in weights.values() for row in _all_results(rows)}
    if len(named) < results:
        return _without_weight(named)
    trees: list[Tree] = []
    complete = set[
        int
    ]()  # results for which every leaf of some tree has a weight
    entries = Entries()
    for name, branches in _read_branches(columns).items():
        tree_weights = weights.get(name, {})
        tree = read_tree(branches, tree_weights, results)
        if isinstance(tree, str):
            return f"tree {name}: {tree}"
        trees.append(tree)
        complete |= _results_of_every_leaf(tree, tree_weights)
        entries = entries.with_tree(tree)
        if problem := entries.problem():
            return problem
    if len(complete) < results:
        return _without_weight(complete)
    return trees


def _without_weight(weighted: set[int]) -> str:
    """Return the problem of the first result that is not among those with a weight in every leaf of a tree."""
    missing = next(
        result for result in itertools.count() if result not in weighted
    )
    return (
        f"no tree whose every leaf has a weight for result {missing}; "
        "runtimes read that in different ways"
    )


@dataclass(frozen=True)
class Entries:
    """How much the trees read so far hold; it is asked after each tree, so that no more are held in memory."""

    trees: int = 0
    pairs: int = 0
    weights: int = 0

    def with_tree(self, tree: Tree) -> Entries:
        """Return the counts with one more tree."""
        return Entries(
            self.trees + 1,
            self.pairs + tree.paths.size,
            self.weights + tree.weights.size,
        )

    def problem(self) -> str:
        """Return why there are too many pairs of conditions and leaves, or weights, or nothing."""
        if self.pairs > MOST_ENTRIES:
            excess = f"{self.pairs} pairs of conditions and leaves"
        elif self.weights > MOST_ENTRIES:
            excess = f"{self.weights} weights of leaves for all results"
        else:
            return ""
        return f"the first {self.trees} trees have {excess}; at most {MOST_ENTRIES} in all trees"


def _have_one_length(columns: Sequence[Sequence[Any]]) -> bool:
    return len({len(column) for column in columns}) == 1


def _read_branches(
    columns: Sequence[Sequence[Any]],
) -> dict[int, dict[int, Branch]]:
    """Return the nodes of each tree, by their numbers."""
    trees: dict[int, dict[int, Branch]] = {}
    for tree, number, feature, threshold, mode, yes, no in zip(
        *columns, strict=True
    ):
        branch = Branch(feature, threshold, _as_text(mode), yes, no)
        trees.setdefault(tree, {})[number] = branch
    return trees


def _read_weights(
    columns: Sequence[Sequence[Any]], results: int
) -> dict[int, dict[int, Weights]] | str:
    """Return the weights of each leaf of each tree, or a string with the problem."""
    weights: dict[int, dict[int, Weights]] = {}
    for tree, leaf, result, weight in zip(*columns, strict=True):
        if not 0 <= result < results:
            return f"a weight for result {result} of {results}"
        tree_weights = weights.setdefault(tree, {})
        tree_weights.setdefault(leaf, []).append((result, weight))
    return weights


def _all_results(weights: Mapping[int, Weights]) -> set[int]:
    return {result for rows in weights.values() for result, _ in rows}


def _results_of_every_leaf(
    tree: Tree, weights: Mapping[int, Weights]
) -> set[int]:
    """Return the results for which each leaf of a tree has a weight."""
    results = (_results_of(weights.get(leaf, [])) for leaf in tree.leaves)
    return set.intersection(*results)


def _results_of(weights: Weights) -> set[int]:
    return {result for result, _ in weights}


def read_tree(
    branches: Mapping[int, Branch], weights: Mapping[int, Weights], results: int
) -> Tree | str:
    """Return one tree, or a string with the problem."""
    modes = _modes(branches)
    if not modes <= set(CONDITIONS):
        kinds = ", ".join(sorted(modes))
        return (
            f"conditions of the kinds {kinds}; expected {', '.join(CONDITIONS)}"
        )
    if len(modes) > 1:
        branches = {
            number: _as_at_most(branch) for number, branch in branches.items()
        }
        modes = _modes(branches)
    inner = [
        number for number, branch in branches.items() if not branch.is_leaf
    ]
    root = _root(branches, inner)
    if root is None:
        return "its nodes are no tree"
    if problem := _too_large(len(inner), results):
        return problem
    leaves = _ends(branches, inner, root)
    if len(inner) + len(leaves) != len(branches):
        return "its nodes are no tree"
    conditions = [branches[number] for number in inner]
    fixed_answers = {
        index: _answer_to_all(condition)
        for index, condition in enumerate(conditions)
        if math.isinf(condition.threshold)
    }
    reached, paths = _reached(leaves, fixed_answers, len(inner))
    conditions = _stated_conditions(conditions, fixed_answers)
    numbers = tuple(leaf for leaf, _ in reached)
    return Tree(
        features=tuple(branch.feature for branch in conditions),
        thresholds=tuple(branch.threshold for branch in conditions),
        paths=paths,
        weights=_weight_rows(numbers, weights, results),
        mode=next(iter(modes), "BRANCH_LEQ"),
        leaves=numbers,
    )


def _stated_conditions(
    conditions: Sequence[Branch], fixed_answers: Mapping[int, float]
) -> list[Branch]:
    """Return the conditions to write: at least one, with the threshold 0 where the answer is fixed."""
    if not conditions:  # a single leaf, whose path depends on no condition
        return [Branch(0, 0.0, "LEAF", 0, 0)]
    return [
        replace(condition, threshold=0.0)
        if index in fixed_answers
        else condition
        for index, condition in enumerate(conditions)
    ]


def _weight_rows(
    leaves: Sequence[int], weights: Mapping[int, Weights], results: int
) -> Array:
    """Return the sums of the weights of each leaf, by result."""
    sums = np.zeros((len(leaves), results), np.float32)
    for index, leaf in enumerate(leaves):
        for result, weight in weights.get(leaf, ()):
            sums[index, result] += weight
    return sums


def _modes(branches: Mapping[int, Branch]) -> set[str]:
    return {branch.mode for branch in branches.values()} - {"LEAF"}


def _answer_to_all(branch: Branch) -> float:
    """Return the answer, 1 or -1, to a condition with an infinite threshold, which every finite number gives."""
    below = branch.mode in ("BRANCH_LEQ", "BRANCH_LT")
    return 1.0 if below == (branch.threshold > 0) else -1.0


def _as_at_most(branch: Branch) -> Branch:
    """Return the same condition as x <= threshold, where x is a float32.

    x < t is x <= the next float32 below t, or t itself if t is infinite and x is not; x > t
    and x >= t change the sides.
    """
    if branch.is_leaf:
        return branch
    threshold, yes, no = branch.threshold, branch.yes, branch.no
    if branch.mode in ("BRANCH_LT", "BRANCH_GTE") and math.isfinite(threshold):
        below = np.nextafter(np.float32(threshold), np.float32(-np.inf))
        threshold = float(below)
    if branch.mode in ("BRANCH_GTE", "BRANCH_GT"):
        yes, no = no, yes
    return Branch(branch.feature, threshold, "BRANCH_LEQ", yes, no)


def _root(branches: Mapping[int, Branch], inner: Sequence[int]) -> int | None:
    """Return the only node that is no child; None where the nodes are no tree."""
    children = set[int]()
    for number in inner:
        children |= {branches[number].yes, branches[number].no}
    roots = [number for number in branches if number not in children]
    if len(roots) != 1 or not children <= set(branches):
        return None
    return roots[0] if len(children) == 2 * len(inner) else None


def _too_large(inner: int, results: int) -> str:
    """Return why a tree with so many conditions is too large, or nothing: it has one leaf more."""
    pairs, weights = inner * (inner + 1), (inner + 1) * results
    if pairs > MOST_ENTRIES:
        return f"{pairs} pairs of conditions and leaves; at most {MOST_ENTRIES}"
    if weights > MOST_ENTRIES:
        return (
            f"{inner + 1} leaves with weights for {results} results; "
            f"at most {MOST_ENTRIES} weights"
        )
    return ""


def _ends(
    branches: Mapping[int, Branch], inner: Sequence[int], root: int
) -> list[Leaf]:
    """Return each leaf below the root with the last step to it; in a tree, each node is visited once."""
    place = {number: index for index, number in enumerate(inner)}
    leaves: list[Leaf] = []
    waiting: list[Leaf] = [(root, None)]
    while waiting:
        number, step = waiting.pop()
        if number not in place:
            leaves.append((number, step))
            continue
        branch, condition = branches[number], place[number]
        waiting.append((branch.no, TreeStep(step, condition, -1.0)))
        waiting.append((branch.yes, TreeStep(step, condition, 1.0)))
    return leaves


def _reached(
    leaves: Sequence[Leaf], fixed_answers: Mapping[int, float], conditions: int
) -> tuple[list[Leaf], Array]:
    """Return the leaves that some number reaches, with paths of the conditions whose answer is not fixed."""
    reached: list[Leaf] = []
    paths = np.zeros((len(leaves), max(conditions, 1)), np.float32)
    for leaf, last in leaves:
        path = dict(_steps(last))
        if any(
            path.get(place, answer) != answer
            for place, answer in fixed_answers.items()
        ):
            continue
        for condition, answer in path.items():
            if condition not in fixed_answers:
                paths[len(reached), condition] = answer
        reached.append((leaf, last))
    return reached, np.ascontiguousarray(paths[: len(reached)].T)


def _steps(last: TreeStep | None) -> Iterator[tuple[int, float]]:
    """Yield the conditions on a path and their answers, from the last to the first."""
    while last is not None:
        yield last.condition, last.answer
        last = last.before


def _as_text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
