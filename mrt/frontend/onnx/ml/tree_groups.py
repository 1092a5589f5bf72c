"""Joins small trees to groups that are evaluated as one tree, of which every path holds conditions of one member.

Each tree costs some thirty nodes, whatever its size. A group has the conditions and the leaves of all its members, and one
leaf of each is reached, so that the sum of the weights reached is that of the trees.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mrt.frontend.onnx.ml.trees import Array, Tree

MOST_ENTRIES = 1 << 14
"""The most conditions times leaves of a group, most of which are 0: products of so many take a processor less than one node."""


def groups_of(trees: Sequence[Tree]) -> list[Tree]:
    """Return trees of the same sum, each of neighbours that have conditions of the same kinds."""
    return [
        _joined(group)
        for _, alike in itertools.groupby(trees, key=_kinds)
        for group in _small_groups(list(alike))
    ]


def _kinds(tree: Tree) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tree.modes))


def _small_groups(trees: Sequence[Tree]) -> Iterator[list[Tree]]:
    """Yield as many trees at once as MOST_ENTRIES allows, and one at least; those of several kinds of conditions one by one."""
    group: list[Tree] = []
    conditions = leaves = 0
    for tree in trees:
        rows, columns = tree.paths.shape
        entries = (conditions + rows) * (leaves + columns)
        is_full = entries > MOST_ENTRIES or len(_kinds(tree)) > 1
        if group and is_full:
            yield group
            group, conditions, leaves = [], 0, 0
        group.append(tree)
        conditions += rows
        leaves += columns
    yield group


def _joined(trees: Sequence[Tree]) -> Tree:
    if len(trees) == 1:
        return trees[0]
    return Tree(
        features=tuple(it for tree in trees for it in tree.features),
        thresholds=tuple(it for tree in trees for it in tree.thresholds),
        paths=_on_the_diagonal([tree.paths for tree in trees]),
        weights=np.concatenate([tree.weights for tree in trees]),
        modes=tuple(it for tree in trees for it in tree.modes),
        leaves=tuple(it for tree in trees for it in tree.leaves),
    )


def _on_the_diagonal(blocks: Sequence[Array]) -> Array:
    rows, columns = np.sum([block.shape for block in blocks], axis=0)
    joined = np.zeros((rows, columns), np.float32)
    row = column = 0
    for block in blocks:
        height, width = block.shape
        joined[row : row + height, column : column + width] = block
        row += height
        column += width
    return joined
