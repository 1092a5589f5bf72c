"""lower_extreme_scatter and lower_scatter_without_self: what onnxruntime computes, in integers too; where they must not apply."""

import numpy as np
import onnx
import pytest

import mrt
from cvm.runtime.executable import Executable
from mrt.errors import Unsupported
from mrt.rewrite import rewrite
from mrt.rewrite.lookup.extreme_scatter import (
    lower_extreme_scatter,
    lower_scatter_without_self,
)
from tests.support.graphs import (
    assert_same,
    build,
    graph_of,
    node,
    operators_of,
    run,
)

EDGES, NODES = 40, 6
FULL = (EDGES, 5)
RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(NODES, 5)).astype(np.float32)
UPDATES = RANDOM.normal(size=FULL).astype(np.float32)
REDUCTIONS = pytest.mark.parametrize("reduction", ["max", "min"])
SCATTERS = {"ScatterND", "ScatterElements"}


def places(*shape):
    """Numbers of rows, of which some count from the end, and none is the first row."""
    numbers = RANDOM.integers(1, NODES, shape)
    return np.where(RANDOM.random(shape) < 0.5, numbers, numbers - NODES)


def scatters(reduction, edges=EDGES, operator="ScatterElements", *, hide=False):
    """Return nodes that combine x with updates at the indices w; with `hide`, x takes no part in rows that are hit."""
    axis = {} if operator == "ScatterND" else {"axis": 0}
    last = node(operator, "x w u", "y", reduction=reduction, **axis)
    if not hide:
        return [last], {}
    opposite = {"max": "min", "min": "max"}[reduction]
    last.input[0] = "h"
    first = node(operator, "x w b", "h", reduction=opposite, **axis)
    beyond = np.finfo(np.float32).min if reduction == "max" else np.finfo(np.float32).max  # fmt: skip
    return [first, last], {"b": np.full((edges, 5), beyond)}


def whole_rows(reduction, edges=EDGES, indices=None, operator="ScatterElements", *, hide=False):  # fmt: skip
    """Return the nodes, shapes and arrays of a scatter of whole rows at computed indices, or at these."""
    nodes, arrays = scatters(reduction, edges, operator, hide=hide)
    shapes = {"x": (NODES, 5), "u": (edges, 5)}
    if operator == "ScatterElements":
        nodes.insert(0, node("Expand", "i shape", "w"))
        arrays["shape"] = np.int64([edges, 5])
    else:
        nodes.insert(0, node("Identity", "i", "w"))
    if indices is not None:
        return nodes, shapes, arrays | {"i": indices}
    return [node("Cast", "p", "i", to=7), *nodes], shapes | {"p": (edges, 1)}, arrays  # fmt: skip


def feeds_of(shapes):
    """Return x with rows above, below and among the updates, so that each may win."""
    given = {"x": X + np.float32([[0], [3], [-3], [0], [1], [-1]]), "u": UPDATES, "p": places(EDGES, 1)}  # fmt: skip
    return {name: given[name][: shape[0]].astype(np.float32) for name, shape in shapes.items()}  # fmt: skip


@REDUCTIONS
@pytest.mark.parametrize("operator", sorted(SCATTERS))
def test_extremes_of_rows_are_choices(operator, reduction):
    nodes, shapes, arrays = whole_rows(reduction, operator=operator)
    model = graph_of(nodes, shapes, arrays, opset=20)
    feeds = feeds_of(shapes)
    expected = run(model, feeds)
    assert lower_extreme_scatter(model) == 1
    assert not SCATTERS & set(operators_of(model))
    assert_same(expected, run(model, feeds))


@REDUCTIONS
def test_x_takes_part_where_all_updates_go_to_one_row(reduction):
    nodes, shapes, arrays = whole_rows(reduction)
    model = graph_of(nodes, shapes, arrays, opset=20)
    feeds = feeds_of(shapes) | {"p": np.full((EDGES, 1), 2, np.float32)}
    feeds["x"][2] = [-5, 5, 0, -5, 5]
    expected = run(model, feeds)
    assert lower_extreme_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@REDUCTIONS
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_at_an_index_of_each_element(axis, reduction):
    shape, updates = ((NODES, 5), FULL) if axis == 0 else ((5, NODES), (5, EDGES))  # fmt: skip
    scatter = node("ScatterElements", "x i u", "y", axis=axis, reduction=reduction)  # fmt: skip
    shapes = {"x": shape, "p": updates, "u": updates}
    model = graph_of([node("Cast", "p", "i", to=7), scatter], shapes, opset=20)
    feeds = {
        "x": X.reshape(shape),
        "p": places(*updates).astype(np.float32),
        "u": UPDATES.reshape(updates),
    }
    expected = run(model, feeds)
    assert lower_extreme_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@REDUCTIONS
