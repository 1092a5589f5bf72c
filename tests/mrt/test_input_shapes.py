"""The shapes of inputs that a model leaves open come from samples or from a program; a contradiction is refused by name."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from cvm.file import format as cvm_format
from mrt.calibrate.data_shapes import shapes_of_data
from mrt.calibrate.preprocessing import Preprocessing
from mrt.cli import cli
from mrt.errors import BadData
from mrt.graph.open_shapes import BATCH

DIGITS = Path(__file__).resolve().parents[2] / "calibration_data/digits8"


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The digits model and its data, without a config that gives the shape."""
    for path in DIGITS.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def shape_in(data, sizes, layout="as is", **step):
    steps = {"x": Preprocessing(layout=layout, **step)}
    return shapes_of_data(data, {"x": sizes}, steps, {})


@pytest.mark.parametrize(
    ("samples", "sizes", "layout", "shape"),
    [
        ((5, 1, 8, 9), None, "as is", (1, 1, 8, 9)),
        ((5, 3, 8, 9), (None, 3, None, None), "as is", (1, 3, 8, 9)),
        ((5, 8, 9), (None, 1, None, None), "as is", (1, 1, 8, 9)),
        ((5, 1, 7), (None, None), "as is", (1, 7)),
        ((4, 7), (4, None), "as is", (4, 7)),
        ((5, 4, 7), (4, None), "as is", (4, 7)),
        ((5, 8, 9, 3), None, "NHWC", (1, 3, 8, 9)),
        ((5, 1, 8, 9, 3), None, "NHWC", (1, 3, 8, 9)),
        ((5, 8, 9, 3), (1, None, None, 3), "NHWC", (1, 8, 9, 3)),
        ((5, 3, 8, 9), (1, None, None, 3), "NCHW", (1, 8, 9, 3)),
        ((5, 8, 9), None, "HW", (1, 1, 8, 9)),
        ((5, 8, 9), (None, None, None, 1), "HW", (1, 8, 9, 1)),
    ],
)
def test_the_shape_is_that_of_one_sample(
    samples, sizes, layout, shape, tmp_path
):
    np.savez(tmp_path / "d.npz", x=np.zeros(samples, np.float32))
    assert shape_in(tmp_path / "d.npz", sizes, layout) == {"x": shape}


def test_an_input_is_left_alone_if_only_the_number_of_samples_is_open(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 2), np.float32))
    assert shape_in(tmp_path / "d.npz", (None, 7)) == {}


def test_samples_tell_whether_an_open_first_dimension_is_the_batch(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(path, x=np.zeros((5, 7), np.float32))
    assert shape_in(path, (None, 7)) == {"x": (1, 7)}
    np.savez(path, x=np.zeros((5, 3, 7), np.float32))
    assert shape_in(path, (None, 7)) == {"x": (3, 7)}
    assert shape_in(path, (BATCH, 7)) == {}
    assert shape_in(tmp_path / "gone.npz", (None, 7)) == {}


def test_without_an_array_of_its_name_the_only_input_is_refused(tmp_path):
    np.savez(tmp_path / "d.npz", other=np.zeros((5, 2), np.float32))
    with pytest.raises(BadData, match=r"has no array 'x'.*it has other"):
        shape_in(tmp_path / "d.npz", None)


def test_without_an_array_of_its_name_one_of_two_inputs_stays_open(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 2), np.float32))
    steps = dict.fromkeys("xy", Preprocessing(layout="as is"))
    inputs = {"x": None, "y": None}
    found = shapes_of_data(tmp_path / "d.npz", inputs, steps, {})
    assert found == {"x": (1, 2)}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((None, 3, None, None), r"\[1,8,9\] .*'x' \[\?,3,\?,\?\]"),
        ((None, None), r"\[1,8,9\] .*'x' \[\?,\?\]"),
    ],
)
def test_samples_that_contradict_the_model_are_refused_by_name(
    sizes, said, tmp_path
):
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 1, 8, 9), np.float32))
    with pytest.raises(BadData, match=said.replace(",8,9", ", 8, 9")):
        shape_in(tmp_path / "d.npz", sizes)


@pytest.mark.parametrize(
    ("sizes", "mean", "shape"),
    [
        (None, (0.1, 0.2, 0.3), (1, 3, 24, 24)),
        ((None, 1, None, None), (0.0,), (1, 1, 24, 24)),
        ((None, None, None, 3), (0.0,), (1, 24, 24, 3)),
    ],
)
def test_pictures_that_are_cropped_have_the_shape_of_the_crop(
    sizes, mean, shape, tmp_path
):
    assert shape_in(tmp_path, sizes, crop=24, mean=mean) == {"x": shape}


def test_pictures_of_unknown_colours_or_size_leave_an_input_open(tmp_path):
    assert shape_in(tmp_path, None, crop=24) == {}
    assert shape_in(tmp_path, (None, 3, None, None)) == {}


