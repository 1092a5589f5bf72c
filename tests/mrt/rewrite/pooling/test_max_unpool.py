"""lower_max_unpool: numbers go back to where the greatest were, as onnxruntime puts them."""

import numpy as np
import pytest

from mrt.errors import Unsupported
from mrt.rewrite import rewrite
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.pooling.max_unpool import lower_max_unpool
from tests.support.graphs import (
    apply_pass,
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
)

X = (2, 3, 6, 8)


def pooled(kernel, pool=None, unpool=None):
    """A MaxPool, something between, and a MaxUnpool by its places."""
    size = {"kernel_shape": kernel, "strides": kernel}
    return [
        node("MaxPool", "x", "p i", **{**size, **(pool or {})}),
        node("Neg", "p", "n"),
        node("MaxUnpool", "n i", "y", **{**size, **(unpool or {})}),
    ]


@pytest.mark.parametrize("kernel", [[2, 2], [3, 2], [1, 4]])
def test_places_of_a_pool_side_by_side(kernel):
    model = graph_of(pooled(kernel), {"x": X})
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_max_unpool, model) == 2
    assert "MaxUnpool" not in operators_of(model)
    assert all(len(entry.outputs) == 1 for entry in model.graph)


def test_of_equal_numbers_the_first_is_the_greatest():
    model = graph_of(pooled([2, 2]), {"x": X})
    feeds = {"x": np.ones(X, np.float32)}
    expected = run(model, feeds)
    rewrite(model)
    assert_same(expected, run(model, feeds))
    assert expected["y"][0, 0, :2, :2].tolist() == [[-1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("pool", "unpool"),
    [({"strides": [1, 1]}, {"strides": [1, 1]}), ({"pads": [0, 0, 1, 1]}, {"pads": [0, 0, 1, 1]}),
     ({}, {"kernel_shape": [2, 4]})],
)  # fmt: skip
def test_other_windows_stay(pool, unpool):
    model = graph_of(
        pooled([2, 2], pool, unpool),
        {"x": (2, 3, 7, 9) if "pads" in pool else X},
    )
    canonicalize_conv_pool_attributes(model)
    assert lower_max_unpool(model) == 0


@pytest.mark.parametrize("wanted", [None, [1, 1, 5, 6]])
def test_known_places(wanted):
    places = np.array([[[[5, 7], [13, 2]]]])
    arrays = {"i": places} | ({} if wanted is None else {"s": np.array(wanted)})
    operands = "x i" if wanted is None else "x i s"
    model = graph_of(
        [node("MaxUnpool", operands, "y", kernel_shape=[2, 2], strides=[2, 2])],
        {"x": (1, 1, 2, 2)},
        arrays,
    )
    feeds = seeded({"x": (1, 1, 2, 2)})
    rewrite(model)
    flat = np.zeros(16, np.float32)
    flat[places.ravel()] = feeds["x"].ravel()
    expected = np.zeros(wanted or [1, 1, 4, 4], np.float32)
    expected[..., :4, :4] = flat.reshape(4, 4)
    assert run(model, feeds)["y"].tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(2, 3, 6), (2, 3, 4, 6, 8)])
def test_places_along_one_axis_or_three_are_refused(shape):
    model = graph_of(pooled([2] * (len(shape) - 2)), {"x": shape})
    with pytest.raises(Unsupported) as caught:
        rewrite(model)
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "MaxPool",
        "MaxUnpool",
    ]
    assert caught.value.problems[0].endswith("2 outputs; expected one")


def test_places_that_no_pool_computed_stay():
    nodes = [
        node("Cast", "x", "i", to=7),
        node("MaxUnpool", "x i", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    model = graph_of(nodes, {"x": (1, 1, 2, 2)})
    assert lower_max_unpool(model) == 0


@pytest.mark.parametrize("unknown", ["x", "p"])
def test_a_pool_of_unknown_shape_stays(unknown):
    nodes = pooled([2, 2])
    nodes[2].input[0] = "p"
    model = graph_of(nodes, {"x": X})
    canonicalize_conv_pool_attributes(model)
    values = {
        value.name: value
        for value in [*model.graph.inputs, *model.graph[0].outputs]
    }
    values[unknown].shape = None
    assert lower_max_unpool(model) == 0


def test_known_places_of_several_rows():
    places = np.array([[[[5, 7], [13, 2]]], [[[16, 31], [20, 22]]]])
    unpool = node("MaxUnpool", "x i", "y", kernel_shape=[2, 2], strides=[2, 2])
    model = graph_of([unpool], {"x": (2, 1, 2, 2)}, {"i": places})
    feeds = seeded({"x": (2, 1, 2, 2)})
    assert lower_max_unpool(model) == 1
    flat = np.zeros(32, np.float32)
    flat[places.ravel()] = feeds["x"].ravel()
    assert run(model, feeds)["y"].ravel().tolist() == flat.tolist()
