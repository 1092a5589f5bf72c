"""Columns that are taken from a raw table have a format each, made of all bits of the table, whatever reads them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

import mrt
from mrt.errors import Unsupported
from mrt.graph.notes import set_shared_range
from mrt.quantize.compared_inputs import MOST_COLUMNS, compared_inputs
from mrt.quantize.options import QuantizeOptions
from tests.support.answers import answers, expected
from tests.support.graphs import graph_of, node

RNG = np.random.default_rng(4)
WEIGHTS = {
    "one": np.array([1]),
    "three": np.array(3),
    **{f"at{place}": np.array([place]) for place in range(5)},
    "fifty": np.float32(50),
    "twentieth": np.float32(0.05),
    "hundredth": np.float32(0.01),
    "rows": RNG.normal(size=(6, 3)).astype(np.float32),
    "w2": RNG.normal(size=(2, 4)).astype(np.float32),
    "w4": RNG.normal(size=(4, 4)).astype(np.float32),
    "sizes": np.float32([[0.5, 2.0, 40.0, 5000.0]]),
    "middle": np.float32([[0, 0.4, 50, 0]]),
    "inverse": np.float32([[0.3, 3.0, 0.05, 0.001]]),
}
CATEGORY = [
    node("Gather", "x three", "c", axis=1),
    node("Cast", "c", "number", to=TensorProto.INT64),
    node("Gather", "rows number", "row", axis=0),
]
AGE = [
    node("Slice", "x at1 at2 one", "age"),
    node("Sub", "age fifty", "a"),
    node("Mul", "a twentieth", "scaled"),
]
SHARE = node("Slice", "x at0 at1 one", "share")
AMOUNT = node("Slice", "x at2 at3 one", "amount")
LOG, ROOT = node("Log", "amount", "f"), node("Sqrt", "amount", "root")
JOIN, PRODUCT = (
    node("Concat", "f row", "joined", axis=1),
    node("MatMul", "joined w4", "y"),
)
READERS = {
    "log": [*CATEGORY, AMOUNT, LOG, JOIN, PRODUCT],
    "root": [*CATEGORY, AMOUNT, ROOT, node("Mul", "root hundredth", "f"), JOIN, PRODUCT],
    "product": [*CATEGORY, *AGE, SHARE, node("Mul", "scaled share", "f"), JOIN, PRODUCT],
    "matrix": [*AGE, SHARE, node("Concat", "share scaled", "joined", axis=1), node("MatMul", "joined w2", "y")],
    "logs alone": [SHARE, AMOUNT, node("Log", "amount", "l"), node("Log", "share", "s"),
                   node("Concat", "l s", "joined", axis=1), node("MatMul", "joined w2", "y")],
    "moved": [SHARE, node("Gather", "x at2", "row", axis=1), node("Reshape", "row one", "flat"),
              node("Log", "flat", "l"), node("Mul", "l share", "y")],
}  # fmt: skip


def table():
    """Shares, ages, amounts and a category."""
    random = np.random.default_rng(5)
    columns = (
        random.uniform(0.02, 1, 96),
        random.integers(18, 90, 96),
        np.exp(random.normal(10, 1, 96)),
        random.integers(0, 6, 96),
    )
    return {"x": np.stack(columns, 1).astype(np.float32)}


def converted_and_float(nodes, folder, **options):
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 4)}, WEIGHTS))
    onnx.save(proto, folder / "m.onnx")
    return mrt.convert(folder / "m.onnx", table(), **options), proto


@pytest.mark.parametrize("readers", READERS)
def test_each_has_a_format_of_its_own(readers, tmp_path):
    converted, proto = converted_and_float(READERS[readers], tmp_path, bits=8)
    wanted = expected(proto, table())
    noise = np.square(answers(converted, table()) - wanted).sum()
    assert 10 * np.log10(np.square(wanted).sum() / noise) > 30
    (item,) = converted.program.program.inputs
    assert item.type.dtype == "i32"


def test_a_logarithm_joined_with_raw_columns_is_scaled_with_them(tmp_path):
    """The columns behind the Concat have all bits up to the scaler, which is not multiplied into the matrix."""
    nodes = [
        node("Slice", "x at2 at3 one", "amount"),
        node("Log", "amount", "l"),
        node("Slice", "x at0 at2 one", "others"),
        node("Slice", "x at3 at4 one", "c1"),
        node("Concat", "l others c1", "joined", axis=1),
        node("Sub", "joined middle", "centred"),
        node("Mul", "centred inverse", "even"),
        node("MatMul", "even w4", "y"),
    ]
    converted, proto = converted_and_float(
        nodes, tmp_path, activation_bits=16, weight_bits=15
    )
    wanted = expected(proto, table())
    noise = np.square(answers(converted, table()) - wanted).sum()
    assert 10 * np.log10(np.square(wanted).sum() / noise) > 60


@pytest.mark.parametrize("bits", [8, 16])
def test_beside_a_reader_of_all_columns_more_bits_are_no_way_out(
    bits, tmp_path
):
    nodes = [
        *CATEGORY,
        node("MatMul", "x w4", "z"),
        node("Concat", "z row", "y", axis=1),
    ]
    with pytest.raises(
        Unsupported,
        match=r"'c' is held in steps of .*more bits do not help, .*make it an input of its own, of integers",
    ):
        converted_and_float(nodes, tmp_path, activation_bits=bits)


@pytest.mark.parametrize("kind", ["table", "sound", "state"])
def test_pieces_of_sound_and_states_are_not_taken_apart(kind):
    width = 128 if kind == "sound" else MOST_COLUMNS
    nodes = [
        node("Slice", "x at0 at2 one", "a"),
        node("Slice", "x at2 at4 one", "b"),
        node("Mul", "a b", "y"),
    ]
    model = graph_of(nodes, {"x": (1, width)}, WEIGHTS)
    if kind == "state":
        set_shared_range(model.graph.inputs[0], "x")
    inputs = compared_inputs(model.graph, QuantizeOptions())
    assert inputs.moved == ({"x", "a", "b"} if kind == "table" else set())
