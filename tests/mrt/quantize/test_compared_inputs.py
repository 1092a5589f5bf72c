"""Inputs that only comparisons and scalers of columns read keep columns of very different sizes apart."""

import time

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import mrt
from mrt.purposes import PURPOSES
from mrt.quantize.compared_inputs import compared_inputs
from mrt.quantize.options import QuantizeOptions
from mrt.rewrite.passes import rewrite
from tests.support.answers import answers, expected
from tests.support.graphs import graph_of, node

SIZES = np.float32([5000.0, 1.0, 0.001])
ROWS = 256
FHE = PURPOSES["fhe"]


def model_of(nodes, columns=("x",), **more):
    """A tree of three columns, one after the other, behind these nodes; the leaves are 1, 2, 4 and 8."""
    tree = helper.make_node(
        "TreeEnsembleRegressor", ["joined"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * 7, nodes_nodeids=list(range(7)), nodes_featureids=[0, 0, 1, 0, 2, 0, 0],
        nodes_values=[2500.0, 0, 0.5, 0, 0.0005, 0, 0], nodes_modes=[*["BRANCH_LEQ", "LEAF"] * 3, "LEAF"],
        nodes_truenodeids=[1, 0, 3, 0, 5, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 6, 0, 0],
        target_treeids=[0] * 4, target_nodeids=[1, 3, 5, 6], target_ids=[0] * 4, target_weights=[1.0, 2.0, 4.0, 8.0],
    )  # fmt: skip
    width = 3 // len(columns)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])
        for name in columns
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])]
    outputs += more.get("outputs", [])
    graph = helper.make_graph(
        [*nodes, tree], "g", inputs, outputs, more.get("weights", [])
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def table():
    random = np.random.default_rng(5)
    return random.uniform(0, 1, (ROWS, 3)).astype(np.float32) * SIZES


IDENTITY = [helper.make_node("Identity", ["x"], ["joined"])]
CONCAT = [helper.make_node("Concat", [*"abc"], ["joined"], axis=1)]


@pytest.mark.parametrize("joined", [False, True], ids=["one", "joined"])
def test_every_row_reaches_the_leaf_of_float(joined, tmp_path):
    x = table()
    proto = model_of(CONCAT, "abc") if joined else model_of(IDENTITY)
    feeds = {"x": x}
    if joined:
        feeds = {name: x[:, [place]] for place, name in enumerate("abc")}
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    wanted = expected(proto, feeds)
    assert set(wanted.ravel()) == {1.0, 2.0, 4.0, 8.0}
    found = answers(converted, feeds)
    assert np.abs(found.ravel() - wanted.ravel()).max() < 0.1
    kinds = {item.type.dtype for item in converted.program.program.inputs}
    assert kinds == {"i32"}


@pytest.mark.parametrize(
    "options", [FHE, {"activation_bits": 4}, {"sum_bits": 12}], ids=str
)
def test_few_bits_are_for_machines_that_have_no_more(options, tmp_path):
    onnx.save(model_of(IDENTITY), tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": table()}, **options)
    (item,) = converted.program.program.inputs
    assert item.type.dtype == "i8"


def test_an_input_that_a_product_reads_too_has_8_bits(tmp_path):
    weights = np.ones((3, 2), np.float32) / SIZES[:, None]
    proto = model_of(
        [*IDENTITY, helper.make_node("MatMul", ["x", "w"], ["z"])],
        outputs=[helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2])],
        weights=[onnx.numpy_helper.from_array(weights, "w")],
    )
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": table()}, bits=8)
    (item,) = converted.program.program.inputs
    assert item.type.dtype == "i8"


def test_a_threshold_that_no_number_reaches_takes_no_bits(tmp_path):
    """The greatest float32 is the last edge of the bins of a column that has two numbers."""
    most = np.finfo(np.float32).max
    model = model_of(IDENTITY)
    (values,) = [
        item
        for item in model.graph.node[-1].attribute
        if item.name == "nodes_values"
    ]
    values.floats[0] = most  # all rows go on to leaf 1
    onnx.save(model, tmp_path / "m.onnx")
    feeds = {"x": table()}
    found = answers(mrt.convert(tmp_path / "m.onnx", feeds), feeds)
    wanted = expected(model, feeds)
    assert np.abs(found.ravel() - wanted.ravel()).max() < 0.1
    (program,) = [mrt.convert(tmp_path / "m.onnx", feeds).program.program]
    assert program.inputs[0].type.dtype == "i32"


