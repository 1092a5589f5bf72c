"""Columns that only comparisons read have steps of their own where they differ by many powers of ten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from cvm.runtime.boundary import quantize_and_count
from mrt.quantize.compared_columns import (
    ROOM,
    ComparedColumns,
    compared_columns,
)
from mrt.rewrite.passes import rewrite
from mrt.table.table import MeasuredRange
from tests.mrt.quantize.test_compared_inputs import answers
from tests.support.graphs import build, node, run

SIZES = np.array([1.6e9, 0.001, 1.0, 50.0], np.float32)


def columns_of(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], width: int = 4) -> ComparedColumns | None:  # fmt: skip
    model = ir.from_proto(build(nodes, {"x": (1, width)}, weights))
    rewrite(model)
    return compared_columns(model.graph.inputs[0], model.graph)


def kept(columns: ComparedColumns | None) -> list[list[float]]:
    assert columns is not None
    return [sorted(numbers.tolist()) for numbers in columns.thresholds]


def test_thresholds_are_those_of_the_columns_that_are_compared_with_them() -> (
    None
):
    nodes = [
        node("Gather", "x i", "g", axis=1),
        node("Greater", "g t", "a"),
        node("Slice", "x from to axes", "s"),
        node("LessOrEqual", "s one", "b"),
        node("Concat", "a b", "c", axis=1),
        node("Cast", "c", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {
        "i": np.array([3, 0, 3, -4, 1]),
        "t": np.array([5.0, 6.0, 7.0, 8.0, 9.0], np.float32),
        "from": np.array([1]),
        "to": np.array([3]),
        "axes": np.array([1]),
        "one": np.array(1.5, np.float32),
    }
    assert kept(columns_of(nodes, weights)) == [
        [6.0, 8.0],
        [1.5, 9.0],
        [1.5],
        [5.0, 7.0],
    ]


@pytest.mark.parametrize(
    "reader",
    [
        [node("Greater", "x t", "b"), node("Sigmoid", "x", "z")],
        [node("Add", "x t", "z"), node("Greater", "x t", "b")],
        [node("Greater", "x x2", "b"), node("Neg", "x", "x2")],
        [node("Reshape", "x two", "r"), node("Greater", "r t2", "b")],
    ],
    ids=["function", "sum", "computed", "reshaped"],
)
def test_another_reader_leaves_one_scale(reader: list[onnx.NodeProto]) -> None:
    nodes = [*reader, node("Cast", "b", "y", to=onnx.TensorProto.FLOAT)]
    outputs = {name for one in nodes for name in one.output}
    order = sorted(nodes, key=lambda one: any(name in outputs for name in one.input))  # fmt: skip
    weights = {
        "t": np.ones(4, np.float32),
        "two": np.array([2, 2]),
        "t2": np.ones(2, np.float32),
    }
    if outputs >= {"z"}:
        order.append(node("Concat", "y z", "all", axis=1))
    assert columns_of(order, weights) is None


def of_thresholds(*thresholds: float) -> ComparedColumns:
    return ComparedColumns({}, tuple(np.array([one]) for one in thresholds))


def test_a_column_reaches_sixteen_times_its_thresholds_but_not_beyond_the_input() -> None:  # fmt: skip
    measured = MeasuredRange(-1000.0, 1000.0, -1000.0, 1000.0)
    factors = of_thresholds(900.0, 1.0, 0.0, -(2.0**-20)).factors(measured)
    assert factors is not None
    assert (factors * 2048).tolist() == [2048.0, ROOM, 2048.0, ROOM * 2.0**-20]


def test_columns_of_one_size_have_one_scale() -> None:
    measured = MeasuredRange(0.0, 100.0, 0.0, 100.0)
    assert of_thresholds(50.0, 3.0, 0.9).factors(measured) is None
    assert of_thresholds(1.0, 1.0).factors(MeasuredRange(0, 0, 0, 0)) is None


def test_a_threshold_that_is_infinite_or_far_beyond_sets_no_steps() -> None:
    measured = MeasuredRange(0.0, 1.0, 0.0, 1.0)
    factors = of_thresholds(np.inf, 3e38, 1e-6).factors(measured)
    assert factors is not None and factors[:2].tolist() == [1.0, 1.0]


def test_what_every_threshold_is_within_is_endless() -> None:
    measured = MeasuredRange(0.0, 1.0, 0.0, 1.0)
    for thresholds, endless in (
        ((np.inf, 1e-6), True),
        ((3000.0, 1e-6), True),
        ((3e38, 1e-6), False),
    ):
        columns = of_thresholds(*thresholds)
        assert columns.are_endless(measured) is endless
    factors = of_thresholds(4096.0, 1.0).factors(measured)
    assert factors is not None and factors.tolist() == [1.0, 2.0 / 8192]


def thresholds_and_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of all sizes, of which every third number is a threshold or its neighbour among float32s."""
    rng = np.random.default_rng(3)
    thresholds = (rng.uniform(0.3, 0.9, (4, 8)) * SIZES[:, None]).astype(
        np.float32
    )
    rows = (rng.uniform(0, 1, (300, 4)) * SIZES).astype(np.float32)
    near = thresholds[np.arange(4), rng.integers(0, 8, (300, 4))]
    far = np.where(rng.random((300, 4)) < 0.5, -np.inf, np.inf)
    nearest = np.nextafter(near, far.astype(np.float32))
    kind = rng.integers(0, 6, (300, 4))
    return thresholds, np.select([kind == 0, kind == 1], [near, nearest], rows)


@pytest.mark.parametrize(
    "operator", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]
)
def test_every_answer_is_that_of_float(operator: str, tmp_path: Path) -> None:
    thresholds, rows = thresholds_and_rows()
    nodes = [
        node("Gather", "x i", "g", axis=1),
        node(operator, "g t", "b"),
        node("Cast", "b", "c", to=onnx.TensorProto.FLOAT),
        node("MatMul", "c w", "y"),
    ]
    weights = {
        "i": np.repeat(np.arange(4), 8),
        "t": thresholds.reshape(-1),
        "w": (2.0 ** np.arange(8))[np.arange(32) % 8, None].astype(np.float32)
        * np.eye(4, dtype=np.float32)[np.arange(32) // 8],
    }
    proto = build(nodes, {"x": (1, 4)}, weights)
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(
        tmp_path / "m.onnx", {"x": rows[:100]}, weight_bits=15
    )
    (port,) = converted.program.inputs
    assert port.factors is not None and min(port.factors) < 1e-10
    rows[-8:] *= 1e6  # as good as the ends of the interval
    quantized = quantize_and_count(converted.program.program, {"x": rows})
    assert not quantized.clipped
    wanted = np.concatenate([run(proto, {"x": row[None]})["y"] for row in rows])
    found = answers(converted, {"x": rows})
    assert np.abs(found - wanted).max() < 0.5
