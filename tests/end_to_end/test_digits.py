"""The bundled models, through the commands a user types: accuracy, identity of bytes, receipts."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cvm.cli import cli as cvm_cli
from mrt.cli import cli as mrt_cli

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = {
    "resnet_digits8": 0.9916,
    "lenet_digits28": 0.9861,
}  # top-1 of mxnet itself on the 360 held-out digits


def ok(cli, *words) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scales", ["real", "shift"])
def test_eight_bits_lose_at_most_one_digit(name, scales, tmp_path):
    config, program = ROOT / f"configs/{name}.toml", tmp_path / "p.cvm"
    ok(
        mrt_cli,
        "convert",
        "--config",
        config,
        "--bits",
        8,
        "--scales",
        scales,
        "-o",
        program,
    )
    report = json.loads(
        ok(mrt_cli, "evaluate", "--config", config, program, "--json")
    )
    assert report["samples"] == 360
    assert report["float.top1"] == pytest.approx(MODELS[name], abs=1e-4)
    assert (
        report["integer.top1"]
        >= report["float.top1"] - (1.01 if scales == "real" else 4.01) / 360
    )


def test_the_same_model_table_and_options_give_the_same_bytes(tmp_path):
    config = ROOT / "configs/resnet_digits8.toml"
    ok(mrt_cli, "calibrate", "--config", config, "-o", tmp_path / "t.json")
    for name in ("a.cvm", "b.cvm"):
        ok(
            mrt_cli,
            "convert",
            "--config",
            config,
            "--table",
            tmp_path / "t.json",
            "-o",
            tmp_path / name,
        )
    ok(mrt_cli, "convert", "--config", config, "-o", tmp_path / "direct.cvm")
    first = (tmp_path / "a.cvm").read_bytes()
    assert (
        first
        == (tmp_path / "b.cvm").read_bytes()
        == (tmp_path / "direct.cvm").read_bytes()
    )


def test_an_option_on_the_command_line_wins_over_the_config(tmp_path):
    config = ROOT / "configs/resnet_digits8.toml"
    ok(
        mrt_cli,
        "convert",
        "--config",
        config,
        "--weight-bits",
        4,
        "--small-layer-bits",
        4,
        "-o",
        tmp_path / "p.cvm",
    )
    weights = [
        c
        for c in _program(tmp_path / "p.cvm").constants
        if c.dtype == np.int8 and c.ndim == 4
    ]
    assert weights
    assert max(int(np.abs(w.astype(int)).max()) for w in weights) == 7


def test_a_receipt_replays_and_a_changed_input_does_not(tmp_path):
    config, program = ROOT / "configs/resnet_digits8.toml", tmp_path / "p.cvm"
    ok(mrt_cli, "convert", "--config", config, "-o", program)
    images = np.load(ROOT / "calibration_data/digits8/test.npz")["data"][:3]
    np.savez(tmp_path / "x.npz", data=images)
    ok(
        cvm_cli,
        "run",
        program,
        "--input",
        tmp_path / "x.npz",
        "--real",
        "--receipt",
        tmp_path / "r.json",
    )
    ok(
        cvm_cli,
        "replay",
        program,
        tmp_path / "r.json",
        "--input",
        tmp_path / "x.npz",
        "--real",
    )
    images[1] = 0
    np.savez(tmp_path / "x.npz", data=images)
    words = [
        "replay",
        program,
        tmp_path / "r.json",
        "--input",
        tmp_path / "x.npz",
        "--real",
    ]
    result = CliRunner().invoke(cvm_cli, [str(word) for word in words])
    assert result.exit_code == 1
    assert "sample 1" in result.output


def _program(path: Path):
    from cvm.file import format as cvm_format

    return cvm_format.read(path)
