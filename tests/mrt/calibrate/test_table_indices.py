"""An index beyond its table is named, with its sample, where the float model cannot be run for it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto

from mrt.calibrate.samples import Samples
from mrt.calibrate.session import FloatSession
from mrt.calibrate.table_indices import naming_the_sample
from mrt.cli import cli
from mrt.errors import BadData, BadModel
from mrt.graph.notes import set_indices
from tests.support.graphs import build, graph_of, node

NODES = [node("Gather", "t ids", "e"), node("MatMul", "e w", "y")]
SHAPES = {"ids": (1, 5)}
RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "t": RANDOM.normal(size=(100, 8)).astype(np.float32),
    "w": RANDOM.normal(size=(8, 3)).astype(np.float32),
}


def written(path: Path, name: str, wrong: dict[int, int]) -> Path:
    """Forty samples of ids of which some, by their place, hold another one."""
    ids = np.random.default_rng(1).integers(0, 100, (40, 1, 5))
    for place, number in wrong.items():
        ids[place, 0, 2] = number
    np.savez(path / name, ids=ids)
    return path / name


def said(place: int, number: int) -> str:
    return (
        f", sample {place}: input 'ids' holds {number}, which is looked up in a table of 100 rows: "
        "expected -100..99. Make the samples by the tokenizer"
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(build(NODES, SHAPES, WEIGHTS, kind=TensorProto.INT64), path)
    return path


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.mark.parametrize("number", [120, 100, -101, 1234567])
def test_the_sample_of_such_an_index_is_named(
    tmp_path: Path, model: Path, number: int
) -> None:
    """Sample 7 of the file, of which others are held back."""
    data = written(tmp_path, "d.npz", {7: number})
    code, output = run("convert", model, "--data", data)
    assert code == 2
    assert f"{data}{said(7, number)}" in output


def test_it_is_named_where_a_program_is_measured(
    tmp_path: Path, model: Path
) -> None:
    good, program = written(tmp_path, "good.npz", {}), tmp_path / "p.cvm"
    code, output = run("convert", model, "--data", good, "-o", program)
    assert code == 0, output
    data = written(tmp_path, "d.npz", {9: 120, 30: 130})
    code, output = run("evaluate", model, program, "--data", data)
    assert code == 2
    assert f"{data}{said(9, 120)}" in output


def test_indices_at_the_ends_of_the_table_are_right(
    tmp_path: Path, model: Path
) -> None:
    data = written(tmp_path, "d.npz", {7: -100, 8: 99})
    assert run("convert", model, "--data", data)[0] == 0


def test_an_index_that_the_model_clips_is_no_mistake(tmp_path: Path) -> None:
    clip = [
        node("Clip", "ids low high", "c"),
        node("Gather", "t c", "e"),
        NODES[1],
    ]
    ends = {"low": np.int64(0), "high": np.int64(99)}
    proto = build(clip, SHAPES, {**WEIGHTS, **ends}, kind=TensorProto.INT64)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    data = written(tmp_path, "d.npz", {7: 120})
    code, output = run("convert", path, "--data", data)
    assert code == 0, output


def test_another_failure_keeps_its_own_message() -> None:
    model = graph_of(NODES, SHAPES, WEIGHTS, kind=TensorProto.INT64)
    set_indices(model.graph.inputs[0], (-100, 99))
    wrong_shape = {"ids": np.zeros((1, 6))}
    with pytest.raises(BadModel, match=r"cannot be run: .*imension"):
        FloatSession(model).run(wrong_shape)


def test_a_sample_that_is_no_longer_found_leaves_the_message() -> None:
    model = graph_of(NODES, SHAPES, WEIGHTS, kind=TensorProto.INT64)
    set_indices(model.graph.inputs[0], (-100, 99))
    others = [{"ids": np.zeros((1, 5), np.float32)}]
    samples = Samples(("ids",), 1, None, "d", lambda: iter(others))
    message = "cannot be run: input 'ids' holds 120, which"
    with pytest.raises(BadModel, match=message), naming_the_sample(samples):
        FloatSession(model).run({"ids": np.full((1, 5), 120)})


def test_samples_of_an_error_of_another_kind_are_not_read() -> None:
    def unreadable():
        raise AssertionError

    samples = Samples(("ids",), 1, None, "d", unreadable)
    with pytest.raises(BadData, match="other"), naming_the_sample(samples):
        raise BadData("other")
