"""`mrt compare` and `mrt evaluate --fail-below` on a real checkpoint."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mrt.cli import cli

DIGITS = (
    Path(__file__).resolve().parent.parent.parent / "calibration_data/digits8"
)
MODEL, TEST = DIGITS / "resnet_digits8-symbol.json", DIGITS / "test.npz"
SHAPE = ("--shape", "data=1,1,8,8")


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "digits.cvm"
    result = mrt(
        "convert",
        MODEL,
        *SHAPE,
        "--data",
        DIGITS / "calibration.npz",
        "--samples",
        30,
        "-o",
        path,
    )
    assert result.exit_code == 0, result.output
    return path


def test_layers_are_listed_worst_first(program):
    result = mrt(
        "compare",
        MODEL,
        program,
        *SHAPE,
        "--data",
        TEST,
        "--samples",
        5,
        "--worst",
        4,
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    worst = [float(line.split()[0]) for line in lines[1:5]]
    assert worst == sorted(worst)
    assert all(15 < decibels < 60 for decibels in worst)
    assert lines[5].endswith("more, all better")


def test_json_holds_every_layer(program):
    words = ("--data", TEST, "--samples", 5, "--json")
    result = mrt("compare", MODEL, program, *SHAPE, *words)
    assert result.exit_code == 0, result.output
    layers = json.loads(result.stdout)["layers"]
    assert layers[-1]["source"] == "res_dense0_fwd"
    assert layers[-1]["dtype"] == "i16"


def test_the_page_that_was_an_option_is_found_elsewhere(program, tmp_path):
    page = tmp_path / "layers.html"
    result = mrt("compare", MODEL, program, "--data", TEST, "--html", page)
    assert result.exit_code == 2
    assert f"mrt report MODEL P.cvm --data D -o {page}" in result.stderr
    assert "--html" not in mrt("compare", "--help").stdout


@pytest.mark.parametrize(
    ("gate", "code"),
    [("agreement=0.9", 0), ("snr_db=200", 1), ("agreement=1.01", 2)],
)
def test_a_gate_decides_the_exit_code(program, gate, code):
    result = mrt(
        "evaluate",
        MODEL,
        program,
        *SHAPE,
        "--data",
        TEST,
        "--samples",
        20,
        "--fail-below",
        gate,
    )
    assert result.exit_code == code, result.output
    assert ("expected at least 200" in result.stderr) == (code == 1)


def test_a_missed_gate_still_prints_the_report(program):
    words = (
        "--data",
        TEST,
        "--samples",
        20,
        "--json",
        "--fail-below",
        "snr_db=200",
    )
    result = mrt("evaluate", MODEL, program, *SHAPE, *words)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["samples"] == 20


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_without_a_program_the_usage_is_said(command):
    result = mrt(command, MODEL, *SHAPE, "--data", TEST)
    assert result.exit_code == 2
    assert f"mrt {command} MODEL P.cvm --data D" in result.stderr
