"""`mrt show`: what a model holds, whether it would be refused or not."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

from mrt.cli import cli

DIGITS = Path(__file__).resolve().parents[2] / "calibration_data" / "digits8"
SYMBOL = DIGITS / "resnet_digits8-symbol.json"


def show(*words: object) -> Result:
    return CliRunner().invoke(cli, ["show", *map(str, words)])


def save(path: Path, operators: list[str], shape: list[int | str]) -> Path:
    """A chain of operators on one input, after an Add of a weight of 6 numbers in float64."""
    names = ["sum", *(f"v{index}" for index in range(len(operators)))]
    nodes = [helper.make_node("Add", ["x", "w"], ["sum"])]
    nodes += [
        helper.make_node(operator, [names[index]], [names[index + 1]])
        for index, operator in enumerate(operators)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info(names[-1], TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(np.ones((2, 3)), "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.producer_name, model.producer_version = "maker", "1.2"
    onnx.save(model, path)
    return path


def test_a_model_that_converts_is_described(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", ["Identity", "Relu", "Sigmoid"], [1, 2, 3])
    result = show(path)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{path}: ONNX, opset 17, by maker 1.2",
        "  inputs      x: float32 [1,2,3]",
        "  outputs     v2: float32 [1,2,3]",
        "  parameters  6 numbers in 1 tensor, 24 bytes",
        "  operators   4: 1 Add, 1 Identity, 1 Relu, 1 Sigmoid",
        "  rewritten   3: 1 Add, 1 Relu, 1 Sigmoid",
        "",
        "every operator can be converted",
    ]


def test_a_model_that_is_refused_is_described_from_its_file(
    tmp_path: Path,
) -> None:
    path = save(tmp_path / "m.onnx", ["Det"], ["n", 2, 3])
    result = show(path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1:5] == [
        "  inputs      x: float64 [n,2,3]",
        "  outputs     v0: float64 of unknown shape",
        "  parameters  6 numbers in 1 tensor, 48 bytes",
        "  operators   2: 1 Add, 1 Det",
    ]
    assert lines[6] == "cannot be converted as it is:"
    assert any("v0 (Det)" in line for line in lines[7:])


def test_an_open_shape_is_said_and_taken_from_the_data() -> None:
    result = show(SYMBOL)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{SYMBOL}: MXNet symbol, version 1.9.1\n")
    assert "the shape of input 'data' is not known" in result.stdout
    assert "12 BatchNorm, 11 Convolution" in result.stdout
    result = show(SYMBOL, "--data", DIGITS / "test.npz")
    assert result.exit_code == 0
    assert "inputs      data: float32 [1,1,8,8]" in result.stdout


def test_json_has_what_the_text_has(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", ["Det"], ["n", 2, 3])
    result = show(path, "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["inputs"] == [
        {"name": "x", "dtype": "float64", "shape": ["n", 2, 3]}
    ]
    assert facts["parameters"] == {"numbers": 6, "tensors": 1, "size": 48}
    assert facts["operators"] == {"Add": 1, "Det": 1}
    assert "Det" in " ".join(facts["problems"])
    assert facts["rewritten"] == {}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "the file is empty"), (b"\x08junk", "not an ONNX file")],
)
def test_what_is_no_model_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    result = show(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr
