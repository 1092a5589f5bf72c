"""Columns of tables have scales of their own, and programs answer as float does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from cvm.runtime.boundary import quantize_and_count
from mrt.errors import BadModel
from mrt.graph.notes import note_scaled_columns
from mrt.quantize.scaled_tables import product_with_factors
from mrt.rewrite.onnx_file import save
from mrt.rewrite.passes import rewrite
from tests.mrt.quantize.test_compared_inputs import answers
from tests.support.graphs import build, node, run

SIZES = np.array([1.6e9, 0.001, 1.0, 50.0], np.float32)


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
def test_every_comparison_answers_as_in_float(
    operator: str, tmp_path: Path
) -> None:
    thresholds, rows = thresholds_and_rows()
    nodes = [
        node("Gather", "x i", "g", axis=1),
        node(operator, "g t", "b"),
        node("Cast", "b", "c", to=onnx.TensorProto.FLOAT),
        node("MatMul", "c w", "y"),
    ]
    powers = 2.0 ** np.arange(8)
    of_column = np.eye(4, dtype=np.float32)[np.arange(32) // 8]
    weights = {
        "i": np.repeat(np.arange(4), 8),
        "t": thresholds.reshape(-1),
        "w": of_column * powers[np.arange(32) % 8, None].astype(np.float32),
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
    wanted = of_float(proto, rows)
    found = answers(converted, {"x": rows})
    assert np.abs(found - wanted).max() < 0.5


def of_float(proto: onnx.ModelProto, rows: np.ndarray) -> np.ndarray:
    """The answers of onnxruntime, row by row."""
    return np.concatenate([run(proto, {"x": row[None]})["y"] for row in rows])


def scaler_and_product() -> tuple[onnx.ModelProto, np.ndarray]:
    rng = np.random.default_rng(4)
    rows = (rng.normal(3, 1, (96, 4)) * SIZES).astype(np.float32)
    nodes = [
        node("Sub", "x mean", "c"),
        node("Div", "c deviation", "n"),
        node("Gemm", "n w", "y"),
    ]
    weights = {
        "mean": 3 * SIZES,
        "deviation": SIZES,
        "w": rng.normal(size=(4, 3)).astype(np.float32),
    }
    return build(nodes, {"x": (1, 4)}, weights), rows


def decibels(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(
        10 * np.log10((wanted**2).sum() / ((found - wanted) ** 2).sum())
    )


def test_a_scaler_of_raw_columns_keeps_the_small_ones(tmp_path: Path) -> None:
    proto, rows = scaler_and_product()
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows})
    wanted = of_float(proto, rows)
    assert decibels(answers(converted, {"x": rows}), wanted) > 35


def test_weights_of_raw_columns_keep_the_small_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = (rng.uniform(-1, 1, (96, 4)) * SIZES).astype(np.float32)
    weights = {
        "w": rng.uniform(0.5, 1, (4, 3)).astype(np.float32) / SIZES[:, None]
    }
    proto = build([node("Gemm", "x w", "y")], {"x": (1, 4)}, weights)
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows}, bits=8)
    assert [port.dtype for port in converted.program.inputs] == ["i8"]
    wanted = of_float(proto, rows)
    assert decibels(answers(converted, {"x": rows}), wanted) > 30


def test_an_input_of_one_column_has_a_scale_and_no_factors(
    tmp_path: Path,
) -> None:
    nodes = [
        node("Concat", "a b", "x", axis=1),
        node("Greater", "x t", "q"),
        node("Cast", "q", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {"t": np.array([1e6, 1e-3], np.float32)}
    proto = build(nodes, {"a": (1, 1), "b": (1, 1)}, weights)
    onnx.save(proto, tmp_path / "m.onnx")
    rows = np.random.default_rng(6).uniform(0, 2, (64, 2)).astype(np.float32)
    feeds = {"a": rows[:, :1] * np.float32(1e6), "b": rows[:, 1:] / np.float32(1e3)}  # fmt: skip
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    left, right = converted.program.inputs
    assert left.factors is None and right.factors is None
    assert left.scale is not None and right.scale is not None
    assert left.scale / right.scale > 1e8
    wanted = (rows > 1).astype(float)
    assert np.abs(answers(converted, feeds) - wanted).max() < 1e-3


@pytest.mark.parametrize(
    "factors, operator",
    [
        ([1.0, 2.0, 4.0], "Add"),
        ([1.0, -2.0, 4.0], "Mul"),
        ([1.0, 0.0, 4.0], "Mul"),
        ([1.0, np.inf, 4.0], "Mul"),
        ([2.0], "Mul"),
    ],
)
def test_a_note_that_a_file_makes_up_is_not_believed(
    factors: list[float], operator: str
) -> None:
    weights = {"f": np.array(factors, np.float32)}
    nodes = [node(operator, "x f", "p"), node("Sigmoid", "p", "y")]
    model = ir.from_proto(build(nodes, {"x": (1, 3)}, weights))
    note_scaled_columns(model.graph[0].outputs[0])
    assert product_with_factors(model.graph.inputs[0]) is None


def test_numbers_far_beyond_the_thresholds_of_their_column_take_no_steps(
    tmp_path: Path,
) -> None:
    """LightGBM asks whether a number is 0 by the threshold 1e-35."""
    rng = np.random.default_rng(7)
    rows = np.stack([rng.uniform(0, 1e6, 96), rng.uniform(0, 1, 96)], 1)
    rows[::2, 0] = 0
    nodes = [
        node("LessOrEqual", "x t", "q"),
        node("Cast", "q", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {"t": np.array([1.00000001800250948e-35, 0.5], np.float32)}
    onnx.save(build(nodes, {"x": (1, 2)}, weights), tmp_path / "m.onnx")
    feeds = {"x": rows.astype(np.float32)}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    wanted = feeds["x"] <= weights["t"]
    assert np.abs(answers(converted, feeds) - wanted).max() < 1e-3
    quantized = quantize_and_count(converted.program.program, feeds)
    assert not quantized.clipped


@pytest.mark.parametrize("operator", ["Greater", "LessOrEqual"])
def test_a_column_that_is_compared_with_zero_keeps_its_sign(
    operator: str, tmp_path: Path
) -> None:
    nodes = [
        node(operator, "x t", "q"),
        node("Cast", "q", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {"t": np.array([0, 5e-4, 8e8, 0], np.float32)}
    onnx.save(build(nodes, {"x": (1, 4)}, weights), tmp_path / "m.onnx")
    rng = np.random.default_rng(8)
    sizes = np.float32([1e6, 1e-3, 1.6e9, 50])
    rows = (rng.normal(0, 1, (96, 4)) * sizes).astype(np.float32)
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows})
    is_above = rows > weights["t"]
    wanted = is_above if operator == "Greater" else ~is_above
    assert np.abs(answers(converted, {"x": rows}) - wanted).max() < 1e-3


def test_a_number_that_stands_for_a_missing_one_overflows_nothing(
    tmp_path: Path,
) -> None:
    _, rows = scaler_and_product()
    thresholds = {"t": 3 * SIZES}
    nodes = [
        node("Greater", "x t", "q"),
        node("Cast", "q", "y", to=onnx.TensorProto.FLOAT),
    ]
    proto = build(nodes, {"x": (1, 4)}, thresholds)
    onnx.save(proto, tmp_path / "m.onnx")
    rows[::7] = np.finfo(np.float32).min
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows})
    (port,) = converted.program.inputs
    assert port.factors is not None
    wanted = rows > thresholds["t"]
    assert np.abs(answers(converted, {"x": rows}) - wanted).max() < 1e-3


def test_a_state_has_one_scale(tmp_path: Path) -> None:
    """Its next number comes from an output, which has no factors."""
    rng = np.random.default_rng(9)
    recurrent = rng.normal(0, 0.5, (4, 4)).astype(np.float32)
    recurrent[1] *= np.float32(1e-4)
    nodes = [
        node("Gemm", "h u", "a"),
        node("Gemm", "x w", "b"),
        node("Add", "a b", "s"),
        node("Tanh", "s", "y"),
    ]
    weights = {"u": recurrent, "w": np.eye(4, dtype=np.float32)}
    proto = build(nodes, {"x": (1, 4), "h": (1, 4)}, weights)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {
        "x": rng.normal(0, 1, (64, 4)).astype(np.float32),
        "h": rng.uniform(-1, 1, (64, 4)).astype(np.float32),
    }
    converted = mrt.convert(tmp_path / "m.onnx", feeds, states={"h": "y"})
    assert [port.factors for port in converted.program.inputs] == [None, None]


def test_an_index_beyond_the_columns_is_a_bad_model(tmp_path: Path) -> None:
    nodes = [
        node("Gather", "x i", "g", axis=1),
        node("Greater", "g t", "q"),
        node("Cast", "q", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {"i": np.array([0, 7]), "t": np.float32([1, 1e6])}
    onnx.save(build(nodes, {"x": (1, 4)}, weights), tmp_path / "m.onnx")
    rows = np.ones((8, 4), np.float32)
    with pytest.raises(BadModel, match="out of data bounds"):
        mrt.convert(tmp_path / "m.onnx", {"x": rows})


def weighed(path: Path) -> dict[str, np.ndarray]:
    """Write a model that weighs columns, and return rows for it."""
    weights = {"w": np.ones((4, 3), np.float32) / SIZES[:, None]}
    onnx.save(build([node("Gemm", "x w", "y")], {"x": (1, 4)}, weights), path)
    rows = np.random.default_rng(5).uniform(-1, 1, (32, 4)) * SIZES
    return {"x": rows.astype(np.float32)}


@pytest.mark.parametrize("name", ["x", "x.columns"])
def test_bits_of_a_table_are_those_that_products_read(
    name: str, tmp_path: Path
) -> None:
    rows = weighed(tmp_path / "m.onnx")
    config = tmp_path / "c.toml"
    config.write_text(f'[layers."{name}"]\nactivation_bits = 16\n')
    converted = mrt.convert(tmp_path / "m.onnx", rows, config=config)
    (port,) = converted.program.inputs
    assert port.dtype == "i16" and port.factors is not None
    instructions = converted.program.program.instructions
    assert [one.name for one in instructions] == ["dense", "rescale"]


def test_a_rewritten_table_may_become_whole_numbers(
    tmp_path: Path,
) -> None:
    """The file's note of factors stays, and the product is written as any other."""
    rows = weighed(tmp_path / "m.onnx")
    model = ir.load(tmp_path / "m.onnx")
    rewrite(model)
    save(model, tmp_path / "rewritten.onnx")
    whole = {"x": np.round(rows["x"] / SIZES).astype(np.float32)}
    converted = mrt.convert(
        tmp_path / "rewritten.onnx", whole, input_dtype="whole"
    )
    (port,) = converted.program.inputs
    assert port.scale == 1 and port.factors is None


def test_one_scaled_column_beside_raw_ones_keeps_all_of_them(
    tmp_path: Path,
) -> None:
    """As a ColumnTransformer passes on what it does not scale."""
    rng = np.random.default_rng(8)
    rows = (rng.uniform(0, 1, (96, 4)) * SIZES).astype(np.float32)
    nodes = [
        node("Slice", "x zero one axes", "first"),
        node("Slice", "x one four axes", "others"),
        node("Mul", "first inverse", "scaled"),
        node("Concat", "scaled others", "all", axis=1),
        node("Greater", "all t", "b"),
        node("Cast", "b", "y", to=onnx.TensorProto.FLOAT),
    ]
    weights = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "four": np.array([4]),
        "axes": np.array([1]),
        "inverse": np.array([4e-9], np.float32),
        "t": np.array([3, *(0.6 * SIZES[1:])], np.float32),
    }
    proto = build(nodes, {"x": (1, 4)}, weights)
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", {"x": rows})
    assert [port.dtype for port in converted.program.inputs] == ["i32"]
    wanted = of_float(proto, rows)
    assert np.abs(answers(converted, {"x": rows}) - wanted).max() < 1e-3
