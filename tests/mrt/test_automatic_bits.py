"""Bits that nobody gives: 8, and more where a program with 8 is not good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

import mrt
from mrt.automatic_bits import are_open, take_automatic
from mrt.cli import cli
from mrt.errors import BadOption
from mrt.settings import PLACES

FAR = 100.0


def difference(path: Path, *, size: float) -> Path:
    """The difference of two values that are `size` times as great as what distinguishes them."""
    random = np.random.default_rng(0)
    constants = {
        "great": random.normal(size=(6, 5)).astype(np.float32) * size,
        "small": random.normal(size=(6, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "great"], ["one"]),
        helper.make_node("MatMul", ["x", "small"], ["little"]),
        helper.make_node("Add", ["one", "little"], ["other"]),
        helper.make_node("Relu", ["one"], ["held_one"]),
        helper.make_node("Relu", ["other"], ["held_other"]),
        helper.make_node("Sub", ["held_other", "held_one"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "difference",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [
            numpy_helper.from_array(array, name)
            for name, array in constants.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    x = np.random.default_rng(1).normal(size=(48, 6)).astype(np.float32)
    np.savez(path, x=x)
    return path


def convert(model: Path, data: Path, *options: str) -> Result:
    given = ["convert", str(model), "--data", str(data), *options]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 0, result.output
    return result


def test_more_bits_are_chosen_where_8_are_too_few(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    with_8 = convert(model, data, "--bits", "8")
    assert "what helps: --stream-bits 16" in with_8.output
    assert "was chosen" not in with_8.output
    chosen = convert(model, data)
    assert ": good" in chosen.output
    (note,) = [
        line for line in chosen.output.splitlines() if "was chosen" in line
    ]
    assert "--stream-bits 16 was chosen, since without it: agreement" in note
    assert "times as great (--bits 8 leaves it away)" in note
    given = convert(
        model,
        data,
        "--stream-bits",
        "16",
        "-o",
        str(tmp_path / "given.cvm"),
    )
    assert "was chosen" not in given.output
    assert (tmp_path / "far.cvm").read_bytes() == (
        tmp_path / "given.cvm"
    ).read_bytes()


def test_a_program_that_is_good_stays_as_it_is(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "near.onnx", size=1.0)
    programs = []
    for number, options in enumerate(([], ["--bits", "auto"], ["--bits", "8"])):
        path = tmp_path / f"{number}.cvm"
        result = convert(model, data, *options, "-o", str(path))
        assert ": good" in result.output and "chosen" not in result.output
        programs.append(path.read_bytes())
    assert programs[0] == programs[1] == programs[2]


def test_python_takes_the_word_too(tmp_path: Path, data: Path) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    found = mrt.convert(model, data, bits="auto").conversion
    assert found.config.quantization.activation_bits_of("y") == 16
    assert found.quality.verdict is not None and found.quality.verdict.is_good


def test_automatic_bits_need_samples(tmp_path: Path) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    result = CliRunner().invoke(cli, ["convert", str(model), "--bits", "auto"])
    assert result.exit_code == 2
    assert "--bits auto needs samples to measure on" in result.output
    assert not (tmp_path / "far.cvm").exists()


@pytest.mark.parametrize(
    "options, beside, named",
    [
        ({"weight_bits": 4}, {}, "weight-bits"),
        ({"activation_bits": 8}, {}, "activation-bits"),
        ({}, {"table": "t.json"}, "table"),
        ({}, {"target": "snr"}, "target"),
    ],
)
def test_two_that_decide_the_bits_are_refused(
    options: dict[str, Any], beside: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadOption, match=f"bits: auto, and {named}: give one"):
        take_automatic({"bits": "auto", **options}, **beside)


def test_numbers_of_bits_are_left_where_they_are() -> None:
    options = {"bits": 8}
    assert not take_automatic(options, table="t.json")
    assert options == {"bits": 8}


@pytest.mark.parametrize("name", [*PLACES["quantization"], "config"])
def test_nothing_is_chosen_beside_an_option_of_quantization(name: str) -> None:
    assert are_open({name: None, "samples": 8})
    assert not are_open({name: "given"})


def test_nothing_is_chosen_beside_a_table_or_a_target() -> None:
    assert are_open({}, table=None, target=None)
    assert not are_open({}, table="t.json", target=None)
