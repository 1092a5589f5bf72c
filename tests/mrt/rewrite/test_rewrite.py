"""The passes together: order, names, determinism, the written file."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.rewrite import STAGES, rewrite, save
from tests.support.graphs import (
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
    shapes_of,
)

_RNG = np.random.default_rng(3)


def _weights(**shapes):
    return {
        name: _RNG.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def _network():
    """Conv, BatchNormalization, LeakyRelu, an average, plumbing, a dense layer: what one file may hold."""
    nodes = [
        node("Pad", "x p", "padded"),
        node("Conv", "padded w", "conv"),
        node("BatchNormalization", "conv g b m v", "norm"),
        node("LeakyRelu", "norm", "leaky", alpha=0.1),
        node("GlobalAveragePool", "leaky", "pool"),
        node("Shape", "pool", "shape"),
        node("Gather", "shape zero", "batch"),
        node("Concat", "batch rest", "target", axis=0),
        node("Reshape", "pool target", "flat"),
        node("MatMul", "flat d", "product"),
        node("Add", "product e", "logits"),
        node("Dropout", "logits", "dropped"),
        node("Softmax", "dropped", "y"),
    ]
    arrays = _weights(
        w=(4, 3, 3, 3), g=(4,), b=(4,), m=(4,), d=(4, 5), e=(5,)
    ) | {
        "v": np.full(4, 2, np.float32),
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "zero": np.array([0]),
        "rest": np.array([-1]),
    }
    return graph_of(nodes, {"x": (1, 3, 8, 8)}, arrays)


def test_a_network_reaches_canonical_form():
    model = _network()
    feeds = seeded(shapes_of(model))
    before = run(model, feeds)
    rewrite(model)
    assert operators_of(model) == [
        "Conv", "Mul", "Relu", "Mul", "Relu", "Sub", "ReduceSum", "Mul", "Reshape", "Gemm", "Softmax",
    ]  # fmt: skip
    assert_same(before, run(model, feeds))


def test_values_that_survive_keep_their_names():
    model = _network()
    rewrite(model)
    names = [value.name for entry in model.graph for value in entry.outputs]
    assert {"norm", "leaky", "pool", "flat", "logits", "y"} <= set(names)


def test_the_same_model_gives_the_same_bytes():
    first = _network()
    second = ir.from_proto(ir.to_proto(first))
    for model in (first, second):
        rewrite(model)
    assert ir.to_proto(first).SerializeToString(
        deterministic=True
    ) == ir.to_proto(second).SerializeToString(deterministic=True)


def test_rewriting_again_changes_nothing():
    model = _network()
    rewrite(model)
    assert [
        one_pass.__name__
        for stage in STAGES
        for one_pass in stage
        if one_pass(model)
    ] == []


def test_what_does_not_fold_away_is_refused_by_name():
    nodes = [node("Det", "x", "a"), node("Bernoulli", "a", "y")]
    with pytest.raises(Unsupported) as caught:
        rewrite(graph_of(nodes, {"x": (2, 3, 3)}))
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "Det",
        "Bernoulli",
    ]


def test_the_file_keeps_names_and_shapes(tmp_path):
    model = _network()
    rewrite(model)
    path = tmp_path / "out.onnx"
    save(model, path)
    written = onnx.load(path)
    onnx.checker.check_model(written, full_check=True)
    assert [value.name for value in written.graph.input] == ["x"]
    assert [
        [size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in written.graph.output
    ] == [[1, 5]]
    assert_same(
        run(model, seeded(shapes_of(model))),
        run(written, seeded(shapes_of(model))),
        0,
    )
    assert [file.name for file in tmp_path.iterdir()] == ["out.onnx"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    model = graph_of([node("Relu", "x", "y")], {"x": (2,)})
    (tmp_path / "out.onnx").mkdir()
    with pytest.raises(IsADirectoryError):
        save(model, tmp_path / "out.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["out.onnx"]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("Nothing", "x", "y")], "No Op registered for Nothing"),
        ([node("Relu", "x x", "y")], "has input size 2 not in range"),
        ([node("MatMul", "x x", "y")], "Incompatible dimensions"),
    ],
    ids=["operator", "operands", "shapes"],
)
def test_what_the_checker_refuses_is_not_written(nodes, reason, tmp_path):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    path = tmp_path / "out.onnx"
    with pytest.raises(BadModel) as caught:
        save(ir.from_proto(model), path)
    text = str(caught.value)
    assert text.startswith(
        f"{path}: the rewritten model does not pass onnx.checker, so that it is not written: "
    )
    assert reason in text and "\n" not in text
    assert not list(tmp_path.iterdir())


def test_more_weights_than_one_file_holds_are_refused_before_anything_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("mrt.rewrite.onnx_file.MOST_BYTES", 15)
    model = graph_of(
        [node("Add", "x w", "y")], {"x": (1, 4)}, {"w": np.ones(4, np.float32)}
    )
    with pytest.raises(
        BadOption,
        match=r"16 bytes of weights; one \.onnx file holds at most 15",
    ):
        save(model, tmp_path / "out.onnx")
    assert not list(tmp_path.iterdir())