def scaled(sizes):
    """A dense layer behind a scaler of columns, as pipelines have it."""
    random = np.random.default_rng(6)
    weights = {
        "mean": (-0.5 * sizes).astype(np.float32),
        "inverse": (1 / sizes).astype(np.float32),
        "w": random.normal(size=(3, 4)).astype(np.float32),
        "b": np.zeros(4, np.float32),
    }
    nodes = [
        node("Add", "x mean", "centred"),
        node("Mul", "centred inverse", "scaled"),
        node("Gemm", "scaled w b", "y"),
    ]
    return graph_of(nodes, {"x": (1, 3)}, weights)


@pytest.mark.parametrize("bits", [8, None])
def test_a_scaler_of_columns_finds_all_of_them(bits, tmp_path):
    proto = ir.to_proto(scaled(SIZES))
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {"x": table()}
    converted = mrt.convert(tmp_path / "m.onnx", feeds, compared_bits=bits)
    errors = answers(converted, feeds) - expected(proto, feeds)
    assert np.abs(errors).max() < 0.05
    (item,) = converted.program.program.inputs
    assert item.type.dtype == ("i8" if bits else "i32")


@pytest.mark.parametrize(
    "column",
    [node("Slice", "x b two one", "column"), node("Gather", "x second", "column", axis=1)],
    ids=["a part of the table", "a row of numbers"],
)  # fmt: skip
def test_numbers_of_a_category_stay_exact_beside_great_columns(
    column, tmp_path
):
    """As a OneHotEncoder reads one column of a table, or x[:, 1]: cast to integers, and compared."""
    weights = {
        "one": np.array([1]),
        "second": np.array(1),
        "categories": np.array([[0, 1, 2]]),
        **{name: np.array([at]) for name, at in (("a", 0), ("b", 1))},
    }
    nodes = [
        node("Slice", "x a b one", "great"),
        column,
        node("Add", "great many", "greater"),
        node("Cast", "column", "number", to=TensorProto.INT64),
        node("Equal", "number categories", "hit"),
        node("Cast", "hit", "hot", to=TensorProto.FLOAT),
        node("Add", "hot greater", "y"),
    ]
    weights["two"] = np.array([2])
    weights["many"] = np.float32([[1, 2, 3]])
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 2)}, weights))
    onnx.save(proto, tmp_path / "m.onnx")
    random = np.random.default_rng(8)
    x = np.stack([random.uniform(0, 9000, 96), random.integers(0, 3, 96)], 1)
    feeds = {"x": x.astype(np.float32)}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    wanted = expected(proto, feeds)
    assert np.abs(answers(converted, feeds) - wanted).max() < 0.5


