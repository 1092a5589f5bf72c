"""`mrt`'s commands and options, each doing what its help says."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from cvm.file import format as cvm_format
from mrt.cli import cli

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data/digits8"
SHAPE = ("--shape", "data=1,1,8,8")
TEST = np.load(DIGITS / "test.npz")


def mrt(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("symbol", "params", "program"),
    [
        ("net-symbol.json", "net-0000.params", "net.cvm"),
        ("net-symbol.json", "net.params", "net.cvm"),
        ("net.json", "net.params", "net.cvm"),
        ("net.json", "net-0012.params", "net.cvm"),
    ],
)
def test_parameters_are_found_beside_the_symbol_and_the_program_is_written_there(
    symbol, params, program, tmp_path
):
    shutil.copy(DIGITS / "resnet_digits8-symbol.json", tmp_path / symbol)
    shutil.copy(DIGITS / "resnet_digits8-0000.params", tmp_path / params)
    mrt("convert", tmp_path / symbol, "--bits", 8, *SHAPE, "--samples", 2)
    assert cvm_format.read(tmp_path / program).inputs[0].name == "data"


def test_the_rewritten_model_answers_as_mxnet_does(tmp_path):
    mrt(
        "rewrite",
        DIGITS / "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        tmp_path / "r.onnx",
    )
    model = onnx.load(tmp_path / "r.onnx")
    assert "BatchNormalization" not in {
        node.op_type for node in model.graph.node
    }
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = np.concatenate(
        [
            session.run(None, {"data": image[None]})[0]
            for image in TEST["data"][:20]
        ]
    )
    assert (
        np.abs(found - TEST["logits"][:20]).max()
        < 1e-4 * np.abs(TEST["logits"]).max()
    )


@pytest.mark.parametrize(
    ("frontend", "some"),
    [
        ("onnx", {"Conv", "Softmax"}),
        ("mxnet", {"Convolution", "SoftmaxOutput"}),
    ],
)
def test_operators_lists_what_can_be_read(frontend, some):
    names = mrt("operators", "--frontend", frontend).split()
    assert some <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize("observer", ["minmax", "percentile", "entropy", "mse"])
def test_a_table_says_which_observer_made_it_and_can_be_used(
    observer, tmp_path
):
    model = DIGITS / "resnet_digits8-symbol.json"
    data = DIGITS / "calibration.npz"
    words = ("--data", data, "--samples", 20, "--observer", observer, *SHAPE)
    mrt("calibrate", model, *words, "-o", tmp_path / "t.json")
    assert (
        json.loads((tmp_path / "t.json").read_text())["options"]["observer"]
        == observer
    )
    mrt(
        "convert",
        model,
        "--table",
        tmp_path / "t.json",
        *SHAPE,
        "-o",
        tmp_path / "from_table.cvm",
    )
    mrt("convert", model, *words, "-o", tmp_path / "direct.cvm")
    assert (tmp_path / "from_table.cvm").read_bytes() == (
        tmp_path / "direct.cvm"
    ).read_bytes()


@pytest.mark.parametrize(
    ("bits", "dtype", "most"),
    [(8, "i8", 127), (5, "i8", 15), (2, "i8", 1), (16, "i16", 32767)],
)
def test_activation_bits_decide_the_input(bits, dtype, most, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        "[preprocessing]\nmean = 0.5\n"
    )  # so that the input is signed
    model = DIGITS / "resnet_digits8-symbol.json"
    data = DIGITS / "calibration.npz"
    words = ("--config", config, "--data", data, "--samples", 10, *SHAPE)
    mrt(
        "convert",
        model,
        *words,
        "--activation-bits",
        bits,
        "-o",
        tmp_path / "p.cvm",
    )
    (item,) = cvm_format.read(tmp_path / "p.cvm").inputs
    assert (item.type.dtype, item.hi) == (dtype, most)


def test_shift_scales_are_powers_of_two(tmp_path):
    config = ROOT / "configs/resnet_digits8.toml"
    mrt(
        "convert",
        "--config",
        config,
        "--scales",
        "shift",
        "-o",
        tmp_path / "p.cvm",
    )
    program = cvm_format.read(tmp_path / "p.cvm")
    multipliers = [
        program.constants[item.operands[1] - program.first_constant]
        for item in program.instructions
        if item.name == "rescale"
    ]
    assert multipliers
    assert {int(m) for array in multipliers for m in array} == {2**30}


def test_one_layer_may_have_its_own_bits(tmp_path):
    config = tmp_path / "c.toml"
    mrt(
        "rewrite",
        DIGITS / "resnet_digits8-symbol.json",
        *SHAPE,
        "-o",
        tmp_path / "r.onnx",
    )
    first = next(
        node.output[0]
        for node in onnx.load(tmp_path / "r.onnx").graph.node
        if node.op_type == "Conv"
    )
    config.write_text(f'[layers."{first}"]\nweight_bits = 3\n')
    mrt(
        "convert",
        DIGITS / "resnet_digits8-symbol.json",
        *SHAPE,
        "--config",
        config,
        "-o",
        tmp_path / "p.cvm",
    )
    weights = [
        c
        for c in cvm_format.read(tmp_path / "p.cvm").constants
        if c.dtype == np.int8 and c.ndim == 4
    ]
    assert [int(np.abs(w.astype(int)).max()) for w in weights] == [3] + [
        127
    ] * (len(weights) - 1)


def test_evaluate_prints_the_promised_keys(tmp_path):
    config = ROOT / "configs/resnet_digits8.toml"
    mrt("convert", "--config", config, "-o", tmp_path / "p.cvm")
    report = json.loads(
        mrt(
            "evaluate",
            "--config",
            config,
            tmp_path / "p.cvm",
            "--samples",
            10,
            "--json",
        )
    )
    promised = {
        "samples",
        "float.top1",
        "float.top5",
        "integer.top1",
        "integer.top5",
        "agreement",
        "snr_db",
    }
    assert promised <= report.keys()
    assert report["samples"] == 10


def test_paths_may_be_relative(tmp_path, monkeypatch):
    for name in ("resnet_digits8-symbol.json", "resnet_digits8-0000.params"):
        shutil.copy(DIGITS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    mrt(
        "convert",
        "resnet_digits8-symbol.json",
        *SHAPE,
        "--samples",
        2,
        "-o",
        "p.cvm",
    )
    assert os.listdir(tmp_path).count("p.cvm") == 1


@pytest.mark.parametrize(
    "command",
    ["convert", "calibrate", "evaluate", "rewrite", "export", "operators"],
)
def test_every_command_has_help_that_fits_a_terminal(command):
    text = mrt(command, "--help")
    assert max(map(len, text.splitlines())) <= 100
    assert "Usage: cli " in text
    assert "\\b" not in text


def test_examples_stand_on_lines_of_their_own():
    assert (
        "\n  mrt convert model-symbol.json --bits 8 --data calibration.npz\n"
        in mrt("convert", "--help").replace("    mrt", "  mrt")
    )


def test_evaluate_takes_what_onnxruntime_refuses_automatic_pads_beside_dilations(
    tmp_path,
):
    weights = helper.make_tensor(
        "w",
        TensorProto.FLOAT,
        [2, 1, 3, 3],
        np.arange(18, dtype=np.float32) / 9 - 1,
    )
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], "c", auto_pad="SAME_UPPER", dilations=[2, 2]
    )
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", [1, 1, 6, 6]), ("y", [1, 2, 6, 6]))
    ]
    graph = helper.make_graph([node], "g", values[:1], values[1:], [weights])
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
        tmp_path / "m.onnx",
    )
    np.save(
        tmp_path / "x.npy",
        np.random.default_rng(0).normal(size=(5, 1, 6, 6)).astype(np.float32),
    )
    mrt("convert", tmp_path / "m.onnx", "--data", tmp_path / "x.npy")
    report = json.loads(
        mrt(
            "evaluate",
            tmp_path / "m.onnx",
            tmp_path / "m.cvm",
            "--data",
            tmp_path / "x.npy",
            "--json",
        )
    )
    assert report["snr_db"] > 30


def test_a_table_may_be_fitted_to_16_bits(tmp_path):
    config = ROOT / "configs/resnet_digits8.toml"
    mrt(
        "calibrate", "--config", config, "--bits", 16, "-o", tmp_path / "t.json"
    )
    words = (
        "--config",
        config,
        "--table",
        tmp_path / "t.json",
        "--activation-bits",
        16,
    )
    mrt("convert", *words, "-o", tmp_path / "p.cvm")
    assert cvm_format.read(tmp_path / "p.cvm").inputs[0].type.dtype == "i16"


def test_a_program_of_another_model_misses_every_gate(tmp_path):
    for name, weight in (("a", 1.0), ("b", 1.000001)):
        graph = helper.make_graph(
            [helper.make_node("Mul", ["x", "w"], ["y"])],
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
            [helper.make_tensor("w", TensorProto.FLOAT, [], [weight])],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)]
        )
        onnx.save(model, tmp_path / f"{name}.onnx")
    np.savez(tmp_path / "d.npz", x=TEST["data"].reshape(-1, 2)[:64] / 255)
    data = ("--data", tmp_path / "d.npz")
    mrt("convert", tmp_path / "a.onnx", *data)
    gate = (tmp_path / "a.cvm", *data, "--fail-below", "snr_db=1")
    mrt("evaluate", tmp_path / "a.onnx", *gate)
    words = [str(word) for word in ("evaluate", tmp_path / "b.onnx", *gate)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 1
    assert "a.cvm was made from another model" in result.stderr
    mrt(*words[:-2])  # without a gate it is a warning
