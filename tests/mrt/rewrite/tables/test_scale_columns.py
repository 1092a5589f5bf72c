"""Columns of input tables get one size by powers of two, and the float model's numbers stay the same to the last bit."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from mrt.graph.canonical_values import constant_of
from mrt.graph.notes import has_scaled_columns
from mrt.rewrite.passes import rewrite
from mrt.rewrite.tables import scale_columns as module
from mrt.rewrite.tables.column_reads import (
    DEVIATIONS,
    THRESHOLDS,
    ColumnReads,
)
from tests.support.graphs import build, node, run

SIZES = np.float32([2**24, 2**-6, 1.0, 64.0])
Weights = dict[str, np.ndarray]

AS_FLOAT = node("Cast", "b", "y", to=onnx.TensorProto.FLOAT)
COMPARED = [
    node("Gather", "x i", "g", axis=1),
    node("Greater", "g t", "b1"),
    node("Slice", "x from to axes", "s"),
    node("LessOrEqual", "s one", "b2"),
    node("Concat", "b1 b2", "b", axis=1),
    AS_FLOAT,
]
OF_COMPARED: Weights = {
    "i": np.array([3, 0, 3, -4, 1]),
    "t": np.float32([32, 2**29, 20, 2**20, 2**-11]),
    "from": np.array([1]),
    "to": np.array([3]),
    "axes": np.array([1]),
    "one": np.float32(0.5),
}
SCALED = [
    node("Sub", "x mean", "c"),
    node("Div", "c deviation", "n"),
    node("MatMul", "n w", "y"),
]
OF_SCALED: Weights = {
    "mean": SIZES * np.float32([100, 0.5, 0.5, 0.5]),
    "deviation": SIZES / 8,
    "w": np.float32([[1, 2], [3, -4], [0.5, 1], [-2, 2]]),
}
MINMAX = [
    node("Mul", "x a", "m"),
    node("Add", "m b", "n"),
    node("Sigmoid", "n", "y"),
]
OF_MINMAX: Weights = {"a": 1 / SIZES, "b": np.float32([-50, 0, 0, 0])}
WEIGHED = [node("Gemm", "x w", "y")]
OF_WEIGHED: Weights = {
    "w": (np.float32([[1, 1], [0.5, -1], [1, -0.25], [-1, 0.5]]).T / SIZES).T
}
BINNED = [
    node("Slice", "x from to axes", "s"),
    node("Less", "s edges", "b"),
    AS_FLOAT,
]
OF_BINNED: Weights = {
    "from": np.array([1]),
    "to": np.array([2]),
    "axes": np.array([1]),
    "edges": np.float32([2**-8, 2**-6, 2**-9]),
}
SQUARED = [  # naive Bayes by normal distributions
    node("Reshape", "x three", "r"),
    node("Sub", "r means", "c"),
    node("Mul", "c c", "q"),
    node("Div", "q variances", "n"),
    node("ReduceSum", "n last", "y", keepdims=0),
]
OF_SQUARED: Weights = {
    "three": np.array([1, 1, 4]),
    "means": np.stack([SIZES, 2 * SIZES])[None],
    "variances": np.stack([SIZES**2, SIZES**2 / 4])[None],
    "last": np.array([2]),
}
JOINED = [  # some columns scaled, others passed on
    node("Slice", "x zero one axes", "first"),
    node("Sub", "first mean", "c"),
    node("Div", "c deviation", "n"),
    node("Slice", "x one four axes", "others"),
    node("Concat", "n others", "all", axis=1),
    node("Greater", "all t", "b"),
    AS_FLOAT,
]
OF_JOINED: Weights = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "four": np.array([4]),
    "axes": np.array([1]),
    "mean": np.float32([2**23]),
    "deviation": np.float32([2**20]),
    "t": np.float32([2, 2**-7, 2**20, 1]),
}
GRAPHS = {
    "squared": (SQUARED, OF_SQUARED),
    "joined": (JOINED, OF_JOINED),
    "compared": (COMPARED, OF_COMPARED),
    "scaled": (SCALED, OF_SCALED),
    "minmax": (MINMAX, OF_MINMAX),
    "weighed": (WEIGHED, OF_WEIGHED),
}


def rewritten(
    nodes: list[onnx.NodeProto], weights: Weights, **inputs: int
) -> ir.Model:
    shapes = {name: (1, width) for name, width in (inputs or {"x": 4}).items()}
    model = ir.from_proto(build(nodes, shapes, weights))
    rewrite(model)
    return model


def factors_of(model: ir.Model, table: int = 0) -> list[float] | None:
    """The noted factors of an input."""
    (use,) = model.graph.inputs[table].uses()
    if not has_scaled_columns(use.node.outputs[0]):
        return None
    factors = constant_of(use.node.inputs[1])
    assert factors is not None
    return [float(factor) for factor in factors]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_last_bit_of_float_stays(
    graph: tuple[list[onnx.NodeProto], Weights], monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = rewritten(*graph)
    assert factors_of(scaled) is not None
    monkeypatch.setattr(module, "WORTH", np.inf)
    plain = rewritten(*graph)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = (rng.normal(0.5, 0.5, (1, 4)) * SIZES).astype(np.float32)
        with_factors = run(ir.to_proto(scaled), {"x": x})["y"]
        assert with_factors.tobytes() == run(ir.to_proto(plain), {"x": x})["y"].tobytes()  # fmt: skip


@pytest.mark.parametrize(
    "graph, sizes",
    [
        ("compared", THRESHOLDS * np.array([2**29, 0.5, 0.5, 32])),
        ("scaled", SIZES * (np.array([100, 0.5, 0.5, 0.5]) + DEVIATIONS / 8)),
        ("minmax", SIZES * (DEVIATIONS + np.array([50, 0, 0, 0]))),
        ("weighed", SIZES * np.array([1, 2, 1, 1])),
        ("squared", SIZES * (2 + DEVIATIONS)),
    ],
)
def test_a_column_is_as_large_as_its_readers_tell(
    graph: str, sizes: np.ndarray
) -> None:
    powers = 2.0 ** np.ceil(np.log2(sizes))
    expected = (powers.min() / powers).tolist()
    assert factors_of(rewritten(*GRAPHS[graph])) == expected


def test_columns_beside_computed_ones_get_their_size() -> None:
    """The computed one is compared with 2, so that it is taken to reach 32."""
    factors = factors_of(rewritten(*GRAPHS["joined"]))
    assert factors == [2.0**-19, 2.0**8, 2.0**-19, 2.0]


def test_a_computed_column_without_a_size_keeps_its_threshold() -> None:
    weights = {
        **OF_JOINED,
        "one": np.array([2]),
        "mean": np.float32([0, 0]),
        "deviation": np.float32([1, 1]),
        "t": np.float32([np.finfo(np.float32).max, 2, 2**20, 1]),
    }
    model = rewritten(JOINED, weights)
    assert factors_of(model) is not None
    x = np.float32([[1e34, 0, 0, 0]])
    assert run(ir.to_proto(model), {"x": x})["y"][0, 0] == 0


def test_many_thresholds_of_one_column_are_its_own() -> None:
    nodes = [
        *BINNED[:2],
        node("Greater", "x all", "g"),
        node("Concat", "b g", "b2", axis=1),
        node("Cast", "b2", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {**OF_BINNED, "all": np.float32([2**20, 2**-8, 1, 1])}
    factors = factors_of(rewritten(nodes, weights))
    assert factors == [2.0**-26, 1.0, 2.0**-6, 2.0**-6]


def test_a_scaled_column_of_which_many_are_made_is_one_column() -> None:
    nodes = [
        node("Slice", "x from to axes", "s"),
        node("Mul", "s a", "m"),
        node("Add", "m edges", "n"),
        node("Less", "x all", "b"),
        node("Cast", "b", "f", to=onnx.TensorProto.FLOAT),
        node("Concat", "n f", "y", axis=1),
    ]
    weights = {
        **OF_BINNED,
        "a": np.float32([2**10]),
        "all": np.float32([2**20, 1, 1, 1]),
    }
    assert factors_of(rewritten(nodes, weights)) is not None


def random_table(seed: int) -> tuple[list[onnx.NodeProto], Weights]:
    """A graph that moves, shifts, scales, squares, compares and weighs columns at random."""
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    weights: Weights = {}
    widths, outputs = {"x": 4}, list[str]()

    def constant(*shape: int) -> str:
        name = f"c{len(weights)}"
        numbers = rng.normal(size=shape) * 2.0 ** rng.integers(-30, 30, shape)
        weights[name] = numbers.astype(np.float32)
        return name

    def add(operator: str, inputs: str, width: int, **attributes: int) -> str:
        name = f"v{len(nodes)}"
        nodes.append(node(operator, inputs, name, **attributes))
        widths[name] = width
        return name

    def end(value: str) -> None:
        kind, width = rng.integers(0, 4), widths[value]
        if kind == 0:
            flags = add("Less", f"{value} {constant(width)}", width)
            value = add("Cast", flags, width, to=onnx.TensorProto.FLOAT)
            del widths[flags]
        elif kind == 1:
            value = add("Mul", f"{value} {constant(1, width)}", width)
        elif kind == 2:
            value = add("Gemm", f"{value} {constant(width, 3)}", 3)
        else:
            square = add("Mul", f"{value} {value}", width)
            value = add("Mul", f"{square} {constant(width)}", width)
        outputs.append(value)

    for _ in range(rng.integers(2, 7)):
        value = str(rng.choice(list(widths)))
        width, kind = widths[value], rng.integers(0, 4)
        if kind == 0:
            indices = rng.integers(-width, width, rng.integers(1, 6))
            weights[f"c{len(weights)}"] = indices
            operands = f"{value} c{len(weights) - 1}"
            add("Gather", operands, len(indices), axis=1)
        elif kind == 1:
            add("Add", f"{value} {constant(width)}", width)
        elif kind == 2:
            other = str(rng.choice(list(widths)))
            add("Concat", f"{value} {other}", width + widths[other], axis=1)
        else:
            end(value)
    end("x")
    nodes.append(node("Concat", " ".join(outputs), "y", axis=1))
    return nodes, weights


def test_random_tables_keep_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled_ones = 0
    for seed in range(60):
        monkeypatch.setattr(module, "WORTH", 1.0)
        scaled = rewritten(*random_table(seed))
        monkeypatch.setattr(module, "WORTH", np.inf)
        plain = rewritten(*random_table(seed))
        rng = np.random.default_rng(seed)
        for _ in range(5):
            x = rng.normal(size=(1, 4)) * 2.0 ** rng.integers(-30, 30, (1, 4))
            feeds = {"x": x.astype(np.float32)}
            found = run(ir.to_proto(scaled), feeds)["y"]
            assert found.tobytes() == run(ir.to_proto(plain), feeds)["y"].tobytes(), seed  # fmt: skip
        products = [item.outputs[0] for item in scaled.graph]
        scaled_ones += any(map(has_scaled_columns, products))
    assert scaled_ones > 20


def test_a_column_that_nothing_reads_takes_no_steps() -> None:
    weights = {**OF_COMPARED, "i": np.array([1, 0, 1, 0, 1])}
    factors = factors_of(rewritten(COMPARED, weights))
    assert factors is not None
    assert factors[3] == factors[0] * module.UNREAD


@pytest.mark.parametrize("zero", [0.0, -0.0, 1.00000001800250948e-35])
def test_a_column_that_is_compared_with_zero_is_as_large_as_a_flag(
    zero: float,
) -> None:
    thresholds = np.float32([zero, 2**29, zero, 2**20, 2**-11])
    factors = factors_of(rewritten(COMPARED, {**OF_COMPARED, "t": thresholds}))
    assert factors == [2.0**-33, 2.0**-3, 2.0**-3, 1.0]


def test_a_flag_takes_no_steps_from_what_is_multiplied() -> None:
    nodes = [
        node("Slice", "x from to axes", "s"),
        node("Mul", "s a", "m"),
        node("Gather", "x i", "g", axis=1),
        node("Greater", "g zero", "b"),
        node("Cast", "b", "f", to=onnx.TensorProto.FLOAT),
        node("Concat", "m f", "y", axis=1),
    ]
    weights = {
        "from": np.array([0]),
        "to": np.array([2]),
        "axes": np.array([1]),
        "a": np.float32([2**-20, 1]),
        "i": np.array([2]),
        "zero": np.float32([1e-35]),
    }
    factors = factors_of(rewritten(nodes, weights, x=3))
    assert factors == [2.0**-20, 1.0, 2.0**-20]


def test_the_size_of_an_output_is_not_that_of_its_columns() -> None:
    """Two targets, one in thousands and one in thousandths, each of a column of its own."""
    of_two = np.float32([[1e-3, 0], [1e-3, 1e3], [0, 1e3]])
    nodes = [node("Gemm", "x w", "y")]
    assert factors_of(rewritten(nodes, {"w": of_two}, x=3)) is None


def test_tables_that_have_other_readers_are_found_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visits = []
    follow = ColumnReads.follow
    monkeypatch.setattr(
        ColumnReads,
        "follow",
        lambda reads, graph: visits.append(1) or follow(reads, graph),
    )
    names = [f"x{index}" for index in range(20)]
    nodes = [node("Sigmoid", name, f"s_{name}") for name in names]
    joined = " ".join(f"s_{name}" for name in names)
    nodes.append(node("Concat", joined, "y", axis=1))
    rewritten(nodes, {}, **dict.fromkeys(names, 1))
    assert len(visits) == 1


@pytest.mark.parametrize(
    "others",
    [
        [node("Sigmoid", "x", "z")],
        [node("Neg", "x", "z")],
        [node("Softmax", "x", "z")],
        [node("MatMul", "x wide", "z")],
        [node("Mul", "x zero", "z")],
    ],
    ids=["function", "sign", "softmax", "weights beside thresholds", "zero"],
)
def test_another_reader_leaves_a_table_alone(
    others: list[onnx.NodeProto],
) -> None:
    nodes = [
        node("Slice", "x from to axes", "s"),
        node("Greater", "s t", "b"),
        node("Cast", "b", "f", to=onnx.TensorProto.FLOAT),
        *others,
        node("Concat", "f z", "y", axis=1),
    ]
    weights = {
        "from": np.array([0]),
        "to": np.array([2]),
        "axes": np.array([1]),
        "t": np.float32([2**29, 2**-11]),
        "wide": np.ones((4, 3), np.float32),
        "zero": np.float32([1, 0, 1, 1]),
    }
    model = rewritten(nodes, weights)
    uses = model.graph.inputs[0].uses()
    assert not any(has_scaled_columns(use.node.outputs[0]) for use in uses)


def test_columns_of_like_sizes_stay() -> None:
    weights = {**OF_SCALED, "mean": np.zeros(4, np.float32)}
    weights["deviation"] = np.float32([255, 1, 2, 200])
    assert factors_of(rewritten(SCALED, weights)) is None


def test_inputs_that_are_joined_get_one_size_and_others_do_not_count() -> None:
    nodes = [
        node("Concat", "a b", "x", axis=1),
        node("Greater", "x t", "q"),
        node("Cast", "q", "f", to=onnx.TensorProto.FLOAT),
        node("Greater", "c u", "r"),
        node("Cast", "r", "g", to=onnx.TensorProto.FLOAT),
        node("Concat", "f g", "y", axis=1),
    ]
    weights = {"t": np.float32([1024, 0.5]), "u": np.float32([2**-20, 2**-19])}
    model = rewritten(nodes, weights, a=1, b=1, c=2)
    (use,) = model.graph.inputs[1].uses()
    assert use.node.op_type == "Concat"  # of the smallest column
    assert factors_of(model, 0) == [1 / 2048]
    (use,) = model.graph.inputs[2].uses()
    assert use.node.op_type == "Greater"


def test_a_threshold_that_no_number_reaches_tells_nothing() -> None:
    most = float(np.finfo(np.float32).max)
    found = []
    for far in (1.0, most, np.inf):
        thresholds = np.float32([32, 2**29, far, 1, 2**-11])
        weights = {**OF_COMPARED, "t": thresholds}
        found.append(factors_of(rewritten(COMPARED, weights)))
    assert found[0] is not None
    assert found[1] == found[2] == found[0]


def test_the_rewritten_model_stays_as_it_is() -> None:
    model = rewritten(*GRAPHS["compared"])
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    rewrite(model)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before
