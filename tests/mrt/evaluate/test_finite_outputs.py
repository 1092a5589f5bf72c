"""No program is judged by float outputs that hold NaN or infinity: Log gives them, of numbers that calibration had not."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import mrt
from mrt.calibrate.samples import Samples
from mrt.cli import cli
from mrt.errors import BadData
from mrt.evaluate.finite_outputs import check_finite
from tests.support.graphs import build, node

X = np.random.default_rng(0).uniform(1, 9, (40, 1, 6)).astype(np.float32)
HELD_BACK = 36
ADVICE = (
    "if every sample gives them, mend the model where it makes them, or leave"
)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "m.onnx"
    onnx.save(build([node("Log", "x", "y")], {"x": (1, 6)}), path)
    return str(path)


def data(tmp_path: Path, sample: int, number: float) -> str:
    """The samples, with such a number in two places of one."""
    x, path = X.copy(), tmp_path / f"{number}.npz"
    x[sample, 0, 2:4] = number
    np.savez(path, x=x)
    return str(path)


@pytest.mark.parametrize("number", [-1.0, 0.0], ids=["nan", "infinity"])
@pytest.mark.parametrize(
    "command", ["evaluate --require snr=20", "evaluate --json", "report"]
)
def test_the_sample_and_the_output_are_named(
    model: str, tmp_path: Path, command: str, number: float
) -> None:
    good, bad = data(tmp_path, 7, 2.0), data(tmp_path, 7, number)
    program, page = str(tmp_path / "p.cvm"), tmp_path / "r.html"
    run = CliRunner().invoke
    made = run(cli, ["convert", model, "--data", good, "-o", program])
    assert made.exit_code == 0, made.output
    name, *options = command.split()
    if name == "report":
        options = ["-o", str(page)]
    words = [name, model, program, *options, "--data"]
    assert run(cli, [*words, good]).exit_code == 0
    page.unlink(missing_ok=True)
    result = run(cli, [*words, bad])
    assert result.exit_code == 2
    expected = f"{bad}, sample 7: float's output 'y': 2 of 6 values are NaN or infinite"
    assert expected in result.stderr
    assert ADVICE in result.stderr
    assert result.stdout == "" and not page.exists()


def test_a_program_whose_held_back_samples_give_them_is_kept_and_not_measured(
    model: str, tmp_path: Path
) -> None:
    bad, program = data(tmp_path, HELD_BACK, -1.0), tmp_path / "p.cvm"
    words = ["convert", model, "--data", bad, "-o", str(program)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert program.exists()
    assert "the program was not measured against float: " in result.stderr
    assert (
        f"sample {HELD_BACK}: float's output 'y': 2 of 6 values"
        in result.stderr
    )


def test_a_gate_is_missed_where_nothing_was_measured(
    model: str, tmp_path: Path
) -> None:
    bad = data(tmp_path, HELD_BACK, -1.0)
    words = ["convert", model, "--data", bad, "--require", "snr=20"]
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "p.cvm")])
    assert result.exit_code == 1, result.output


def test_a_file_that_gives_them_where_the_rewritten_model_does_not_is_noted(
    tmp_path: Path,
) -> None:
    """onnxruntime divides by a deviation of 0."""
    nodes = [node("MeanVarianceNormalization", "x", "y", axes=[2, 3])]
    onnx.save(build(nodes, {"x": (1, 2, 3, 3)}), tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(size=(48, 2, 3, 3)).astype(np.float32)
    x[:, 0] = 0
    quality = mrt.convert(tmp_path / "m.onnx", x).conversion.quality
    assert quality.verdict is not None
    (note,) = (it for it in quality.notes() if "rewritten model alone" in it)
    assert "float's output 'y': 9 of 18 values are NaN or infinite" in note


def test_padding_may_hold_them() -> None:
    mask = np.array([[1, 0]], np.int64)
    sample = {"attention_mask": mask}
    samples = Samples(("attention_mask",), 1, None, "rows", lambda: iter(()))
    values = np.array([[[1.0], [np.nan]]], np.float32)
    check_finite(sample, {"y": values}, samples, 0)
    with pytest.raises(BadData, match=r"rows, sample 0: .*'y': 1 of 2 values"):
        check_finite(sample, {"y": values[:, ::-1]}, samples, 0)
