"""`mrt convert` measures what it wrote, and prints the verdict beside it."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mrt
from mrt.cli import cli

DIGITS = Path(__file__).resolve().parent.parent.parent / (
    "calibration_data/digits8"
)
MODEL = DIGITS / "resnet_digits8-symbol.json"
DATA = DIGITS / "calibration.npz"


def convert(folder: Path, *words: object):
    out = folder / "p.cvm"
    words = ("convert", MODEL, *words, "-o", out)
    return CliRunner().invoke(cli, [str(word) for word in words])


def verdict_line(output: str) -> str:
    (line,) = [line for line in output.splitlines() if "against float" in line]
    return line.removeprefix("  against float").strip()


def test_a_program_is_measured_on_samples_that_were_not_calibrated_on(
    tmp_path,
):
    found = convert(tmp_path, "--data", DATA, "--samples", 100)
    line = verdict_line(found.stdout)
    assert line.startswith("agreement 32 of 32 held-back samples, SNR 3")
    assert line.endswith(" dB: good")


def test_too_few_bits_are_not_good(tmp_path):
    words = ("--data", DATA, "--samples", 100, "--bits", 2)
    found = convert(tmp_path, *words)
    assert found.exit_code == 0
    assert verdict_line(found.stdout).endswith("dB: useless")


def test_without_data_nothing_is_measured(tmp_path):
    found = convert(tmp_path, "--shape", "data=1,1,8,8")
    assert verdict_line(found.stdout) == "not measured, without samples"


def test_samples_that_cannot_be_read_are_named_and_the_program_is_written(
    tmp_path,
):
    pictures = np.load(DATA)["data"][:40].astype(np.float32)
    pictures[1::2] = np.nan  # --samples 20 takes the others
    np.savez(tmp_path / "d.npz", x=pictures)
    found = convert(tmp_path, "--data", tmp_path / "d.npz", "--samples", 20)
    assert found.exit_code == 0
    line = verdict_line(found.stdout)
    assert line.startswith("not measured: ") and "NaN" in line
    assert (tmp_path / "p.cvm").exists()


@pytest.mark.parametrize(("bits", "word"), [(8, "good"), (2, "useless")])
def test_python_has_the_verdict(bits, word):
    pictures = np.load(DATA)["data"][:40]
    converted = mrt.convert(MODEL, pictures, bits=bits)
    quality = converted.conversion.quality
    assert quality.verdict is not None and quality.verdict.word == word
    assert quality.report is not None and quality.report.samples == 32
