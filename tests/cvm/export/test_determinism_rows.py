"""One wrong bit in any exported row of `make determinism` is found, and named by its row and its instruction."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cvm.program import Program
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.determinism import c, exports, records
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item, all_items
from tests.support import tosa_programs

PROGRAM = "networks/005"
HERE = {name: kind for name, kind in c.KINDS.items() if not kind.missing}


@cache
def item() -> Item:
    (found,) = all_items(PROGRAM)
    return found


@cache
def fault() -> tuple[Program, int]:
    """The program with one bit of one weight changed so that an output changes, and the place of the instruction."""
    program = item().program
    right = interpreter.run(validate(program), item().sample)
    for place, step in enumerate(program.instructions):
        if step.name != "conv2d":
            continue
        number = step.operands[1] - program.first_constant
        for weight in range(min(program.constants[number].size, 30)):
            wrong = with_bit(program, number, weight)
            found = interpreter.run(validate(wrong), item().sample)
            if any(not np.array_equal(found[n], right[n]) for n in right):
                return wrong, place
    raise AssertionError("no bit shows")


def with_bit(program: Program, number: int, weight: int) -> Program:
    """Change the bit of 64 of a weight of a constant."""
    weights = program.constants[number].copy()
    weights.reshape(-1)[weight] ^= 64
    constants = list(program.constants)
    constants[number] = weights
    return replace(program, constants=tuple(constants))


def sentence(matrix: Matrix, row: str) -> str:
    """What the row has against the program."""
    (found,) = [one for one in matrix.rows if one.name == row]
    return found.wrong[PROGRAM]


def named(place: int) -> str:
    number = item().program.first_instruction + place
    return f"instruction {place}, %{number} = conv2d, is the first that differs"


def swapped(monkeypatch, module, name):
    """Let the row receive the wrong program wherever it validates one: all that follows is its own."""
    wrong, place = fault()
    right = item().program

    def instead(program: Program):
        constants = dict(enumerate(program.constants))
        number = right.instructions[place].operands[1] - right.first_constant
        constants[number] = wrong.constants[number]
        return validate(replace(program, constants=tuple(constants.values())))

    monkeypatch.setattr(module, name, instead)
    return place


@pytest.mark.skipif(not HERE, reason="no C compiler")
def test_a_row_of_c_is_right_and_names_a_fault(monkeypatch):
    monkeypatch.setattr(c, "KINDS", dict(list(HERE.items())[:1]))
    (row,) = c.KINDS
    right, wrong = Matrix(), Matrix()
    c.check(right, [item()], records.load())
    assert right.agrees and right.rows[0].name == row
    place = swapped(monkeypatch, c, "validate")
    c.check(wrong, [item()], records.load())
    assert sentence(wrong, row) == f"exported C: {named(place)}"


def test_a_compiler_or_emulator_that_is_missing_is_left_out_with_its_name():
    name = "c/s390x, big-endian"
    kind = replace(c.KINDS[name], compiler="no-such-compiler")
    assert kind.missing == "no-such-compiler"
    assert (
        c.Kind("true", (), ("no-such-emulator",)).missing == "no-such-emulator"
    )
    assert shutil.which("true")


def test_the_row_of_onnxruntime_names_a_fault(monkeypatch):
    place = swapped(monkeypatch, exports, "validate")
    matrix = Matrix()
    exports.check_onnx(matrix, [item()], records.load())
    assert sentence(matrix, "onnxruntime") == f"exported ONNX: {named(place)}"


def test_the_row_of_xla_names_a_fault(monkeypatch):
    pytest.importorskip("jax", reason="jax is not installed")
    place = swapped(monkeypatch, exports, "validate")
    matrix = Matrix()
    exports.check_xla(matrix, [item()], records.load())
    assert sentence(matrix, "xla") == f"trace: {named(place)}"


@pytest.mark.skipif(not tosa_programs.HAS_TOSA, reason=tosa_programs.NO_TOSA)
def test_the_row_of_tosa_finds_a_fault(monkeypatch):
    right, wrong = Matrix(), Matrix()
    exports.check_tosa(right, [item()], records.load())
    assert right.agrees and right.rows[0].name == "tosa"
    swapped(monkeypatch, exports, "validate")
    exports.check_tosa(wrong, [item()], records.load())
    assert sentence(wrong, "tosa").startswith("exported TOSA: ")
