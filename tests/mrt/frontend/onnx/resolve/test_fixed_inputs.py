"""--value: an input that is no data becomes a constant, and what hangs on it is decided."""

import numpy as np
import onnx
import pytest
from onnx import parser

from mrt.config import Config, ModelSettings
from mrt.errors import BadModel, BadOption
from mrt.frontend.onnx import read_onnx
from mrt.project import load
from tests.support.graphs import run

RATES = """<ir_version: 9, opset_import: ["" : 17]>
main (float[n, 4] x, int64 sr) => (float[n, 4] y) <int64 wide = {16000}> {
  is_wide = Equal (sr, wide)
  y = If (is_wide) <then_branch = a () => (t) { t = Abs (x) }, else_branch = b () => (t) { t = Neg (x) }>
}"""
X = np.float32([[1, -2, 3, -4]])


def saved(folder, text=RATES):
    onnx.save(parser.parse_model(text), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize(("rate", "expected"), [(16000, np.abs(X)), (8000, -X)])
def test_the_branch_that_the_value_says(rate, expected, tmp_path):
    loaded = load(Config(ModelSettings(saved(tmp_path), values={"sr": rate})))
    assert [value.name for value in loaded.model.graph.inputs] == ["x"]
    assert np.array_equal(run(loaded.model, {"x": X})["y"], expected)
    assert f"input 'sr' is {rate} for good" in loaded.notes[0]


def test_the_models_hash_depends_on_the_value(tmp_path):
    path = saved(tmp_path)
    hashes = {
        load(Config(ModelSettings(path, values={"sr": rate}))).sha256
        for rate in (8000, 16000)
    }
    assert len(hashes) == 2


def test_one_number_fills_an_input_whose_shape_is_given(tmp_path):
    path = saved(tmp_path, """<ir_version: 9, opset_import: ["" : 17]>
      main (float[1, 4] x, float[k] gain) => (float[1, 4] y) { y = Mul (x, gain) }""")  # fmt: skip
    model = read_onnx(path, {"gain": (4,)}, values={"gain": 0.5}).model
    assert np.array_equal(run(model, {"x": X})["y"], X / 2)
    assert model.graph.initializers["gain"].shape == (4,)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"rate": 1.0},
            "--value rate: the model has no input of that name; it has x, sr",
        ),
        (
            {"sr": 0.5},
            "--value sr=0.5: the input is int64, which cannot hold this number",
        ),
        (
            {"sr": 2.0**60},
            r"--value sr=1.15292e\+18: the input is int64, which cannot hold this number",
        ),  # exactly
        (
            {"sr": 1e30},
            r"--value sr=1e\+30: the input is int64, which cannot hold this number",
        ),
        ({"sr": 1.0, "x": 1.0}, "no input is left"),
    ],
)
def test_values_that_cannot_be(values, sentence, tmp_path):
    with pytest.raises(BadModel, match=sentence):
        read_onnx(saved(tmp_path), values=values)


def test_no_more_is_filled_than_a_knob_has(tmp_path):
    with pytest.raises(
        BadModel,
        match="40000 elements; at most 4096 are filled with one number",
    ):
        read_onnx(saved(tmp_path), {"x": (10000, 4)}, values={"x": 1.0})


def test_a_file_so_old_that_weights_are_inputs(tmp_path):
    proto = parser.parse_model(RATES.replace("ir_version: 9", "ir_version: 3"))
    proto.graph.input.append(
        onnx.helper.make_tensor_value_info("wide", onnx.TensorProto.INT64, [])
    )
    onnx.save(proto, tmp_path / "m.onnx")
    assert [
        value.name
        for value in read_onnx(
            tmp_path / "m.onnx", values={"sr": 16000}
        ).model.graph.inputs
    ] == ["x"]


def test_an_input_without_a_shape_takes_the_one_given(tmp_path):
    proto = parser.parse_model(RATES)
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(
        BadModel,
        match=r"--value sr: its shape is not known; add --shape sr=\.\.\.$",
    ):
        read_onnx(tmp_path / "m.onnx", values={"sr": 16000})
    assert read_onnx(
        tmp_path / "m.onnx", {"sr": (1,)}, values={"sr": 16000}
    ).model.graph.initializers["sr"].shape == (1,)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            onnx.TensorProto.FLOAT16,
            "--value sr=70000: the input is float16, which cannot hold this number",
        ),
        (
            onnx.TensorProto.STRING,
            "--value sr=70000: the input is string, which cannot hold this number",
        ),
        (
            onnx.TensorProto.UNDEFINED,
            "--value sr: the input is of element type 0; expected one of numbers",
        ),
    ],
)
def test_types_that_cannot_hold_it(kind, sentence, tmp_path):
    proto = parser.parse_model(RATES)
    proto.graph.input[1].type.tensor_type.elem_type = kind
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(BadModel, match=sentence):
        read_onnx(tmp_path / "m.onnx", values={"sr": 70000.0})


def test_an_input_of_mxnet_stays_open(tmp_path):
    (tmp_path / "m-symbol.json").write_text("{}")
    with pytest.raises(
        BadOption,
        match=r"--value a: only inputs of an \.onnx file become constants",
    ):
        load(
            Config(ModelSettings(tmp_path / "m-symbol.json", values={"a": 1.0}))
        )
