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
_MOST_WAYS = 1 << 62  # as many ways from a root to leaves are counted
# For each mode, the operator that compares, and whether its answer is negated.
CONDITIONS = {
    "BRANCH_LEQ": ("Greater", True),
    "BRANCH_LT": ("Less", False),
    "BRANCH_GTE": ("Less", True),
    "BRANCH_GT": ("Greater", False),
    "BRANCH_EQ": ("Equal", False),
    "BRANCH_NEQ": ("Equal", True),
}
_EQUALITIES = frozenset({"BRANCH_EQ", "BRANCH_NEQ"})
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
    modes: tuple[str, ...]  # those of one mode stand side by side
    leaves: tuple[int, ...]

    def conditions_by_mode(self) -> Iterator[tuple[str, slice]]:
        """Yield each mode with the places of its conditions."""
        start = 0
        for mode, members in itertools.groupby(self.modes):
            end = start + len(list(members))
            yield mode, slice(start, end)
            start = end


def decompose_trees(patch: ProtoPatch, trees: list[Tree], base: Array) -> str:
    """Add up all trees, and return the sums [rows, results]."""
    total = patch.constant(base.reshape(1, -1))
    for tree in trees:
        total = patch.add("Add", _decompose_tree(patch, tree), total)
    return total


def _decompose_tree(patch: ProtoPatch, tree: Tree) -> str:
    """Write the weights of the leaf on whose path all answers agree."""
    answers = [
        _answers(patch, tree, mode, places)
        for mode, places in tree.conditions_by_mode()
    ]
    yes = patch.add("Concat", *answers, axis=1) if answers[1:] else answers[0]
    agreeing = patch.add("MatMul", yes, patch.constant(tree.paths))
    yes_of_path = (tree.paths > 0).sum(axis=0).astype(np.float32)
    enough = patch.constant(yes_of_path - np.float32(0.5))
    chosen = patch.add("Cast", patch.add("Greater", agreeing, enough), to=1)
    return patch.add("MatMul", chosen, patch.constant(tree.weights))


def _answers(patch: ProtoPatch, tree: Tree, mode: str, places: slice) -> str:
    """Write the answers to conditions of one mode: 1 for yes, 0 for no."""
    features = patch.constant(np.array(tree.features[places], np.int64))
    columns = patch.add("Gather", patch.x, features, axis=1)
    thresholds = patch.constant(np.array(tree.thresholds[places], np.float32))
    operator, is_negated = CONDITIONS[mode]
    answers = patch.add(operator, columns, thresholds)
    if is_negated:
        answers = patch.add("Not", answers)
    return patch.add("Cast", answers, to=1)


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
    """Return one tree, or a string with the problem.

    A node with several parents stands below each: a leaf has one path for each way to it.
    """
    modes = _modes(branches)
    if not modes <= set(CONDITIONS):
        kinds = ", ".join(sorted(modes))
        return (
            f"conditions of the kinds {kinds}; expected {', '.join(CONDITIONS)}"
        )
    branches = _with_few_modes(branches, modes)
    inner = [
        number for number, branch in branches.items() if not branch.is_leaf
    ]
    inner.sort(key=lambda number: branches[number].mode in _EQUALITIES)
    root = _root(branches, inner)
    ways = None if root is None else _ways_to_leaves(branches, root)
    if root is None or ways is None:
        return "its nodes are no tree"
    if problem := _too_large(len(inner), ways, results):
        return problem
    leaves = _ends(branches, inner, root)
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
        modes=tuple(branch.mode for branch in conditions),
        leaves=numbers,
    )


def _stated_conditions(
    conditions: Sequence[Branch], fixed_answers: Mapping[int, float]
) -> list[Branch]:
    """Return the conditions to write: at least one, with the threshold 0 where the answer is fixed."""
    if not conditions:  # a single leaf, whose path depends on no condition
        return [Branch(0, 0.0, "BRANCH_LEQ", 0, 0)]
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
    if branch.mode in _EQUALITIES:
        return 1.0 if branch.mode == "BRANCH_NEQ" else -1.0
    below = branch.mode in ("BRANCH_LEQ", "BRANCH_LT")
    return 1.0 if below == (branch.threshold > 0) else -1.0


def _with_few_modes(
    branches: Mapping[int, Branch], modes: set[str]
) -> Mapping[int, Branch]:
    """Return the same nodes with at most one mode that orders numbers, and one that asks whether they are equal."""
    if len(modes - _EQUALITIES) > 1:
        branches = {
            number: _as_at_most(branch) for number, branch in branches.items()
        }
    if modes >= _EQUALITIES:
        branches = {
            number: _as_equal(branch) for number, branch in branches.items()
        }
    return branches


def _as_equal(branch: Branch) -> Branch:
    """Return the same condition as x == threshold where it is x != threshold, which changes the sides."""
    if branch.mode != "BRANCH_NEQ":
        return branch
    return replace(branch, mode="BRANCH_EQ", yes=branch.no, no=branch.yes)


def _as_at_most(branch: Branch) -> Branch:
    """Return the same condition as x <= threshold, where x is a float32.

    x < t is x <= the next float32 below t, or t itself if t is infinite and x is not; x > t
    and x >= t change the sides.
    """
    if branch.is_leaf or branch.mode in _EQUALITIES:
        return branch
    threshold, yes, no = branch.threshold, branch.yes, branch.no
    if branch.mode in ("BRANCH_LT", "BRANCH_GTE") and math.isfinite(threshold):
        below = np.nextafter(np.float32(threshold), np.float32(-np.inf))
        threshold = float(below)
    if branch.mode in ("BRANCH_GTE", "BRANCH_GT"):
        yes, no = no, yes
    return Branch(branch.feature, threshold, "BRANCH_LEQ", yes, no)


def _root(branches: Mapping[int, Branch], inner: Sequence[int]) -> int | None:
    """Return the only node that is no child; None where there is none, or a child is missing."""
    children = set[int]()
    for number in inner:
        children |= {branches[number].yes, branches[number].no}
    roots = [number for number in branches if number not in children]
    if len(roots) != 1 or not children <= set(branches):
        return None
    return roots[0]


def _ways_to_leaves(branches: Mapping[int, Branch], root: int) -> int | None:
    """Count the ways from the root to all leaves; None where nodes lie in a circle.

    LightGBM's sets of categories share what follows them, so that there may be more ways than leaves.
    """
    ways: dict[int, int] = {}
    begun = set[int]()
    waiting = [root]
    while waiting:
        number = waiting[-1]
        branch = branches[number]
        children = () if branch.is_leaf else (branch.yes, branch.no)
        new = [child for child in children if child not in ways]
        if new and number in begun:
            return None
        if new:
            begun.add(number)
            waiting += new
            continue
        waiting.pop()
        below = sum(ways[child] for child in children)
        ways[number] = min(below, _MOST_WAYS) if children else 1
    return ways[root] if len(ways) == len(branches) else None


def _too_large(inner: int, leaves: int, results: int) -> str:
    """Return why a tree with so many conditions and ways to leaves is too large, or nothing."""
    pairs, weights = inner * leaves, leaves * results
    if pairs > MOST_ENTRIES:
        return f"{pairs} pairs of conditions and leaves; at most {MOST_ENTRIES}"
    if weights > MOST_ENTRIES:
        return (
            f"{leaves} leaves with weights for {results} results; "
            f"at most {MOST_ENTRIES} weights"
        )
    return ""


def _ends(
    branches: Mapping[int, Branch], inner: Sequence[int], root: int
) -> list[Leaf]:
    """Return each leaf below the root with the last step to it; each way once."""
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
