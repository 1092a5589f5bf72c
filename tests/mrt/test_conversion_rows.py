"""The rows of `make determinism` that convert: a wrong bit in the table is named, and what is not here is left out."""

from __future__ import annotations

import json
import struct
import sys
from dataclasses import replace

import pytest

from cvm.program import Metadata
from tests.determinism import conversion, programs, pythons, records
from tests.determinism.builds import Absent
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item, all_items

NAME = "models/lenet_digits28-8bit"
SETTING = {"hash seed 1": {"PYTHONHASHSEED": "1"}}


def item() -> Item:
    (found,) = all_items(NAME)
    return found


def row(monkeypatch, *environments) -> Matrix:
    matrix = Matrix()
    monkeypatch.setattr(conversion, "SETTINGS", SETTING)
    conversion.check(matrix, [item()], records.load(), environments)
    return matrix


def with_bit(number: float) -> float:
    """One high bit of the significand is another."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    (found,) = struct.unpack("<d", struct.pack("<Q", bits ^ 1 << 50))
    return found


def test_a_wrong_bit_in_the_table_is_named_by_row_and_instruction(
    monkeypatch, tmp_path
):
    path = programs.TABLES / "lenet_digits28.table.json"
    assert row(monkeypatch).agrees
    table = json.loads(path.read_text(encoding="utf-8"))
    range_ = table["ranges"]["lenet_conv0_relu_fwd"]
    range_[3] = with_bit(range_[3])
    (tmp_path / path.name).write_text(json.dumps(table), encoding="utf-8")
    words = conversion.words_of
    changed = {str(path): str(tmp_path / path.name)}
    monkeypatch.setattr(
        conversion,
        "words_of",
        lambda own: [changed.get(w, w) for w in words(own)],
    )
    found = row(monkeypatch)
    assert [one.name for one in found.rows] == ["conversion/hash seed 1"]
    sentence = found.rows[0].wrong[NAME]
    assert sentence.startswith("conversion: instruction ")
    assert sentence.endswith(" is the first that differs")


def test_other_metadata_is_a_difference(tmp_path):
    program, known = item().program, records.load()[NAME]
    path = tmp_path / "p.cvm"
    conversion.file_format.write(replace(program, metadata=Metadata()), path)
    problem = conversion.problem_of(path, item(), known)
    assert (
        problem
        == "conversion: the program is the recorded one, its metadata is not"
    )


def test_a_process_that_fails_has_every_program_wrong(monkeypatch):
    monkeypatch.setattr(conversion, "words_of", lambda name: ["no-such-model"])
    assert "no-such-model" in row(monkeypatch).rows[0].wrong[NAME]


def test_a_python_that_is_not_here_is_left_out_with_a_sentence(monkeypatch):
    found = row(monkeypatch, pythons.Environment("3.99", "2"))
    assert found.skipped == {
        "conversion/Python 3.99, numpy 2": "this machine has no Python 3.99"
    }


def test_packages_that_cannot_be_had_are_named(monkeypatch, tmp_path):
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setattr(pythons, "ROOT", tmp_path)
    asked = "[project]\ndependencies = []\n"
    (tmp_path / "pyproject.toml").write_text(asked)
    monkeypatch.setattr(pythons, "WORDS", ("--no-index",))
    monkeypatch.setattr(
        pythons.Environment, "_candidates", lambda self: iter([sys.executable])
    )
    with pytest.raises(Absent, match=r"^packages for Python "):
        pythons.Environment(here, "0.1").interpreter()


@pytest.mark.parametrize("text", ["3.12", "numpy", "3.12:2:1", ":2"])
def test_what_is_no_environment_is_refused(text):
    with pytest.raises(ValueError, match="is no Python:numpy"):
        pythons.Environment.parsed(text)
