"""lower_summing_scatter: what onnxruntime computes, and where it must not apply."""

import numpy as np
import onnx
import pytest

import mrt
from cvm.runtime.executable import Executable
from mrt.errors import Unsupported
from mrt.rewrite import rewrite
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
    ],
    ids=["few into a vector", "into columns of one", "max", "the last one", "few", "unknown", "columns"],
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


def counts(axis, indices=None, kind=np.float32):
    """A number for each element of the updates is that of a place along the axis."""
    shape, places = (
        ((NODES, 5), (EDGES, 5)) if axis == 0 else ((5, NODES), (5, EDGES))
    )
    arrays = {"x": np.ones(shape, kind), "u": np.full(places, 3, kind)}
    nodes = [node("ScatterElements", "x i u", "t", axis=axis, reduction="add"),
             node("Cast", "t", "y", to=1)]  # fmt: skip
    if indices is None:
        nodes.insert(0, node("Cast", "p", "i", to=7))
        return graph_of(nodes, {"p": places}, arrays, opset=20)
    held = {"x": arrays["x"], "i": indices}
    return graph_of(nodes, {"u": places}, held, opset=20)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_at_an_index_of_each_element_are_choices(axis, kind):
    model = counts(axis, kind=kind)
    shape = (EDGES, 5) if axis == 0 else (5, EDGES)
    feeds = {"p": RANDOM.integers(-NODES, NODES, shape).astype(np.float32)}
    expected = run(model, feeds)
    assert lower_summing_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("columns", [1, 5], ids=["whole rows", "by element"])
def test_more_than_16_updates_at_one_constant_place(columns, axis):
    """`onehot_scatter` takes at most 16 rounds in which no place occurs twice."""
    indices = RANDOM.integers(-NODES, 1, (EDGES, columns)).repeat(
        5 // columns, 1
    )
    indices[:20] = 2
    feeds = {"u": UPDATES if axis == 0 else UPDATES.T.copy()}
    model = counts(axis, indices if axis == 0 else indices.T.copy())
    expected = run(model, feeds)
    rewrite(model)
    assert "ScatterElements" not in operators_of(model)
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_counts_of_each_row_in_integers(kind, tmp_path):
    """Counts are exact, but for the scale of what they are multiplied with."""
    nodes = [
        node("Cast", "p", "i", to=7),
        node("ScatterElements", "zeros i ones", "n", axis=1, reduction="add"),
        node("Cast", "n", "c", to=1),
        node("Mul", "c x", "y"),
    ]
    arrays = {
        "zeros": np.zeros((3, NODES), kind),
        "ones": np.ones((3, EDGES), kind),
    }
    shapes = {"p": (3, EDGES), "x": (3, NODES)}
    proto = build(nodes, shapes, arrays, opset=20)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {
        "p": RANDOM.integers(0, NODES, (64, 3, EDGES)).astype(np.float32),
        "x": RANDOM.uniform(-1, 1, (64, 3, NODES)).astype(np.float32),
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


def test_too_many_sums_are_refused_with_the_limit():
    shapes = {"x": (3000,), "p": (3000,), "u": (3000,)}
    scatter = node("ScatterElements", "x i u", "y", reduction="add")
    made = graph_of([node("Cast", "p", "i", to=7), scatter], shapes, opset=20)
    limit = "its 3,000 updates for each of 3,000 places are 9,000,000 choices; at most 4,194,304; end in"
    with pytest.raises(Unsupported, match=limit):
        rewrite(made)
