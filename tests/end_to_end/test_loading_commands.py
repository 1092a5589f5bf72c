"""Choosing parameters and outputs on the command line, and MXNet models as plain ONNX."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner

from cvm.file import format as cvm_format
from mrt.cli import cli
from tests.support.mxnet_files import node, variable, write_symbol
from tests.support.shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data/digits8"
SYMBOL = DIGITS / "resnet_digits8-symbol.json"
PARAMS = DIGITS / "resnet_digits8-0000.params"
SHAPE = ("--shape", "data=1,1,8,8")
TEST = np.load(DIGITS / "test.npz")


def mrt(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def answers(path: Path, x: np.ndarray) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    ).run(None, {"data": x})


@pytest.mark.parametrize("opset", [11, 17, 22])
def test_an_exported_checkpoint_answers_as_mxnet_does_for_any_batch(
    opset, tmp_path
):
    text = mrt(
        "export", SYMBOL, *SHAPE, "--opset", opset, "-o", tmp_path / "m.onnx"
    )
    assert text.startswith(f"wrote {tmp_path / 'm.onnx'}: ")
    assert text.endswith(f", opset {opset}, any batch\n")
    (logits,) = answers(tmp_path / "m.onnx", TEST["data"][:40])
    assert (
        np.abs(logits - TEST["logits"][:40]).max()
        < 1e-4 * np.abs(TEST["logits"]).max()
    )
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_an_exported_model_can_be_converted_in_its_turn(tmp_path):
    mrt("export", SYMBOL, *SHAPE, "-o", tmp_path / "m.onnx")
    mrt("convert", tmp_path / "m.onnx", *SHAPE, "--samples", 2)
    assert (tmp_path / "m.cvm").exists()


def test_a_symbol_alone_converts_with_invented_weights_and_the_same_seed_gives_the_same_program(
    tmp_path,
):
    shutil.copy(SYMBOL, tmp_path / "net-symbol.json")
    for name in ("a", "b"):
        words = (
            "--random-weights",
            7,
            "--samples",
            2,
            "-o",
            tmp_path / f"{name}.cvm",
        )
        mrt("convert", tmp_path / "net-symbol.json", *SHAPE, *words)
    assert (tmp_path / "a.cvm").read_bytes() == (
        tmp_path / "b.cvm"
    ).read_bytes()
    text = mrt("convert", tmp_path / "net-symbol.json", *SHAPE, code=2)
    assert "no parameters found" in text
    assert "--random-weights SEED" in text


def test_the_epoch_is_chosen_by_number(tmp_path):
    shutil.copy(SYMBOL, tmp_path / "net-symbol.json")
    shutil.copy(PARAMS, tmp_path / "net-0004.params")
    (tmp_path / "net-0005.params").write_bytes(b"nonsense")
    mrt(
        "rewrite",
        tmp_path / "net-symbol.json",
        *SHAPE,
        "--epoch",
        4,
        "-o",
        tmp_path / "r.onnx",
    )
    text = mrt(
        "rewrite",
        tmp_path / "net-symbol.json",
        *SHAPE,
        "-o",
        tmp_path / "r.onnx",
        code=2,
    )
    assert (
        "net-0004.params, net-0005.params; choose one with --params, or with --epoch N"
        in text
    )


def test_options_for_weights_win_over_the_config_and_exclude_one_another(
    tmp_path,
):
    config = tmp_path / "c.toml"
    config.write_text(
        f'[model]\npath = "{SYMBOL}"\nparams = "{PARAMS}"\nshapes = {{ data = [1, 1, 8, 8] }}\n'
    )
    mrt(
        "rewrite",
        "--config",
        config,
        "--random-weights",
        1,
        "-o",
        tmp_path / "r.onnx",
    )
    text = mrt(
        "rewrite",
        "--config",
        config,
        "--random-weights",
        1,
        "--epoch",
        0,
        "-o",
        tmp_path / "r.onnx",
        code=2,
    )
    assert "give one of the two" in text


@pytest.fixture
def network(tmp_path):
    """Convolution, BatchNorm, Relu and a head that cannot be converted."""
    names = ["data", "w", "gamma", "beta", "mean", "var"]
    nodes = [
        variable(
            name, **({"__shape__": "(1, 2, 5, 5)"} if name == "data" else {})
        )
        for name in names
    ]
    nodes += [
        node(
            "Convolution",
            "conv",
            [0, 1],
            kernel="(3, 3)",
            num_filter="4",
            no_bias="True",
        ),
        node("BatchNorm", "bn", [6, 2, 3, 4, 5], fix_gamma="False"),
        node("Activation", "relu", [7], act_type="relu"),
        node("Custom", "head", [8]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    return tmp_path / "m.json"


def test_a_program_ends_in_the_values_named(network, tmp_path):
    words = (network, "--random-weights", 1, "--outputs", "relu,conv")
    mrt("convert", *words, "--samples", 2, "-o", tmp_path / "p.cvm")
    assert [
        item.name for item in cvm_format.read(tmp_path / "p.cvm").outputs
    ] == [
        "relu",
        "conv",
    ]
    np.save(
        tmp_path / "x.npy",
        np.random.default_rng(0).normal(size=(3, 2, 5, 5)).astype(np.float32),
    )
    mrt(
        "evaluate",
        network,
        tmp_path / "p.cvm",
        *words[1:],
        "--data",
        tmp_path / "x.npy",
    )
    mrt(
        "calibrate",
        *words,
        "--data",
        tmp_path / "x.npy",
        "-o",
        tmp_path / "t.json",
    )
    mrt(
        "convert",
        *words,
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "q.cvm",
    )
    mrt("export", *words, "-o", tmp_path / "m.onnx")
    names = [
        value.name for value in onnx.load(tmp_path / "m.onnx").graph.output
    ]
    assert names == ["relu", "conv"]


def test_a_wrong_name_lists_close_ones(tmp_path):
    words = ("--outputs", "resnet0_dense0_fw")
    text = mrt(
        "rewrite", SYMBOL, *SHAPE, *words, "-o", tmp_path / "r.onnx", code=2
    )
    names = {item["name"] for item in json.loads(SYMBOL.read_text())["nodes"]}
    shown = text.split("close are ")[1].split(". `mrt")[0].split(", ")
    assert set(shown) <= names | {name for name in shown if "." in name}
    assert "is no node or value of the model" in text


def test_a_value_that_only_the_rewritten_model_has_can_be_an_output(tmp_path):
    mrt("rewrite", SYMBOL, *SHAPE, "-o", tmp_path / "r.onnx")
    values = [
        name
        for item in onnx.load(tmp_path / "r.onnx").graph.node
        for name in item.output
    ]
    sources = {item["name"] for item in json.loads(SYMBOL.read_text())["nodes"]}
    inner = next(name for name in values if name not in sources)
    mrt(
        "rewrite",
        SYMBOL,
        *SHAPE,
        "--outputs",
        inner,
        "-o",
        tmp_path / "cut.onnx",
    )
    assert [
        value.name for value in onnx.load(tmp_path / "cut.onnx").graph.output
    ] == [inner]
    text = mrt(
        "export",
        SYMBOL,
        *SHAPE,
        "--outputs",
        inner,
        "-o",
        tmp_path / "e.onnx",
        code=2,
    )
    assert f"'{inner}' is no node or value" in text


@pytest.mark.parametrize("names", ["", "a,,b", ","])
def test_outputs_are_names_with_commas(names, tmp_path):
    assert "expected names with commas" in mrt(
        "rewrite", SYMBOL, *SHAPE, f"--outputs={names}", "-o", "r.onnx", code=2
    )


ZOO = sorted((SHARED / "mxnet").glob("zoo*/*-symbol.json"))


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "mobilenetv2_0.25",
        "inceptionv3",
        "densenet121",
        "resnet50_v1",
        "mobilenetv3_small",
    ],
)
def test_published_architectures_export_for_any_batch(name, tmp_path):
    (symbol,) = [path for path in ZOO if path.name == f"{name}-symbol.json"]
    size = 299 if name == "inceptionv3" else 224
    words = (
        "--shape",
        f"data=1,3,{size},{size}",
        "--random-weights",
        0,
        "--dynamic-batch",
    )
    assert "any batch" in mrt(
        "export", symbol, *words, "-o", tmp_path / "m.onnx"
    )
