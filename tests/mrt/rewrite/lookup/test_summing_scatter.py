"""lower_summing_scatter: what onnxruntime computes, and where it must not apply."""

import numpy as np
import onnx
import pytest

import mrt
from mrt.rewrite.lookup.summing_scatter import lower_summing_scatter
from tests.support.graphs import (
    assert_same,
    build,
    graph_of,
    node,
    operators_of,
    run,
)

EDGES, NODES = 40, 6
RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(NODES, 5)).astype(np.float32)
UPDATES = RANDOM.normal(size=(EDGES, 5)).astype(np.float32)
PLACES = RANDOM.integers(-NODES, NODES, (EDGES, 1)).astype(np.float32)
FEEDS = {"x": X, "p": PLACES, "u": UPDATES}
ROWS = {"x": (NODES, 5), "p": (EDGES, 1), "u": (EDGES, 5)}


def rows(shapes=ROWS, **attributes):
    scatter = node("ScatterND", "x i u", "y", **attributes)
    return graph_of([node("Cast", "p", "i", to=7), scatter], shapes, opset=20)


def elements(places=(EDGES, 1), **attributes):
    nodes = [
        node("Cast", "p", "i", to=7),
        node("Expand", "i shape", "w"),
        node("ScatterElements", "x w u", "y", **attributes),
    ]
    shapes = ROWS | {"p": places}
    return graph_of(nodes, shapes, {"shape": np.int64([EDGES, 5])}, opset=20)


@pytest.mark.parametrize(
    "made", [rows(reduction="add"), elements(axis=0, reduction="add")], ids=["rows", "elements"]
)  # fmt: skip
def test_sums_of_rows_are_a_product(made):
    expected = run(made, FEEDS)
    assert lower_summing_scatter(made) == 1
    assert not {"ScatterND", "ScatterElements"} & set(operators_of(made))
    assert_same(expected, run(made, FEEDS))


def test_places_in_two_axes():
    shapes = {"x": (3, 4, 2), "p": (EDGES, 2), "u": (EDGES, 2)}
    model = rows(shapes, reduction="add")
    places = RANDOM.integers(0, 3, (EDGES, 2)).astype(np.float32)
    feeds = {
        "x": RANDOM.normal(size=(3, 4, 2)).astype(np.float32),
        "p": places,
        "u": UPDATES[:, :2].copy(),
    }
    expected = run(model, feeds)
    assert lower_summing_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize(
    "made",
    [
        rows(reduction="max"),
        rows(),
        rows({"x": (NODES, 5), "p": (8, 1), "u": (8, 5)}, reduction="add"),
        rows(ROWS | {"x": ("n", 5)}, reduction="add"),
        elements(axis=1, reduction="add"),
        elements((EDGES, 5), axis=0, reduction="add"),
        elements((1, 5), axis=0, reduction="add"),
    ],
    ids=["max", "the last one", "few", "unknown", "columns", "by element", "by column"],
)  # fmt: skip
def test_where_it_does_not_apply(made):
    assert lower_summing_scatter(made) == 0


def test_messages_along_edges_in_integers(tmp_path):
    """Which row is hit is 0 or 1 exactly, so that the sums err by what is summed alone."""
    nodes = [
        node("Cast", "p", "i", to=7),
        node("Gather", "x i", "taken"),
        node("Relu", "taken", "u"),
        node("Expand", "i shape", "w"),
        node("ScatterElements", "zeros w u", "y", axis=0, reduction="add"),
    ]
    arrays = {"shape": np.int64([EDGES, 5]), "zeros": np.zeros_like(X)}
    nodes[1] = node("Gather", "x flat", "taken", axis=0)
    nodes.insert(1, node("Squeeze", "i axis", "flat"))
    arrays["axis"] = np.int64([1])
    proto = build(nodes, {"x": (NODES, 5), "p": (EDGES, 1)}, arrays, opset=20)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {
        "x": RANDOM.normal(size=(64, NODES, 5)).astype(np.float32),
        "p": RANDOM.integers(0, NODES, (64, EDGES, 1)).astype(np.float32),
    }
    program = mrt.convert(tmp_path / "m.onnx", feeds).program
    found = program.dequantize(program.run(program.quantize(feeds)))["y"]
    expected = np.stack(
        [
            run(proto, {name: array[place] for name, array in feeds.items()})["y"]
            for place in range(64)
        ]
    )  # fmt: skip
    noise = ((found.reshape(expected.shape) - expected) ** 2).sum()
    assert 10 * np.log10((expected**2).sum() / noise) > 38
