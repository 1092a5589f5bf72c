"""Everything a user can get wrong with `mrt`: one clear line, exit code 2, nothing half-written."""

import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from mrt.cli import cli
from tests.support.graphs import build
from tests.support.mxnet_files import node, variable, write_symbol

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data/digits8"
SHAPE = ("--shape", "data=1,1,8,8")


@pytest.fixture
def folder(tmp_path):
    for name in (
        "resnet_digits8-symbol.json",
        "resnet_digits8-0000.params",
        "calibration.npz",
        "test.npz",
    ):
        shutil.copy(DIGITS / name, tmp_path / name)
    return tmp_path


def refused(folder: Path, *words: str, code: int = 2) -> str:
    """Run in the folder; the message, after checking the code and that no file came or went."""
    before = sorted(folder.rglob("*"))
    here = os.getcwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(cli, list(words))
    finally:
        os.chdir(here)
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert sorted(folder.rglob("*")) == before
    assert "Traceback" not in result.output
    return result.output


def identity_onnx(
    folder: Path,
    operator: str = "Relu",
    weights: np.ndarray | None = None,
    **attributes,
) -> Path:
    names = ["x"] if weights is None else ["x", "w"]
    tensors = [] if weights is None else [numpy_helper.from_array(weights, "w")]
    nodes = [
        helper.make_node(operator, names, ["h"], "first", **attributes),
        helper.make_node("Relu", ["h"], ["y"], "last"),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
    path = folder / "m.onnx"
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
        path,
    )
    return path


def test_no_model_is_named(folder):
    assert "no model is given" in refused(folder, "convert")


def test_a_model_that_is_not_there(folder):
    assert "nothing.onnx" in refused(folder, "convert", "nothing.onnx")


def test_parameters_that_are_missing(folder):
    (folder / "resnet_digits8-0000.params").unlink()
    message = refused(folder, "convert", "resnet_digits8-symbol.json", *SHAPE)
    assert "resnet_digits8.params" in message
    assert "--params" in message


def test_several_parameter_files_are_listed(folder):
    shutil.copy(
        folder / "resnet_digits8-0000.params",
        folder / "resnet_digits8-0007.params",
    )
    message = refused(folder, "convert", "resnet_digits8-symbol.json", *SHAPE)
    assert "resnet_digits8-0000.params" in message
    assert "resnet_digits8-0007.params" in message


def test_an_input_shape_that_nothing_tells(folder):
    assert "--shape data=" in refused(
        folder, "convert", "resnet_digits8-symbol.json"
    )


def test_a_shape_that_does_not_fit_the_model(folder):
    assert "shape" in refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        "--shape",
        "data=1,3,8,8",
    )


@pytest.mark.parametrize(
    "text", ["data", "data=", "=1,2", "data=1,x", "data=0,1", "data=1,-1"]
)
def test_a_shape_option_that_is_no_shape(folder, text):
    assert "expected NAME=1,3,224,224" in refused(
        folder, "convert", "resnet_digits8-symbol.json", "--shape", text
    )


@pytest.mark.parametrize(
    "name", ["resnet_digits8-symbol.json", "resnet_digits8-0000.params"]
)
def test_a_truncated_file(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    assert name in refused(
        folder, "convert", "resnet_digits8-symbol.json", *SHAPE
    )


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_a_folder_in_the_place_of_the_model(folder, name):
    assert f"{name}: is a folder; expected an .onnx file" in refused(
        folder, "convert", name
    )


def test_a_truncated_onnx_file(folder):
    path = identity_onnx(folder, "Add", np.arange(4, dtype=np.float32))
    path.write_bytes(path.read_bytes()[:60])
    assert "m.onnx" in refused(folder, "convert", "m.onnx")


def test_a_text_file_named_onnx(folder):
    (folder / "m.onnx").write_text("hello, I am not a model\n")
    assert "m.onnx" in refused(folder, "convert", "m.onnx")


def test_an_unknown_operator(folder):
    identity_onnx(folder, "Det")
    message = refused(folder, "convert", "m.onnx")
    assert "Det" in message
    assert "first" in message


def test_a_refusal_of_many_operators_prints_the_first_twenty(tmp_path):
    names = ["x", *(f"v{index}" for index in range(59)), "y"]
    nodes = [
        helper.make_node("Det", [old], [new], f"node{new}")
        for old, new in pairwise(names)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(proto, tmp_path / "m.onnx")
    lines = refused(tmp_path, "convert", "m.onnx").splitlines()
    assert lines[0] == "mrt: 60 unsupported:"
    assert "nodev19" in lines[20] and lines[21] == "  and 40 more"
    assert lines[22:] == ["supported operators: mrt operators --frontend onnx"]


def test_nan_weights(folder):
    identity_onnx(folder, "Add", np.array([1, np.nan, 2, 3], np.float32))
    message = refused(folder, "convert", "m.onnx")
    assert "NaN" in message
    assert "'w'" in message


def test_an_empty_folder_of_data(folder):
    (folder / "images").mkdir()
    message = refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--data",
        "images",
    )
    assert "images" in message


def test_data_of_another_shape(folder):
    np.savez(folder / "x.npz", x=np.zeros((5, 1, 9, 9), np.float32))
    message = refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--data",
        "x.npz",
    )
    assert "9" in message
    assert "x.npz" in message


