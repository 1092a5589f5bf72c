"""`cvm export`: what it prints, what it writes, and that nothing half-written stays."""

from __future__ import annotations

import json

import pytest

from cvm.file import disk
from cvm.file import format as file_format
from cvm.program import Instruction, Output, Program
from tests.cvm.export.test_c_source import convolution, sums
from tests.support.command import cvm, said

FILES = ["Makefile", "README.md", "main.c", "small.c", "small.h"]


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "small.cvm"
    file_format.write(convolution(), place)
    return place


def test_it_writes_a_folder_and_prints_facts(path, tmp_path):
    result = cvm("export", path, "--to", "c", "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == FILES
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"wrote {tmp_path / 'out'}: small.h, small.c")
    assert lines[1].split() == ["instructions", "3"]
    assert lines[3].split() == ["constant", "bytes", "18"]


def test_bytes_are_written_beside_texts(path, tmp_path):
    result = cvm("export", path, "--to", "onnx", "-o", tmp_path / "out")
    assert result.exit_code == 0
    written = sorted(item.name for item in (tmp_path / "out").iterdir())
    assert written == ["README.md", "sample.npz", "small.onnx", "test.py"]
    assert "instructions" in result.stdout and "nodes" in result.stdout


def test_json_has_the_facts_and_the_files(path, tmp_path):
    result = cvm("export", path, "--to", "c", "-o", tmp_path / "out", "--json")
    content = json.loads(result.stdout)
    assert content["format"] == "cvm-export-1"
    assert content["files"] == FILES
    assert content["facts"]["arena_bytes"] == 64
    assert content["program"] == file_format.program_id(convolution())


def test_an_empty_folder_is_filled_and_a_name_may_be_given(path, tmp_path):
    (tmp_path / "out").mkdir()
    result = cvm(
        "export", path, "--to", "c", "-o", tmp_path / "out", "--name", "Net 1"
    )
    assert result.exit_code == 0
    assert (tmp_path / "out" / "Net_1.c").exists()


def test_a_folder_that_holds_something_is_left_alone(path, tmp_path):
    result = cvm("export", path, "--to", "c", "-o", tmp_path)
    assert (
        said(result, 2)
        == f"{tmp_path}: cannot be written: the folder is not empty"
    )


def test_a_file_is_not_replaced(path):
    result = cvm("export", path, "--to", "c", "-o", path)
    assert said(result, 2) == f"{path}: cannot be written: the file exists"


def test_a_place_in_no_folder_is_refused(path, tmp_path):
    result = cvm("export", path, "--to", "c", "-o", tmp_path / "no" / "out")
    assert "does not exist" in said(result, 2)


def test_a_missing_program_is_named(tmp_path):
    missing = tmp_path / "no.cvm"
    result = cvm("export", missing, "--to", "c", "-o", tmp_path / "out")
    assert said(result, 2) == f"{missing}: No such file or directory"


def test_an_unproven_program_is_refused_and_nothing_is_written(tmp_path):
    proven = sums(("a", "b"), -(2**31), 2**31 - 1)
    unproven = Program(
        proven.inputs, (), (Instruction("add", (0, 1)),), (Output("y", 2),)
    )
    path = tmp_path / "p.cvm"
    file_format.write(unproven, path)
    result = cvm("export", path, "--to", "c", "-o", tmp_path / "out")
    assert "add.fits" in said(result, 1)
    assert [item.name for item in tmp_path.iterdir()] == ["p.cvm"]


def test_nothing_half_written_stays(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        disk.write_folder(tmp_path / "out", {"a": "a", "b": "\ud800"})
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_target_is_refused(path, tmp_path):
    result = cvm("export", path, "--to", "basic", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert (
        "'basic' is not one of 'c', 'concrete', 'cortex', 'cuda', 'mlir', 'onnx', 'r1cs', 'stablehlo', 'tosa', 'web'"
        in result.stderr
    )
