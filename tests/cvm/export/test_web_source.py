"""What an export to the web is made of, and what it refuses before anything is written."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.web import compiler, facts, folder
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import convolution
from tests.support.command import cvm, said
from tests.support.web_programs import needs_web


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "small.cvm"
    file_format.write(convolution(), place)
    return place


@needs_web()
def test_it_writes_a_package_with_the_program_in_it(path, tmp_path):
    out = tmp_path / "out"
    result = cvm("export", path, "--to", "web", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["target"] == "web"
    package = json.loads((out / "package.json").read_text())
    assert package["type"] == "module"
    assert (out / package["exports"]["."]["types"]).exists()
    assert (out / package["exports"]["."]["default"]).exists()
    assert f"Program {file_format.program_id(convolution())}" in (
        out / "README.md"
    ).read_text().replace("\n", " ")


@needs_web()
def test_an_export_is_the_same_each_time():
    form = validate(convolution())
    one, two = (folder.write(form, "n").files for _ in range(2))
    assert one == two


def test_without_a_compiler_nothing_is_written(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = cvm("export", path, "--to", "web", "-o", tmp_path / "out")
    assert said(result, 2).startswith(
        "the target web needs clang and wasm-ld, to compile to WebAssembly; Debian and Ubuntu: apt install clang lld"
    )
    assert [item.name for item in tmp_path.iterdir()] == ["small.cvm"]


shell = pytest.mark.skipif(os.name == "nt", reason="there is no /bin/sh")


def fake(folder, name, script):
    place = folder / name
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return str(place)


@shell
def test_a_numbered_compiler_is_found(tmp_path, monkeypatch):
    for name in ("clang-14", "clang-19", "wasm-ld", "wasm-ld-19"):
        fake(tmp_path, name, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = compiler.Compiler.find()
    assert found.clang == str(tmp_path / "clang-19")
    assert found.linker == str(tmp_path / "wasm-ld")


@shell
def test_what_a_compiler_refuses_is_one_sentence(tmp_path):
    script = "echo 'error: unable to create target: wasm32' >&2; exit 1"
    clang = fake(tmp_path, "clang", script)
    with pytest.raises(BadInput) as problem:
        compiler.Compiler(clang, clang).build({"a.c": ""})
    assert str(problem.value).startswith(
        f"{clang} failed, and nothing was written: error: unable to create target: wasm32; "
    )


def large(count: int) -> Program:
    """Return a program of one large addition."""
    type_ = TensorType("i32", (count,))
    return Program(
        (Input("x", type_, 0, 9),),
        (np.array([1], np.int32),),
        (Instruction("add", (0, 1)),),
        (Output("y", 2),),
    )


def test_a_program_without_room_in_32_bits_is_refused():
    with pytest.raises(BadInput) as problem:
        folder.c_files(validate(large(2**28 + 1)), "n")
    expected = "the program needs 2,147,483,656 bytes of memory; the target web has 2,147,483,648"
    assert str(problem.value) == expected


def test_a_cost_that_javascript_cannot_hold_is_refused(monkeypatch):
    monkeypatch.setattr(facts, "MOST", 3)
    with pytest.raises(BadInput, match="the target web counts to 3"):
        facts.facts_of(validate(large(1)))
