"""Sparse tensors mean the dense ones, and take no memory that the file does not pay for."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.errors import BadModel
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, node, run, seeded

DENSE = np.array([[0, 2.5, 0], [0, 0, -1]], np.float32)
VALUES = np.array([2.5, -1], np.float32)
PLACES = {
    "counted": np.array([1, 5]),
    "by axis": np.array([[0, 1], [1, 2]]),
}


def sparse(places=PLACES["counted"], values=VALUES, shape=(2, 3)):
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"),
        numpy_helper.from_array(places),
        shape,
    )


def model_of(initializers=(), nodes=(), sparse_initializers=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [*nodes, node("MatMul", "x w", "y")],
        "g",
        [info("x", 1, (4, 2))],
        [info("y", 1, None)],
        initializers,
        sparse_initializer=sparse_initializers,
    )
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def loaded(model, folder):
    onnx.save(model, folder / "m.onnx")
    return load_onnx(folder / "m.onnx")[0]


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_sparse_tensor_is_the_dense_one(places, is_constant, tmp_path):
    tensor = sparse(places)
    if is_constant:
        constant = node("Constant", "", "w", sparse_value=tensor)
        del constant.input[:]
        model = model_of(nodes=[constant])
    else:
        model = model_of(sparse_initializers=[tensor])
    dense = model_of([numpy_helper.from_array(DENSE, "w")])
    inputs = seeded({"x": (4, 2)})
    assert_same(run(dense, inputs), run(loaded(model, tmp_path), inputs))


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (sparse(np.array([1, 6])), "has indices that do not fit"),
        (sparse(np.array([-1, 2])), "has indices that do not fit"),
        (sparse(np.array([1, 2, 3])), "has indices that do not fit"),
        (sparse(np.array([[0, 3], [1, 2]])), "has indices that do not fit"),
        (sparse(np.array([[0, 1, 0]] * 2)), "has indices of another rank"),
        (sparse(shape=(2, -3)), "has the shape"),
        (sparse(np.array([1.0, 5.0])), "has indices that are not int64"),
        (sparse(shape=(2, 3, *[1] * 70)), "has too many axes"),
        (sparse(values=np.array(["a", "b"], object)), "holds text"),
        (sparse(shape=(2**20, 2**20)), "have at most 16777216 numbers"),
    ],
)
def test_one_that_is_malformed_is_refused(tensor, problem, tmp_path):
    with pytest.raises(BadModel, match=f"sparse tensor 'w' .*{problem}"):
        loaded(model_of(sparse_initializers=[tensor]), tmp_path)


def test_a_graph_needs_no_name(tmp_path):
    model = model_of([numpy_helper.from_array(DENSE, "w")])
    model.graph.name = ""
    assert len(loaded(model, tmp_path).graph) == 1


@pytest.mark.parametrize("name", [b"graph g", b"sparse w"])
def test_names_that_are_no_text_are_refused(name, tmp_path):
    tensor = sparse()
    tensor.values.name = "sparse w"
    model = model_of(sparse_initializers=[tensor])
    model.graph.name = "graph g"
    data = model.SerializeToString().replace(name, b"\xff" + name[1:])
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(BadModel, match="is no text"):
        load_onnx(tmp_path / "m.onnx")
