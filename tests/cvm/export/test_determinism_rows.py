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
from tests.determinism import __main__ as command
from tests.determinism import (
    builds,
    c,
    exports,
    library,
    records,
    web,
    worker,
)
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item, all_items
from tests.support import mlir_programs, tosa_programs
from tests.support.web_programs import needs_web

PROGRAM = "networks/005"
FITS_CORTEX = "models/resnet_digits8-7bit-shift"
HERE = {name: kind for name, kind in c.KINDS.items() if not kind.missing}
MACHINES = [
    name for name, machine in web.MACHINES.items() if not machine.missing
]


@cache
def item(name: str = PROGRAM) -> Item:
    (found,) = all_items(name)
    return found


@cache
def fault(name: str = PROGRAM) -> tuple[Program, int]:
    """The program with one bit of one weight changed so that an output changes, and the place of the instruction."""
    program = item(name).program
    right = interpreter.run(validate(program), item(name).sample)
    for place, step in enumerate(program.instructions):
        if step.name != "conv2d":
            continue
        number = step.operands[1] - program.first_constant
        for weight in range(min(program.constants[number].size, 30)):
            wrong = with_bit(program, number, weight)
            found = interpreter.run(validate(wrong), item(name).sample)
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


def sentence(matrix: Matrix, row: str, name: str = PROGRAM) -> str:
    """What the row has against the program."""
    (found,) = [one for one in matrix.rows if one.name == row]
    return found.wrong[name]


def named(place: int, name: str = PROGRAM) -> str:
    number = item(name).program.first_instruction + place
    return f"instruction {place}, %{number} = conv2d, is the first that differs"


def swapped(monkeypatch, module, name: str = PROGRAM) -> int:
    """Let the row receive the wrong program wherever it validates one: all that follows is its own."""
    wrong, place = fault(name)
    right = item(name).program

    def instead(program: Program):
        constants = dict(enumerate(program.constants))
        number = right.instructions[place].operands[1] - right.first_constant
        constants[number] = wrong.constants[number]
        return validate(replace(program, constants=tuple(constants.values())))

    monkeypatch.setattr(module, "validate", instead)
    return place


def assert_found(monkeypatch, module, check, rows, what, name=PROGRAM) -> None:
    """The rows are right; with the wrong program they name the instruction."""
    right, wrong = Matrix(), Matrix()
    check(right, [item(name)], records.load())
    assert right.agrees and {*rows} <= {one.name for one in right.rows}
    place = swapped(monkeypatch, module, name)
    check(wrong, [item(name)], records.load())
    for row in rows:
        assert sentence(wrong, row, name) == f"{what}: {named(place, name)}"


@pytest.mark.parametrize("row", HERE)
def test_a_row_of_c_is_right_and_names_a_fault(monkeypatch, row):
    always = replace(HERE[row], turn=None)
    monkeypatch.setattr(c, "KINDS", {row: always})
    assert_found(monkeypatch, c, c.check, [row], "exported source")


def test_every_program_runs_on_two_emulated_machines_and_a_vector_on_all():
    shared = [kind for kind in c.KINDS.values() if kind.turn is not None]
    (vector,) = all_items("vectors/add")
    for source in range(4):
        assert sum(kind.takes(source, [item()]) for kind in shared) == 2
        assert all(kind.takes(source, [item(), vector]) for kind in shared)


def test_a_compiler_or_emulator_that_is_missing_is_left_out_with_its_name():
    name = "c/s390x, big-endian"
    kind = replace(c.KINDS[name], compiler="no-such-compiler")
    assert kind.missing == "no-such-compiler"
    assert (
        c.Kind("true", (), ("no-such-emulator",)).missing == "no-such-emulator"
    )
    assert shutil.which("true")


@needs_web()
@pytest.mark.parametrize("kind", web.KINDS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_row_of_webassembly_names_a_fault(monkeypatch, kind, machine):
    monkeypatch.setattr(web, "KINDS", {kind: web.KINDS[kind]})
    monkeypatch.setattr(web, "MACHINES", {machine: web.MACHINES[machine]})
    rows = [f"{kind}/{machine}"]
    assert_found(monkeypatch, web, web.check, rows, "exported WebAssembly")


@needs_web()
def test_a_machine_for_webassembly_that_is_missing_is_left_out(monkeypatch):
    absent = replace(web.MACHINES["wasmtime"], missing="wasmtime")
    monkeypatch.setattr(web, "MACHINES", {"wasmtime": absent})
    matrix = Matrix()
    web.check(matrix, [], {})
    assert matrix.skipped == {"web/wasmtime": "this machine has no wasmtime"}


def test_the_row_of_onnxruntime_names_a_fault(monkeypatch):
    check = exports.check_onnx
    assert_found(monkeypatch, exports, check, ["onnxruntime"], "exported ONNX")


def test_the_row_of_xla_names_a_fault(monkeypatch):
    pytest.importorskip("jax", reason="jax is not installed")
    assert_found(monkeypatch, exports, exports.check_xla, ["xla"], "trace")


@pytest.mark.skipif(
    mlir_programs.compiler is None, reason=mlir_programs.NO_IREE
)
def test_the_row_of_iree_names_a_fault(monkeypatch):
    check = exports.check_iree
    assert_found(monkeypatch, exports, check, ["iree"], "exported MLIR")


@pytest.mark.skipif(not tosa_programs.HAS_TOSA, reason=tosa_programs.NO_TOSA)
def test_the_row_of_tosa_names_a_fault(monkeypatch):
    check = exports.check_tosa
    assert_found(monkeypatch, exports, check, ["tosa"], "exported TOSA")


def test_the_row_of_cortex_names_a_fault(monkeypatch):
    check, row = exports.check_cortex, "Cortex's files"
    assert_found(monkeypatch, exports, check, [row], row, FITS_CORTEX)


@pytest.mark.slow  # a checkout that is new compiles the whole engine once more for it
def test_every_row_of_libcvm_names_a_fault(monkeypatch):
    try:
        builds.library()
    except builds.Absent as what:
        pytest.skip(f"there is no {what}")
    rows = [f"libcvm/{threads}" for threads in worker.THREADS]
    check = command.check_library
    assert_found(monkeypatch, library, check, rows, "libcvm")
