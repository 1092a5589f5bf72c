"""Read TreeEnsemble, the operator that replaces both older ensembles since version 5 of ai.onnx.ml.

It counts nodes and leaves apart, names the root of each tree, and gives a leaf one weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from mrt.frontend.onnx.ml.trees import (
    CONDITIONS,
    Branch,
    Entries,
    Tree,
    Weights,
    read_tree,
)

AVERAGE, SUM = 0, 1  # two of the numbers of `aggregate_function`
NO_TRANSFORM = 0
MEMBER = "BRANCH_MEMBER"
MODES = (*CONDITIONS, MEMBER)
_NODE_LISTS = (
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)
_MEMBERS = "membership_values"
_REAL = ("float", "double", "float16")
_TENSORS = {
    "nodes_splits": _REAL,
    "nodes_modes": ("uint8",),
    "leaf_weights": _REAL,
}
_SEVERAL_READINGS = (
    "runtimes give that number different meanings; write the function behind the trees as "
    "an operator of its own, Sigmoid or Softmax"
)

Attributes = Mapping[str, Any]
Branches = dict[int, Branch]
Members = dict[int, tuple[int, list[float]]]


def read_ensemble(attributes: Attributes) -> tuple[list[Tree], int] | str:
    """Return the trees and the number of results, or a string with the reason why not.

    Where the ensemble averages, the weights are already divided by the number of trees.
    """
    transform = attributes.get("post_transform", NO_TRANSFORM)
    if transform != NO_TRANSFORM:
        return f"post_transform={transform}; expected 0: {_SEVERAL_READINGS}"
    aggregate = attributes.get("aggregate_function", SUM)
    if aggregate not in (AVERAGE, SUM):
        return (
            f"aggregate_function={aggregate}; expected 0 (average) or 1 (sum)"
        )
    unreadable = _unreadable(attributes, _TENSORS)
    if unreadable:
        return unreadable
    results = int(attributes.get("n_targets", 1))
    if results < 1:
        return f"n_targets={results}; expected 1 or more"
    roots = attributes.get("tree_roots", ())
    nodes = _Nodes.read(attributes)
    if isinstance(nodes, str):
        return nodes
    leaves = _read_leaves(attributes, results)
    if isinstance(leaves, str):
        return leaves
    if not roots:
        return "no root of a tree"
    parts = len(roots) if aggregate == AVERAGE else 1
    trees: list[Tree] = []
    entries = Entries()
    for root in roots:
        branches = nodes.below(root, len(leaves))
        if isinstance(branches, str):
            return f"tree from node {root}: {branches}"
        weights = _weights_of(branches, leaves, parts)
        tree = read_tree(branches, weights, results)
        if isinstance(tree, str):
            return f"tree from node {root}: {tree}"
        trees.append(tree)
        entries = entries.with_tree(tree)
        if problem := entries.problem():
            return problem
    return trees, results


def _read_leaves(
    attributes: Attributes, results: int
) -> list[tuple[int, float]] | str:
    """Return for each leaf its result and its weight."""
    weights = _array(attributes, "leaf_weights")
    places = attributes.get("leaf_targetids", ())
    if len(places) != weights.size:
        return f"{weights.size} weights of leaves and {len(places)} results"
    wrong = [place for place in places if not 0 <= place < results]
    if wrong:
        return f"a weight for result {wrong[0]} of {results}"
    return list(zip(places, weights.tolist(), strict=True))


def _weights_of(
    branches: Branches, leaves: Sequence[tuple[int, float]], parts: int
) -> dict[int, Weights]:
    """Return the weights of each leaf of a tree by its number there."""
    weights: dict[int, Weights] = {}
    for number, branch in branches.items():
        if branch.is_leaf:
            result, weight = leaves[branch.feature]
            weights[number] = [(result, weight / parts)]
    return weights


def _unreadable(
    attributes: Attributes, tensors: Mapping[str, Sequence[str]]
) -> str:
    """Return which tensor is missing or not as ONNX declares it, or nothing."""
    for name, expected in tensors.items():
        tensor = attributes.get(name, onnx.TensorProto())
        kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
        if kind not in expected:
            return (
                f"{name} of the type {kind}; expected {' or '.join(expected)}"
            )
        try:
            numpy_helper.to_array(tensor)
        except ValueError as problem:  # bytes and shape disagree
            return f"{name}: {problem}"
    return ""


def _read_members(
    attributes: Attributes, modes: Sequence[int]
) -> Members | str:
    """Return the members that each node asks for that has a set, and the place of the first in the file's list.

    NaN ends a set there.
    """
    askers = [
        place for place, mode in enumerate(modes) if MODES[mode] == MEMBER
    ]
    if not askers:
        return {}
    tensors = {_MEMBERS: _REAL}
    if problem := _unreadable(attributes, tensors):
        return problem
    numbers = _array(attributes, _MEMBERS).astype(np.float64)
    ends = np.flatnonzero(np.isnan(numbers))
    sets = [part[~np.isnan(part)].tolist() for part in np.split(numbers, ends)]
    if len(sets) == len(askers) + 1 and not sets[-1]:
        sets.pop()
    if len(sets) != len(askers) or not all(sets):
        filled = sum(map(bool, sets))
        return f"{_MEMBERS}: {filled} sets with members for {len(askers)} nodes that ask for a member"
    starts = [0, *ends.tolist()]
    return dict(zip(askers, zip(starts, sets, strict=False), strict=True))


def _array(attributes: Attributes, name: str) -> npt.NDArray[Any]:
    return numpy_helper.to_array(attributes[name]).reshape(-1)


class _Nodes:
    """The inner nodes of all trees, as the file lists them."""

    def __init__(
        self,
        lists: Sequence[Sequence[int]],
        splits: Sequence[float],
        modes: Sequence[int],
        members: Members,
    ) -> None:
        self._features, *self._children = lists
        self._splits = splits
        self._modes = modes
        self._members = members

    @classmethod
    def read(cls, attributes: Attributes) -> _Nodes | str:
        """Return the nodes, or the reason why there are none."""
        lists = [attributes.get(name, ()) for name in _NODE_LISTS]
        splits = _array(attributes, "nodes_splits").tolist()
        modes = _array(attributes, "nodes_modes").tolist()
        lengths = {len(column) for column in (*lists, splits, modes)}
        if len(lengths) != 1:
            return "lists of nodes of different lengths"
        unknown = [mode for mode in modes if not 0 <= mode < len(MODES)]
        if unknown:
            return f"a condition of the kind {unknown[0]}; expected 0 to {len(MODES) - 1}"
        members = _read_members(attributes, modes)
        if isinstance(members, str):
            return members
        return cls(lists, splits, modes, members)

    def below(self, root: int, leaves: int) -> Branches | str:
        """Return the nodes of one tree, or a string with the problem.

        The root has the number 0. A leaf's `feature` is its place in the file's list.
        """
        branches: Branches = {}
        seen = set[int]()
        waiting: list[tuple[int, int, bool]] = [(0, root, False)]
        numbers = 1
        while waiting:
            number, place, is_leaf = waiting.pop()
            size = leaves if is_leaf else len(self._modes)
            if not 0 <= place < size:
                kind = "leaf" if is_leaf else "node"
                return f"{kind} {place} of {size}"
            if not is_leaf and place in seen:
                return f"two ways to node {place}"
            if not is_leaf and not self._is_single_leaf(place):
                seen.add(place)
                yes, no = numbers, numbers + 1
                numbers += 2
                branches |= self._branches(place, number, yes, no)
                yes_place, yes_is_leaf, no_place, no_is_leaf = self._below(
                    place
                )
                waiting.append((no, no_place, no_is_leaf))
                waiting.append((yes, yes_place, yes_is_leaf))
                continue
            leaf = place if is_leaf else self._below(place)[0]
            if not 0 <= leaf < leaves:
                return f"leaf {leaf} of {leaves}"
            branches[number] = Branch(leaf, 0.0, "LEAF", 0, 0)
        return branches

    def _branches(self, place: int, number: int, yes: int, no: int) -> Branches:
        """Return the node of this number; one that asks for a member asks for each, one after the other.

        The numbers of the further ones are below 0.
        """
        feature, mode = self._features[place], MODES[self._modes[place]]
        if mode != MEMBER:
            return {number: Branch(feature, self._splits[place], mode, yes, no)}
        start, members = self._members[place]
        further = [-1 - start - index for index in range(1, len(members))]
        chain = zip([number, *further], members, [*further, no], strict=True)
        return {
            at: Branch(feature, member, "BRANCH_EQ", yes, after)
            for at, member, after in chain
        }

    def _below(self, place: int) -> tuple[int, bool, int, bool]:
        yes, yes_is_leaf, no, no_is_leaf = (
            column[place] for column in self._children
        )
        return yes, bool(yes_is_leaf), no, bool(no_is_leaf)

    def _is_single_leaf(self, place: int) -> bool:
        """Whether both branches are one leaf, by which the format writes a tree of a leaf."""
        yes, yes_is_leaf, no, no_is_leaf = self._below(place)
        return yes_is_leaf and no_is_leaf and yes == no