def test_data_with_nan(folder):
    images = np.zeros((3, 1, 8, 8), np.float32)
    images[1, 0, 0, 0] = np.nan
    np.savez(folder / "x.npz", x=images)
    assert "NaN" in refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--data",
        "x.npz",
    )


def test_a_place_that_cannot_be_written(folder):
    words = (
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        "no/such/folder/p.cvm",
    )
    assert "no/such/folder" in refused(folder, *words)


def test_a_result_that_would_replace_the_model(folder):
    words = (
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        "resnet_digits8-symbol.json",
    )
    assert "also an input" in refused(folder, *words)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("convert", "-o"),
        ("convert", "--write-config"),
        ("calibrate", "-o"),
    ],
)
def test_a_result_that_would_replace_the_samples(folder, command, option):
    written = folder / "calibration.npz"
    words = (command, "resnet_digits8-symbol.json", *SHAPE, "--data")
    before = written.read_bytes()
    said = refused(folder, *words, written.name, option, written.name)
    assert "also an input" in said
    assert written.read_bytes() == before


def test_a_program_that_would_replace_a_file_of_another_kind(folder):
    weights = folder / "weights.bin"
    weights.write_bytes(b"numbers")
    words = ("convert", "resnet_digits8-symbol.json", *SHAPE, "-o")
    said = refused(folder, *words, weights.name)
    assert "weights.bin: exists, and is no program" in said
    assert weights.read_bytes() == b"numbers"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("convert", "-o"),
        ("convert", "--write-config"),
        ("convert", "--report"),
        ("calibrate", "-o"),
        ("rewrite", "-o"),
        ("export", "-o"),
        ("probe", "-o"),
    ],
)
def test_a_result_that_would_replace_weights_outside_the_onnx_file(
    folder, command, option
):
    model = onnx.load(
        identity_onnx(folder, "Add", np.arange(4, dtype=np.float32))
    )
    name = "weights.json" if option == "--report" else "weights.bin"
    onnx.save(
        model,
        folder / "m.onnx",
        save_as_external_data=True,
        location=name,
        size_threshold=0,
    )
    before = (folder / name).read_bytes()
    words = (command, "m.onnx")
    if command != "rewrite":
        np.savez(folder / "x.npz", x=np.ones((2, 1, 4), np.float32))
        words = (*words, "--data", "x.npz")
    said = refused(folder, *words, option, name)
    assert f"{name}: cannot be written: it is also an input" in said
    assert (folder / name).read_bytes() == before


def test_names_that_are_not_ascii_are_written_as_utf_8(tmp_path):
    (tmp_path / "größe").mkdir()
    model = identity_onnx(tmp_path / "größe").rename(
        tmp_path / "größe/modèle.onnx"
    )
    np.savez(tmp_path / "größe/x.npz", x=np.ones((8, 4), np.float32))
    words = ["init", str(model), str(tmp_path / "größe/x.npz"), "-o"]
    result = CliRunner().invoke(cli, [*words, str(tmp_path / "own.toml")])
    assert result.exit_code == 0, result.output
    assert "größe/modèle.onnx" in (tmp_path / "own.toml").read_text("utf-8")