@pytest.mark.parametrize(
    ("signs", "scales"),
    [([1, 1, 1, 1], "real"), ([1, -1, -1, 1], "real"), ([1, 1, 1, 1], "shift")],
    ids=["one sign", "both signs", "powers of two"],
)
@pytest.mark.parametrize("order", ["shift first", "factor first"])
@pytest.mark.parametrize("axis", [1, 2])
def test_sensors_of_different_sizes_are_scaled_in_sequences(
    axis, order, signs, scales, tmp_path
):
    """Pressures, temperatures, valves: a scaler along the axis of sensors, and a layer behind it."""
    mean = np.float32([101325, 288, 0.5, 40])
    deviation = np.float32([800, 10, 0.25, 20]) * np.float32(signs)
    along = (4, 1) if axis == 1 else (4,)
    random = np.random.default_rng(4)
    weights = {
        "mean": mean.reshape(along),
        "inverse": (1 / deviation).reshape(along),
        "shift": (mean / deviation).reshape(along),
        "w": random.normal(size=(6 if axis == 1 else 4, 3)).astype(np.float32),
    }
    scaler = [node("Sub", "x mean", "a"), node("Mul", "a inverse", "z")]
    if order == "factor first":
        scaler = [node("Mul", "x inverse", "a"), node("Sub", "a shift", "z")]
    shape = (1, 4, 6) if axis == 1 else (1, 6, 4)
    graph = graph_of(
        [*scaler, node("MatMul", "z w", "y")], {"x": shape}, weights
    )
    proto = ir.to_proto(graph)
    onnx.save(proto, tmp_path / "m.onnx")
    numbers = random.normal(size=(64, 6, 4)) * deviation + mean
    x = np.float32(numbers.transpose(0, 2, 1) if axis == 1 else numbers)
    converted = mrt.convert(tmp_path / "m.onnx", {"x": x}, scales=scales)
    wanted = expected(proto, {"x": x})
    errors = answers(converted, {"x": x}) - wanted
    assert np.abs(errors).max() < 0.04 * np.abs(wanted).max()


def test_sensors_are_scaled_by_a_batch_normalization(tmp_path):
    """A sequence [N, T, C] is turned for the normalization and the convolution behind it."""
    sizes = np.float32([0.01, 1, 1000, 30])
    random = np.random.default_rng(7)
    weights = {
        "factors": np.float32([1, -1, 1, -1]),
        "shifts": np.zeros(4, np.float32),
        "means": sizes,
        "variances": sizes**2,
        "w": random.normal(size=(3, 4, 3)).astype(np.float32),
    }
    nodes = [
        node("Transpose", "x", "turned", perm=[0, 2, 1]),
        node(
            "BatchNormalization",
            "turned factors shifts means variances",
            "z",
            epsilon=1e-9,
        ),
        node("Conv", "z w", "y", kernel_shape=[3]),
    ]
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 6, 4)}, weights))
    onnx.save(proto, tmp_path / "m.onnx")
    numbers = random.normal(size=(64, 6, 4)) * sizes + sizes
    feeds = {"x": numbers.astype(np.float32)}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    wanted = expected(proto, feeds)
    errors = answers(converted, feeds) - wanted
    assert np.mean(errors**2) < 1e-3 * np.mean(wanted**2)


def test_columns_of_a_table_have_factors_of_both_signs(tmp_path):
    """Their integers take the signs alone, so that none of 16 bits is lost."""
    weights = {"factors": np.float32([-1, 1, 0]) / np.float32([3, 1, 2])}
    nodes = [node("Mul", "x factors", "y")]
    onnx.save(
        ir.to_proto(graph_of(nodes, {"x": (1, 3)}, weights)),
        tmp_path / "m.onnx",
    )
    feeds = {"x": table() / SIZES}
    wanted = feeds["x"] * weights["factors"]
    errors = answers(mrt.convert(tmp_path / "m.onnx", feeds), feeds) - wanted
    assert np.abs(errors).max() < 2**-14


def test_numbers_of_rows_of_a_table_are_integers_of_their_own(tmp_path):
    rows = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
    nodes = [
        node("Cast", "x", "number", to=TensorProto.INT64),
        node("Gather", "rows number", "y", axis=0),
    ]
    graph = graph_of(nodes, {"x": (1, 2)}, {"rows": rows})
    onnx.save(ir.to_proto(graph), tmp_path / "m.onnx")
    feeds = {"x": np.float32(np.arange(40).reshape(20, 2))}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    (item,) = converted.program.program.inputs
    assert (item.lo, item.hi) == (0, 39)
    rewrite(graph)
    assert not compared_inputs(graph.graph, QuantizeOptions()).constants