def test_the_commands_of_the_readme_need_no_shape(folder):
    symbol, test = folder / "resnet_digits8-symbol.json", folder / "test.npz"
    program = folder / "resnet_digits8.cvm"
    words = ("--bits", 8, "--data", folder / "calibration.npz")
    result = mrt("convert", symbol, *words, "--samples", 8, "--refine", "none")
    assert result.exit_code == 0, result.output
    assert cvm_format.read(program).inputs[0].type.shape == (1, 1, 8, 8)
    for command in ("evaluate", "compare"):
        result = mrt(command, symbol, program, "--data", test, "--samples", 4)
        assert result.exit_code == 0, result.output
    for source in (test, program):
        result = mrt(
            "export", symbol, "--data", source, "-o", folder / "m.onnx"
        )
        assert result.exit_code == 0, result.output
        assert "any batch" in result.output
        (graph_input,) = onnx.load(folder / "m.onnx").graph.input
        sizes = graph_input.type.tensor_type.shape.dim
        assert [size.dim_value for size in sizes] == [0, 1, 8, 8]


def test_a_config_that_names_the_data_needs_no_shape_either(folder):
    (folder / "c.toml").write_text(
        '[model]\npath = "resnet_digits8-symbol.json"\n'
        '[calibration]\ndata = "calibration.npz"\n'
    )
    result = mrt(
        "rewrite", "--config", folder / "c.toml", "-o", folder / "r.onnx"
    )
    assert result.exit_code == 0, result.output


def test_the_refusal_names_both_ways_to_give_a_shape(folder):
    symbol = folder / "resnet_digits8-symbol.json"
    for words in (("export",), ("rewrite",), ("convert",)):
        result = mrt(*words, symbol, "-o", folder / "out")
        assert result.exit_code == 2
        assert "add --shape data=1,3,224,224" in result.output
        assert "or --data with samples of it" in result.output
        assert "a folder of pictures needs --crop" in result.output


def open_relu(path: Path) -> Path:
    sizes = [None, "c", "w"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
    )
    onnx.save(helper.make_model(graph), path)
    return path


def test_a_program_has_the_shapes_of_an_onnx_model_its_batch_too(tmp_path):
    model = open_relu(tmp_path / "m.onnx")
    rng = np.random.default_rng(1)
    data = rng.normal(size=(6, 4, 2, 5)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=data)
    files = (model, "--data", tmp_path / "d.npz")
    result = mrt("convert", *files, "--shape", "x=4,2,5")
    assert result.exit_code == 0, result.output
    program = tmp_path / "m.cvm"
    result = mrt("evaluate", model, program, *files[1:])
    assert result.exit_code == 0, result.output
    result = mrt("evaluate", model, program, *files[1:], "--shape", "x=4,1,5")
    assert result.exit_code == 2


def test_a_program_of_another_shape_is_refused_by_name(folder):
    symbol, data = folder / "resnet_digits8-symbol.json", folder / "test.npz"
    words = ("--samples", 2, "--refine", "none")
    assert mrt("convert", symbol, "--data", data, *words).exit_code == 0
    large = np.zeros((2, 1, 16, 16), np.float32)
    np.savez(folder / "large.npz", data=large)
    result = mrt(
        "evaluate",
        symbol,
        folder / "resnet_digits8.cvm",
        *("--data", folder / "large.npz", "--shape", "data=1,1,16,16"),
    )
    assert result.exit_code == 2
    assert (
        "input 'data' is [1, 1, 8, 8] in the program, but [1, 1, 16, 16] in the model"
        in result.output
    )


@pytest.fixture
def table(folder) -> Path:
    """The calibration table of the digits model."""
    path = folder / "table.json"
    words = ("--data", folder / "calibration.npz", "--samples", 4)
    symbol = folder / "resnet_digits8-symbol.json"
    result = mrt("calibrate", symbol, *words, "--refine", "none", "-o", path)
    assert result.exit_code == 0, result.output
    return path


def test_a_table_has_the_shapes_with_which_it_was_made(folder, table):
    symbol, program = folder / "resnet_digits8-symbol.json", folder / "p.cvm"
    result = mrt("convert", symbol, "--table", table, "-o", program)
    assert result.exit_code == 0, result.output
    assert cvm_format.read(program).inputs[0].type.shape == (1, 1, 8, 8)
    for words in (
        ("export", "-o", folder / "m.onnx"),
        ("rewrite", "-o", folder / "r.onnx"),
        ("show",),
    ):
        result = mrt(*words, symbol, "--data", table)
        assert result.exit_code == 0, result.output


def test_a_shape_that_is_given_comes_before_that_of_the_table(folder, table):
    symbol, program = folder / "resnet_digits8-symbol.json", folder / "p.cvm"
    shape = ("--shape", "data=1,1,16,16")
    result = mrt("convert", symbol, "--table", table, *shape, "-o", program)
    assert result.exit_code == 0, result.output
    assert cvm_format.read(program).inputs[0].type.shape == (1, 1, 16, 16)


def test_a_table_without_shapes_makes_the_same_program(folder, table):
    symbol = folder / "resnet_digits8-symbol.json"
    former = json.loads(table.read_text())
    assert former.pop("input_shapes") == {"data": [1, 1, 8, 8]}
    (folder / "former.json").write_text(json.dumps(former))
    shape = ("--shape", "data=1,1,8,8")
    for name, words in (("table", ()), ("former", shape)):
        files = ("--table", folder / f"{name}.json", "-o", folder / name)
        result = mrt("convert", symbol, *files, *words)
        assert result.exit_code == 0, result.output
    assert (folder / "table").read_bytes() == (folder / "former").read_bytes()
    result = mrt("convert", symbol, "--table", folder / "former.json")
    assert result.exit_code == 2
    assert "add --shape data=" in result.output
