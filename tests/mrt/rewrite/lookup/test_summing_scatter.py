"""lower_summing_scatter: what onnxruntime computes, and where it must not apply."""

import numpy as np
import onnx
import pytest

import mrt
from cvm.runtime.executable import Executable
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


def decibels(proto, path, feeds):
    """Return the ratio of signal to noise of the program, whose two machines must give the same bytes."""
    program = mrt.convert(path, feeds).program
    numbers = program.quantize(feeds)
    given = program.run(numbers)
    reference = Executable.of(program, "reference")
    few = {name: array[:4] for name, array in numbers.items()}
    for name, array in reference.run(few).items():
        assert array.tobytes() == given[name][:4].tobytes()
    found = program.dequantize(given)["y"]
    samples = [
        {name: array[place] for name, array in feeds.items()}
        for place in range(len(found))
    ]
    expected = np.stack([run(proto, sample)["y"] for sample in samples])
    noise = ((found.reshape(expected.shape) - expected) ** 2).sum()
    return 10 * np.log10((expected**2).sum() / noise)


def vector(shape=(NODES,), places=(EDGES,), axis=0, **arrays):
    """Sums into a vector, or into the only row of a matrix, as of the degrees of nodes."""
    scatter = node("ScatterElements", "x i u", "y", axis=axis, reduction="add")
    shapes = {"x": shape, "p": places, "u": places}
    given = {
        name: shape for name, shape in shapes.items() if name not in arrays
    }
    nodes = [node("Cast", "p", "i", to=7), scatter]
    return graph_of(nodes, given, arrays, opset=20)


@pytest.mark.parametrize(
    ("shape", "places", "axis"),
    [((NODES,), (EDGES,), 0), ((1, NODES), (1, EDGES), 1), ((NODES, 1), (EDGES, 1), -2)],
    ids=["vector", "row", "column"],
)  # fmt: skip
@pytest.mark.parametrize("updates", ["computed", "ones"])
def test_sums_into_a_vector_are_a_product(shape, places, axis, updates):
    ones = {"u": np.ones(places, np.float32)} if updates == "ones" else {}
    model = vector(shape, places, axis, **ones)
    feeds = {
        "x": X[:, 0].reshape(shape),
        "p": PLACES.reshape(places),
        "u": UPDATES[:, 0].reshape(places),
    }
    given = {name: feeds[name] for name in feeds.keys() - ones.keys()}
    expected = run(model, given)
    assert lower_summing_scatter(model) == 1
    assert "MatMul" in operators_of(model)
    assert_same(expected, run(model, given))


@pytest.mark.parametrize(
    "made",
    [
        vector(places=(32,)),
        vector((NODES, 1), (EDGES, 1), axis=1),
        rows(reduction="max"),
        rows(),
        rows({"x": (NODES, 5), "p": (8, 1), "u": (8, 5)}, reduction="add"),
        rows(ROWS | {"x": ("n", 5)}, reduction="add"),
        elements(axis=1, reduction="add"),
        elements((EDGES, 5), axis=0, reduction="add"),
        elements((1, 5), axis=0, reduction="add"),
    ],
    ids=["few into a vector", "into columns of one", "max", "the last one", "few", "unknown", "columns", "by element", "by column"],
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
    assert decibels(proto, tmp_path / "m.onnx", feeds) > 38


def test_means_of_messages_in_integers(tmp_path):
    """As the mean aggregation of a graph network: sums by the number of edges that go to a node."""
    nodes = [
        node("Cast", "p", "i", to=7),
        node("Relu", "u", "r"),
        node("ScatterElements", "zeros i r", "s", axis=0, reduction="add"),
        node("ScatterElements", "zeros i ones", "n", axis=0, reduction="add"),
        node("Max", "n one", "d"),
        node("Div", "s d", "y"),
    ]
    arrays = {"zeros": np.zeros(NODES, np.float32), "one": np.float32([1]),
              "ones": np.ones(EDGES, np.float32)}  # fmt: skip
    proto = build(nodes, {"p": (EDGES,), "u": (EDGES,)}, arrays, opset=20)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {
        "p": RANDOM.integers(0, NODES, (64, EDGES)).astype(np.float32),
        "u": RANDOM.uniform(0, 1, (64, EDGES)).astype(np.float32),
    }
    assert decibels(proto, tmp_path / "m.onnx", feeds) > 38