@pytest.mark.parametrize("known", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("operator", sorted(SCATTERS))
@pytest.mark.parametrize("edges", [8, EDGES])
def test_rows_in_which_x_takes_no_part(edges, operator, known, reduction):
    """As PyTorch's scatter_reduce with include_self=False; rows without an update keep x."""
    indices = places(edges, 1) if known else None
    nodes, shapes, arrays = whole_rows(reduction, edges, indices, operator, hide=True)  # fmt: skip
    model = graph_of(nodes, shapes, arrays, opset=20)
    feeds = feeds_of(shapes)
    expected = run(model, feeds)
    rewrite(model)
    assert not SCATTERS & set(operators_of(model))
    greatest = [
        np.abs(value.const_value.numpy()).max()
        for value in model.graph.initializers.values()
    ]
    assert max(greatest) < 1e6
    assert_same(expected, run(model, feeds))


def test_x_that_was_folded_with_the_scatter_that_hides_it():
    nodes, shapes, arrays = whole_rows("max", indices=places(EDGES, 1), hide=True)  # fmt: skip
    del shapes["x"]
    model = graph_of(nodes, shapes, arrays | {"x": X}, opset=20)
    feeds = feeds_of(shapes)
    expected = run(model, feeds)
    rewrite(model)
    assert "ReduceMax" in operators_of(model)
    assert_same(expected, run(model, feeds))


def test_more_than_16_updates_at_one_constant_place():
    """`onehot_scatter` takes at most 16 rounds in which no place occurs twice."""
    indices = places(EDGES, 1)
    indices[:20] = 2
    nodes, shapes, arrays = whole_rows("max", indices=indices)
    model = graph_of(nodes, shapes, arrays, opset=20)
    feeds = feeds_of(shapes)
    expected = run(model, feeds)
    rewrite(model)
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_other_reductions_stay(reduction):
    nodes, shapes, arrays = whole_rows(reduction)
    assert lower_extreme_scatter(graph_of(nodes, shapes, arrays, opset=20)) == 0


def test_few_updates_stay():
    nodes, shapes, arrays = whole_rows("max", 32)
    model = graph_of(nodes, shapes, arrays, opset=20)
    assert (
        lower_extreme_scatter(model) == lower_scatter_without_self(model) == 0
    )


def test_x_that_an_update_may_not_reach_is_hidden_by_nothing():
    """0 is no number below all updates, so that the first scatter is a least one of x and 0."""
    nodes, shapes, arrays = whole_rows("max", hide=True)
    arrays["b"] = np.zeros(FULL, np.float32)
    model = graph_of(nodes, shapes, arrays, opset=20)
    feeds = feeds_of(shapes)
    expected = run(model, feeds)
    assert lower_scatter_without_self(model) == 0
    assert lower_extreme_scatter(model) == 2
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize("hide", [False, True])
def test_greatest_messages_in_integers(hide, tmp_path):
    nodes, shapes, arrays = whole_rows("max", hide=hide)
    nodes[-1].output[0] = "t"
    nodes.append(node("Neg", "t", "y"))
    del shapes["x"]
    arrays["x"] = np.zeros((NODES, 5), np.float32)
    proto = build(nodes, shapes, arrays, opset=20)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {
        "p": RANDOM.integers(0, NODES, (64, EDGES, 1)).astype(np.float32),
        "u": RANDOM.uniform(-2, 1, (64, *FULL)).astype(np.float32),
    }
    program = mrt.convert(tmp_path / "m.onnx", feeds).program
    numbers = program.quantize(feeds)
    given = program.run(numbers)
    few = {name: array[:4] for name, array in numbers.items()}
    law = Executable.of(program, "reference").run(few)["y"]
    assert law.tobytes() == given["y"][:4].tobytes()
    found = program.dequantize(given)["y"]
    for place in range(64):
        sample = {name: array[place] for name, array in feeds.items()}
        expected = run(proto, sample)["y"]
        assert np.abs(found[place] - expected).max() < 0.02


def test_too_many_choices_are_refused_with_the_limit():
    scatter = node("ScatterND", "x i u", "y", reduction="max")
    shapes = {"x": (600, 40), "p": (600, 1), "u": (600, 40)}
    made = graph_of([node("Cast", "p", "i", to=7), scatter], shapes, opset=20)
    limit = "its 600 updates of 40 numbers for each of 600 places are 14,400,000 choices; at most 4,194,304; end"
    with pytest.raises(Unsupported, match=limit):
        rewrite(made)


def test_updates_that_leave_out_columns_are_refused():
    scatter = node("ScatterElements", "x i u", "y", reduction="max")
    shapes = {"x": (NODES, 5), "p": (EDGES, 4), "u": (EDGES, 4)}
    made = graph_of([node("Cast", "p", "i", to=7), scatter], shapes, opset=20)
    problem = r"its updates \[40, 4\] leave out places of \[6, 5\] in other axes than the one they go along; end"
    with pytest.raises(Unsupported, match=problem):
        rewrite(made)
