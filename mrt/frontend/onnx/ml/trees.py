"""Ensembles of decision trees as tensors: all questions at once, then which leaf's path they agree with, then its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

from mrt.frontend.onnx.opsets.experimental import Nodes

MOST_ENTRIES = 1 << 24  # questions times leaves of each tree, summed
QUESTIONS = {"BRANCH_LEQ": ("Greater", True), "BRANCH_LT": ("Less", False), "BRANCH_GTE": ("Less", True),
             "BRANCH_GT": ("Greater", False)}  # fmt: skip

Array = npt.NDArray[np.float32]
Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Tree:
    """Questions on features, the path of each leaf as +1 and -1 for answers of yes and no, and what the leaf adds."""

    features: tuple[int, ...]
    limits: tuple[float, ...]
    paths: Array  # [questions, leaves]
    weights: Array  # [leaves, results]
    mode: str
    leaves: tuple[int, ...]


def decompose_trees(s: Nodes, trees: list[Tree], base: Array) -> str:
    """The sums [rows, results]."""
    total = _constant(s, base.reshape(1, -1))
    for tree in trees:
        total = s.add("Add", _of_tree(s, tree), total)
    return total


def _constant(s: Nodes, array: npt.NDArray[Any]) -> str:
    return s.add("Constant", value=numpy_helper.from_array(array))


def _of_tree(s: Nodes, tree: Tree) -> str:
    seen = s.add("Gather", s.x, _constant(s, np.array(tree.features, np.int64)), axis=1)
    operator, negated = QUESTIONS[tree.mode]
    answers = s.add(operator, seen, _constant(s, np.array(tree.limits, np.float32)))
    yes = s.add("Cast", s.add("Not", answers) if negated else answers, to=1)
    agreeing = s.add("MatMul", yes, _constant(s, tree.paths))
    wanted = (tree.paths > 0).sum(axis=0).astype(np.float32) - np.float32(0.5)
    reached = s.add("Cast", s.add("Greater", agreeing, _constant(s, wanted)), to=1)
    return s.add("MatMul", reached, _constant(s, tree.weights))


def read_trees(attributes: Attributes, role: str, results: int) -> list[Tree] | str:
    """The trees of a TreeEnsembleClassifier (role "class") or Regressor ("target"), or what is wrong with them."""
    names = [
        "treeids",
        "nodeids",
        "featureids",
        "values",
        "modes",
        "truenodeids",
        "falsenodeids",
    ]
    columns = [list(attributes.get(f"nodes_{name}", ())) for name in names]
    leaves = [
        list(attributes.get(f"{role}_{name}", ()))
        for name in ("treeids", "nodeids", "ids", "weights")
    ]
    if (
        len({len(column) for column in columns}) != 1
        or len({len(column) for column in leaves}) != 1
        or not columns[0]
    ):
        return "lists of nodes of different lengths"
    nodes: dict[int, dict[int, list[Any]]] = {}
    for row in zip(*columns, strict=True):
        nodes.setdefault(row[0], {})[row[1]] = list(row[2:])
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, node, result, weight in zip(*leaves, strict=True):
        if not 0 <= result < results:
            return f"a weight for result {result} of {results}"
        weights.setdefault((tree, node), []).append((result, weight))
    trees: list[Tree] = []
    said: list[
        tuple[dict[int, set[int]], Tree]
    ] = []  # the results that each leaf speaks of
    for name, tree_nodes in nodes.items():
        own = {node: found for (tree, node), found in weights.items() if tree == name}
        tree = _tree(tree_nodes, own, results)
        if isinstance(tree, str):
            return f"tree {name}: {tree}"
        trees.append(tree)
        said.append(
            (
                {leaf: {result for result, _ in found} for leaf, found in own.items()},
                tree,
            )
        )
    told = [
        set.intersection(*(own.get(leaf, set()) for leaf in tree.leaves))
        for own, tree in said
    ]
    if missing := set(range(results)).difference(*told):
        return f"no tree whose every leaf speaks of result {min(missing)}; runtimes read that in different ways"
    entries = sum(tree.paths.size for tree in trees)
    return (
        trees
        if entries <= MOST_ENTRIES
        else f"{entries} pairs of questions and leaves; at most {MOST_ENTRIES}"
    )


def _tree(
    nodes: dict[int, list[Any]],
    weights: Mapping[int, list[tuple[int, float]]],
    results: int,
) -> Tree | str:
    modes = {_word(node[2]) for node in nodes.values()} - {"LEAF"}
    if len(modes) > 1 or not modes <= set(QUESTIONS):
        return f"questions of the kinds {', '.join(sorted(modes))}; expected one of {', '.join(QUESTIONS)}"
    inner = [number for number, node in nodes.items() if _word(node[2]) != "LEAF"]
    place = {number: index for index, number in enumerate(inner)}
    below = {child for number in inner for child in nodes[number][3:]}
    roots = [number for number in nodes if number not in below]
    if len(roots) != 1 or not below <= set(nodes) or len(below) != 2 * len(inner):
        return "its nodes are no tree"
    leaves, waiting = [], [(roots[0], dict[int, float]())]
    while waiting:  # from a single root, each node is met once
        number, path = waiting.pop()
        if number not in place:
            leaves.append((number, path))
            continue
        yes, no = nodes[number][3:]
        waiting += [
            (no, path | {place[number]: -1.0}),
            (yes, path | {place[number]: 1.0}),
        ]
    if len(inner) + len(leaves) != len(nodes):
        return "its nodes are no tree"
    if len(inner) * len(leaves) > MOST_ENTRIES:
        return f"{len(inner) * len(leaves)} pairs of questions and leaves; at most {MOST_ENTRIES}"
    paths, sums = (
        np.zeros((max(len(inner), 1), len(leaves)), np.float32),
        np.zeros((len(leaves), results), np.float32),
    )
    for index, (number, path) in enumerate(leaves):
        for question, answer in path.items():
            paths[question, index] = answer
        for result, weight in weights.get(number, ()):
            sums[index, result] += weight
    asked = [nodes[number] for number in inner] or [
        [0, 0.0, "LEAF", 0, 0]
    ]  # a leaf alone asks what it does not heed
    mode = next(iter(modes), "BRANCH_LEQ")
    return Tree(tuple(node[0] for node in asked), tuple(node[1] for node in asked), paths, sums, mode,
                tuple(number for number, _ in leaves))  # fmt: skip


def _word(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
