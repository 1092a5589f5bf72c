"""`cvm diff`, and `cvm verify --expect`: which program a file holds, and what is another in it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.program import Input, Instruction, Metadata, Output, TensorType
from tests.support.command import cvm, said
from tests.support.run_programs import MEANINGS, doubler, save


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PROGRAM = replace(
    doubler(),
    constants=(np.arange(20, dtype=np.int8).reshape(4, 5),),
    instructions=(Instruction("add", (0, 0)),),
    outputs=(Output("y", 2),),
)
ID = file_format.program_id(PROGRAM)


def lines(*changed: object) -> list[str]:
    """What `diff` prints of PROGRAM and the changed one, the ids aside."""
    save(PROGRAM, Path(), "a.cvm")
    save(replace(PROGRAM, **dict(changed)), Path(), "b.cvm")  # type: ignore[arg-type]
    result = cvm("diff", "a.cvm", "b.cvm")
    assert (result.exit_code, result.stderr) == (1, "")
    head, what, one, other, *rest = result.stdout.splitlines()
    assert (head, what) == ("differ:", "  program id")
    assert one == f"    a.cvm  {ID}"
    assert other.startswith("    b.cvm  ") and ID not in other
    return rest


def test_metadata_make_no_difference_but_are_said() -> None:
    save(PROGRAM, Path(), "a.cvm")
    for metadata, remark in (
        (None, ""),
        (Metadata(provenance={"by": "me"}), "; their metadata differ"),
    ):
        save(replace(PROGRAM, metadata=metadata), Path(), "b.cvm")
        result = cvm("diff", "a.cvm", "b.cvm")
        assert (result.exit_code, result.output) == (
            0,
            f"same program: {ID}{remark}\n",
        )


def test_an_input_s_interval_is_shown() -> None:
    x = Input("x", TensorType("i32", (1, 3)), -999, 1000)
    assert lines(("inputs", (x,))) == [
        "  inputs: 1 of 1 differ, number 0 first",
        "    a.cvm  x: i32[1,3] in -1000..1000",
        "    b.cvm  x: i32[1,3] in -999..1000",
    ]


def test_one_weight_is_found_by_its_place() -> None:
    weights = PROGRAM.constants[0].copy()
    weights[2, 3] = 7  # was 13; neither the least nor the greatest
    assert lines(("constants", (weights,))) == [
        "  constants: 1 of 1 differ, number 0 first",
        "    a.cvm  i8[4,5] in 0..19, 20 bytes; 1 of 20 elements differ, [2, 3] is 13",
        "    b.cvm  i8[4,5] in 0..19, 20 bytes; 1 of 20 elements differ, [2, 3] is 7",
    ]


def test_instructions_that_only_one_has_and_other_outputs_are_named() -> None:
    more = (*PROGRAM.instructions, Instruction("abs", (2,)))
    assert lines(("instructions", more), ("outputs", (Output("z", 3),))) == [
        "  instructions: 1 of 1 and 2 differ, number 1 first",
        "    a.cvm  nothing",
        "    b.cvm  abs %2",
        "  outputs: 1 of 1 differ, number 0 first",
        "    a.cvm  y = %2",
        "    b.cvm  z = %3",
    ]


def test_constants_of_other_types_and_equal_numbers_differ() -> None:
    wide = PROGRAM.constants[0].astype(np.int32)
    assert lines(("constants", (wide,)))[1:] == [
        "    a.cvm  i8[4,5] in 0..19, 20 bytes",
        "    b.cvm  i32[4,5] in 0..19, 80 bytes",
    ]


def test_verify_holds_the_expected_id() -> None:
    save(doubler(metadata=MEANINGS), Path())
    own = file_format.program_id(doubler())
    assert cvm("verify", "p.cvm", "--expect", own).exit_code == 0
    other = "0" * 64
    result = cvm("verify", "p.cvm", "--expect", other)
    assert (result.exit_code, result.output) == (
        1,
        f"not the program that is expected, though proven:\n  expected {other}\n  found    {own}\n",
    )
    printed = cvm("verify", "p.cvm", "--expect", other, "--json")
    assert printed.exit_code == 1
    facts = json.loads(printed.stdout)
    assert (facts["proven"], facts["program"]) == (True, own)
    assert facts["expected"] == other


@pytest.mark.parametrize("text", ["", "12", "0" * 63, "0" * 65, "A" * 64])
def test_an_expected_id_that_is_none_is_refused(text: str) -> None:
    save(doubler(), Path())
    result = cvm("verify", "p.cvm", "--expect", text)
    assert result.exit_code == 2
    assert "64 digits of 0-9 and a-f" in " ".join(result.stderr.split())


def test_diff_refuses_what_is_no_program() -> None:
    save(doubler(), Path())
    Path("x.cvm").write_text("no")
    assert said(cvm("diff", "p.cvm", "x.cvm"), 2).startswith("x.cvm: ")
