"""Groups of trees have the sums of their members, in products of a bounded size."""

from __future__ import annotations

import numpy as np

from mrt.frontend.onnx.ml.tree_groups import MOST_ENTRIES, groups_of
from mrt.frontend.onnx.ml.trees import Branch, Tree, read_tree

FEATURES, RESULTS = 5, 2
RANDOM = np.random.default_rng(3)


def tree(depth, mode="BRANCH_LEQ", features=FEATURES):
    """Return a whole tree of random conditions and weights."""
    inner, count = 2**depth - 1, 2 ** (depth + 1) - 1
    branches = {
        number: Branch(
            int(RANDOM.integers(features)),
            float(RANDOM.normal()),
            mode if number < inner else "LEAF",
            2 * number + 1,
            2 * number + 2,
        )
        for number in range(count)
    }
    weights = {
        number: [(result, float(RANDOM.normal())) for result in range(RESULTS)]
        for number in range(inner, count)
    }
    read = read_tree(branches, weights, RESULTS)
    assert isinstance(read, Tree), read
    return read


def sums(trees, x):
    """Return what the trees give together, from the conditions of each leaf one by one."""
    total = np.zeros((len(x), RESULTS))
    for it in trees:
        below = x[:, list(it.features)] <= np.float32(it.thresholds)
        for leaf, path in enumerate(it.paths.T):
            agrees = [
                below[:, place] == (answer > 0)
                for place, answer in enumerate(path)
                if answer
            ]
            total += np.outer(np.all(agrees, axis=0), it.weights[leaf])
    return total


def test_groups_have_the_sums_of_their_trees():
    trees = [tree(depth) for depth in (3, 1, 4, 2, 6, 3) * 20]
    groups = groups_of(trees)
    assert 1 < len(groups) < len(trees) / 4
    x = RANDOM.normal(size=(50, FEATURES)).astype(np.float32)
    np.testing.assert_allclose(sums(groups, x), sums(trees, x))
    assert all(it.paths.size <= MOST_ENTRIES for it in groups)
    count = sum(len(it.thresholds) for it in trees)
    assert sum(len(it.thresholds) for it in groups) == count


def test_a_tree_too_large_for_a_group_is_one_of_its_own():
    trees = [tree(2), tree(8), tree(2), tree(2)]
    assert [len(it.thresholds) for it in groups_of(trees)] == [3, 255, 6]


def test_groups_hold_conditions_of_one_kind():
    first, second = "BRANCH_LT", "BRANCH_LEQ"
    groups = groups_of([tree(2, first), tree(2, second), tree(2, second)])
    assert [set(it.modes) for it in groups] == [{first}, {second}]