def test_a_program_that_would_replace_the_config(folder):
    text = '[model]\npath = "resnet_digits8-symbol.json"\n'
    (folder / "own.toml").write_text(text)
    words = ("convert", "--config", "own.toml", *SHAPE, "-o", "own.toml")
    assert "also an input" in refused(folder, *words)
    assert (folder / "own.toml").read_text() == text


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        (("--bits", "1"), "auto or 2..8"),
        (("--bits", "9"), "2..8 or 16"),
        (("--weight-bits", "0"), "2, 3, 4, 5, 6, 7, 8, 9"),
        (("--weight-bits", "16"), "2, 3, 4, 5, 6, 7, 8, 9"),
        (("--activation-bits", "12"), "2, 3, 4, 5, 6, 7, 8, 16"),
    ],
)
def test_bits_that_no_integer_has_here(folder, option, allowed):
    message = refused(
        folder, "convert", "resnet_digits8-symbol.json", *SHAPE, *option
    )
    assert f"{' '.join(option)}: " in message
    assert allowed in message


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("shapes = { x = [1, 4, 1] }", "shapes.x = [1, 4, 1]: expected 2"),
        ("shapes.a = [1, 1]", "shapes.a = [1, 1]: the model has no input"),
        ("states = { a = 'b' }", "states.a = 'b': the model has no input"),
        ("outputs = ['nowhere']", "outputs = ['nowhere']: 'nowhere' is no"),
        ("epoch = 3", "epoch = 3: an .onnx file holds its own"),
        ("random_weights = 3", "random_weights = 3: an .onnx file holds"),
        ("params = 'a'", "params = '"),
        ("values = { a = 1 }", "values.a = 1.0: the model has no input"),
    ],
)
def test_what_a_config_says_wrong_of_a_model_is_named_as_it_stands_there(
    folder, model, said
):
    """These were named by options that nobody had given."""
    identity_onnx(folder)
    (folder / "c.toml").write_text(f"[model]\npath = 'm.onnx'\n{model}\n")
    answer = refused(folder, "convert", "--config", "c.toml")
    assert f"mrt: c.toml: [model] {said}" in answer
    words = ["show", "--config", str(folder / "c.toml")]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code in (1, 2)
    assert f"c.toml: [model] {said}" in shown.output


def test_what_the_command_line_says_is_named_as_it_stands_there(folder):
    identity_onnx(folder)
    text = "[model]\npath = 'm.onnx'\nshapes = { x = [1, 4, 1] }\n"
    (folder / "c.toml").write_text(text)
    words = ("convert", "--config", "c.toml", "--shape", "x=1,4,2")
    assert "--shape x=1,4,2: expected 2" in refused(folder, *words)


def test_a_config_for_an_input_or_a_layer_that_is_not_there_is_named(folder):
    identity_onnx(folder)
    for table in ("[inputs.a]", "[layers.a]"):
        text = f"[model]\npath = 'm.onnx'\n{table}\n"
        (folder / "c.toml").write_text(text)
        said = refused(folder, "convert", "--config", "c.toml")
        assert f"mrt: c.toml: {table}" in said


def test_a_config_key_that_does_not_exist(folder):
    (folder / "c.toml").write_text("[model]\npth = 'x'\n")
    assert "pth" in refused(folder, "convert", "--config", "c.toml")


def test_a_layer_that_does_not_exist(folder):
    (folder / "c.toml").write_text("[layers.nowhere]\nbits = 4\n")
    assert "'nowhere'" in refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--config",
        "c.toml",
    )


def test_a_table_of_another_model(folder):
    identity_onnx(folder, "Add", np.arange(4, dtype=np.float32))
    np.savez(folder / "x.npz", x=np.ones((2, 1, 4), np.float32))
    done = CliRunner().invoke(
        cli,
        [
            "calibrate",
            str(folder / "m.onnx"),
            "--data",
            str(folder / "x.npz"),
            "-o",
            str(folder / "t.json"),
        ],
    )
    assert done.exit_code == 0, done.output
    message = refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--table",
        "t.json",
    )
    assert "calibrate again" in message


def test_a_table_that_is_none(folder):
    (folder / "t.json").write_text("{}")
    assert "t.json" in refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--table",
        "t.json",
    )


@pytest.mark.parametrize(
    "option",
    [("--refine", "none"), ("--observer", "minmax")],
)
def test_a_table_and_what_it_already_decides(folder, option):
    message = refused(
        folder,
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--table",
        "t.json",
        *option,
    )
    assert (
        f"--table and {option[0]}: the table already says what was seen"
        in message
    )