def compiled_tree(**more):
    """A tree as tensors: what the first column answers looks the next column and its threshold up."""
    weights = {
        "columns": np.array([1, 2]),
        "edges": np.float32([0.5, 0.0005]),
        "first": np.float32([2500.0]),
        "zero": np.array([0]),
        "one": np.array([1]),
        "shape": np.array([1, 1]),
        "row": np.array([1]),
    }
    nodes = [
        node("Slice", "x zero one one", "column"),
        node("LessOrEqual", "column first", "answer"),
        node("Cast", "answer", "place", to=TensorProto.INT64),
        node("Reshape", "place row", "places"),
        node("Gather", "columns places", "next"),
        node("Reshape", "next shape", "index"),
        node("GatherElements", "x index", "number", axis=1),
        node("Gather", "edges places", "edge"),
        node("Reshape", "edge shape", "edge2"),
        *more.get("nodes", [node("LessOrEqual", "number edge2", "left")]),
        node("Cast", "left", "y", to=TensorProto.FLOAT),
    ]
    return graph_of(nodes, {"x": (1, 3)}, weights)


@pytest.mark.parametrize("turned", [False, True])
def test_a_tree_compiled_to_tensors_has_all_bits(turned, tmp_path):
    """One column in 10^7 beside another: each is compared with what is looked up for it."""
    swapped = [node("GreaterOrEqual", "edge2 number", "left")]
    graph = compiled_tree(nodes=swapped) if turned else compiled_tree()
    onnx.save(ir.to_proto(graph), tmp_path / "m.onnx")
    feeds = {"x": table()}
    column = np.where(feeds["x"][:, 0] <= 2500, 2, 1)
    number = feeds["x"][np.arange(ROWS), column]
    wanted = number <= np.where(column == 2, 0.0005, 0.5)
    found = answers(mrt.convert(tmp_path / "m.onnx", feeds), feeds)
    assert np.rint(found.ravel()).astype(bool).tolist() == wanted.tolist()


def test_a_number_equal_to_a_threshold_that_is_looked_up_is_equal(tmp_path):
    graph = compiled_tree()
    onnx.save(ir.to_proto(graph), tmp_path / "m.onnx")
    feeds = {"x": np.float32([[3000, 0.5, 0], [1, 0, 0.0005]] * 8)}
    found = answers(mrt.convert(tmp_path / "m.onnx", feeds), feeds)
    assert np.rint(found).all()


def test_a_threshold_that_others_read_keeps_the_input_narrow():
    """What else reads the table's entry may want another format."""
    more = [
        node("LessOrEqual", "number edge2", "l"),
        node("Mul", "edge2 edge2", "square"),
        node("Greater", "square edge2", "g"),
        node("And", "l g", "left"),
    ]
    found = compared_inputs(compiled_tree(nodes=more).graph, QuantizeOptions())
    assert not found.constants
    (name,) = compared_inputs(
        compiled_tree().graph, QuantizeOptions()
    ).constants
    assert name == "x"


def test_columns_of_one_size_are_scaled_by_the_weights(tmp_path):
    onnx.save(ir.to_proto(scaled(np.ones(3))), tmp_path / "m.onnx")
    feeds = {"x": table() / SIZES}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    (item,) = converted.program.program.inputs
    assert item.type.dtype == "i8"
    names = [item.name for item in converted.program.program.instructions]
    assert "add" not in names


def ladder(levels):
    """A graph of two columns; each level joins a value with itself and cuts it in half again."""
    nodes, last = [], "x"
    for level in range(levels):
        nodes.append(node("Concat", f"{last} {last}", f"c{level}", axis=1))
        nodes.append(node("Slice", f"c{level} zero two one", f"s{level}"))
        last = f"s{level}"
    weights = {
        "zero": np.array([0]),
        "two": np.array([2]),
        "one": np.array([1]),
        "half": np.float32([0.5]),
    }
    nodes.append(node("Greater", f"{last} half", "y"))
    return graph_of(nodes, {"x": (1, 2)}, weights)


def test_values_whose_ways_meet_again_are_visited_once():
    """Of twice as many ways behind each level, 2^24 would take an hour."""
    started = time.process_time()
    found = compared_inputs(ladder(24).graph, QuantizeOptions())
    assert time.process_time() - started < 3
    assert {name: list(of) for name, of in found.constants.items()} == {
        "x": [0.5]
    }
    assert len(found.moved) == 49
