"""examples/last_layer: trained on shares by SPU, converted, and right on digits that it has not seen."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cvm.cli
import mrt
import mrt.cli
from cvm.secure.environment import spu_python
from tests.support.spu import needs_spu

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "last_layer"
DIGITS = ROOT / "calibration_data" / "digits8"
FEATURES = "res_flatten0_flatten0"


def run(command, *words):
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code == 0, done.output


def features(folder, part):
    """The features of a part of the digits by the integer program, and the classes."""
    path = folder / f"{part}.npz"
    words = ("--input", DIGITS / f"{part}.npz", "--real", "-o", path)
    run(cvm.cli.cli, "run", folder / "features.cvm", *words)
    return np.load(path)[FEATURES].reshape(-1, 48), np.load(
        DIGITS / f"{part}.npz"
    )["y"]


@needs_spu
@pytest.mark.slow
def test_a_last_layer_is_trained_among_parties_and_converted(tmp_path):
    config = ROOT / "configs" / "resnet_digits8.toml"
    program = tmp_path / "features.cvm"
    run(
        mrt.cli.cli,
        "convert",
        "--config",
        config,
        "--outputs",
        FEATURES,
        "-o",
        program,
    )
    seen, classes = features(tmp_path, "calibration")
    np.savez(tmp_path / "labels.npz", y=classes)
    trained, model = tmp_path / "last.npz", tmp_path / "last.onnx"
    words = (tmp_path / "calibration.npz", tmp_path / "labels.npz", trained)
    subprocess.run([spu_python(), EXAMPLE / "train.py", *words], check=True)
    subprocess.run(
        [sys.executable, EXAMPLE / "as_onnx.py", trained, model], check=True
    )
    converted = mrt.convert(str(model), seen.astype(np.float32))
    others, classes = features(tmp_path, "test")
    exe = converted.program
    others = np.clip(others, -5, 5)  # as the program would, with a warning
    scores = exe.run(exe.quantize({"features": others.astype(np.float32)}))[
        "scores"
    ]
    assert (scores.argmax(axis=1) == classes).mean() > 0.98