def test_a_table_fitted_to_another_precision(folder):
    words = (
        "calibrate",
        str(folder / "resnet_digits8-symbol.json"),
        *SHAPE,
        "--data",
        str(folder / "calibration.npz"),
    )
    result = CliRunner().invoke(
        cli, [*words, "--samples", "3", "-o", str(folder / "t.json")]
    )
    assert result.exit_code == 0
    words = (
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--table",
        "t.json",
        "--activation-bits",
        "16",
    )
    message = refused(folder, *words)
    assert (
        "was made with observer mse, bits 8, not with observer mse, bits 16; calibrate again"
        in message
    )


def test_evaluate_without_a_program(folder):
    assert "P.cvm" in refused(folder, "evaluate", "resnet_digits8-symbol.json")


def test_evaluate_a_program_that_is_no_program(folder):
    (folder / "p.cvm").write_text("x")
    assert "p.cvm" in refused(
        folder,
        "evaluate",
        "resnet_digits8-symbol.json",
        "p.cvm",
        *SHAPE,
        "--data",
        "test.npz",
    )


def test_calibrate_without_data(folder):
    assert "--data" in refused(
        folder,
        "calibrate",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        "t.json",
    )


def test_noise_instead_of_data_is_said_loudly(folder):
    words = ["convert", str(folder / "resnet_digits8-symbol.json"), *SHAPE]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    assert "synthetic noise" in result.stderr
    assert (folder / "resnet_digits8.cvm").is_file()


def test_names_of_a_model_neither_command_the_terminal_nor_fill_it(tmp_path):
    nodes = [
        variable("data", __shape__="(1, 4)"),
        node("Evil\x1b[31m", "n\x1b[2J\nmrt: fine" + "x" * 5_000, [0]),
    ]
    write_symbol(tmp_path / "m-symbol.json", nodes)
    said = refused(
        tmp_path,
        "export",
        "m-symbol.json",
        "--random-weights",
        "1",
        "-o",
        "m.onnx",
    )
    assert "\x1b" not in said
    assert r"n\x1b[2J\nmrt: fine" in said
    assert "characters)" in said
    assert len(said) < 1000


def test_a_name_of_a_file_or_an_input_ends_no_line():
    """On a terminal; elsewhere click takes escapes away."""
    name = "\x1b[2J\nwrote a.cvm"
    for words in (
        ["convert", f"{name}.onnx"],
        ["convert", "m.onnx", name],
        ["rewrite", __file__, "--shape", f"{name}=x", "-o", "n.onnx"],
    ):
        result = CliRunner().invoke(cli, words, color=True)
        assert result.exit_code == 2
        assert r"\x1b[2J\nwrote a.cvm" in result.stderr
        assert "\x1b" not in result.stderr
        assert "\nwrote" not in result.stderr


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (1025, ["y"], "1025 inputs; a program has at most 1024: join some by a Concat"),
        (1, ["y"] + [f"y{n}" for n in range(1024)], "1025 outputs; a program has at most 1024: choose some with --outputs"),
        (1, ["y" * 257], "has a name of 257 bytes; a program's have at most 256: rename it in the model"),
    ],
)  # fmt: skip
def test_an_interface_that_no_program_has_is_refused(
    tmp_path, inputs, outputs, said
):
    names = [f"x{number}" for number in range(inputs)]
    nodes = [helper.make_node("Concat", names, ["c"], axis=0)]
    nodes += [helper.make_node("Neg", ["c"], [output]) for output in outputs]
    shapes = dict.fromkeys(names, (1, 2))
    model = build(nodes, shapes, outputs=" ".join(outputs))
    onnx.save(model, tmp_path / "m.onnx")
    assert said in refused(tmp_path, "convert", "m.onnx")


def test_links_that_lead_in_a_circle_are_refused(folder):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    for words in (
        ["convert", "a"],
        ["convert", "resnet_digits8-symbol.json", *SHAPE, "-o", "a"],
        ["rewrite", "a", "-o", "b.onnx"],
    ):
        said = refused(folder, *words)
        assert said.endswith("a: Too many levels of symbolic links\n"), said


@pytest.mark.parametrize("command", ["export", "convert", "rewrite"])
def test_parameters_that_are_found_beside_the_model_are_not_written_over(
    folder, command
):
    parameters = folder / "resnet_digits8-0000.params"
    before = parameters.read_bytes()
    said = refused(
        folder,
        command,
        "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        parameters.name,
    )
    assert (
        "resnet_digits8-0000.params: cannot be written: it is also an input"
        in said
    )
    assert parameters.read_bytes() == before
