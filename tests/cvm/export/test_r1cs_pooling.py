"""A rising function before a maximum of windows has rows for the greatest alone; every other function keeps its own."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.export.r1cs import files, pooling
from cvm.export.r1cs.circuit import circuit_of
from cvm.lower import lower
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.cvm.export.test_r1cs import everything, require_right
from tests.support.cvm_programs import random_inputs
from tests.support.r1cs_reader import (
    BN254,
    free_wires,
    read_constraints,
    read_witness,
)

RESCALE = {"input_zp": 0, "output_zp": -128, "dtype": "i8"}
DISJOINT = {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 0, 0, 0)}
OVERLAPPING = {"kernel": (2, 2), "stride": (1, 1), "pad": (0, 0, 0, 0)}
PADDED = {"kernel": (2, 2), "stride": (3, 3), "pad": (1, 0, 1, 0)}


def pooled(window=DISJOINT, turned=False, shown=False) -> Program:
    """Return sums of two channels, rescaled by other numbers, and the greatest of windows."""
    table = np.arange(-128, 128).astype(np.int8)
    if turned:
        table = table[::-1].copy()
    outputs = [Output("y", 6)] + [Output("z", 5)] * shown
    return Program(
        (Input("x", TensorType("i32", (1, 4, 4, 2)), -90_000, 70_000),),
        (
            np.array([1112539136, 2124414976], np.int32),
            np.array([39, 39], np.int8),
            table,
        ),
        (
            Instruction("rescale", (0, 1, 2), RESCALE),  # %4
            Instruction("table", (4, 3)),
            Instruction("max_pool2d", (5,), window),
        ),
        tuple(outputs),
    )


def waiting(program) -> set[int]:
    """Return the maxima for which a function waits."""
    return set(pooling.waiting_of(lower(validate(program)), ()))


@pytest.mark.parametrize("window", [DISJOINT, PADDED])
def test_the_outputs_are_those_of_the_reference(window):
    form = validate(pooled(window))
    assert waiting(form.program) == {6}
    texts = set()
    for seed in range(8):
        sample = random_inputs(form.program, seed)
        if seed % 2:  # many equal ones
            sample["x"] = sample["x"] // 60_000
        require_right(form, sample)
        texts.add(files.r1cs(circuit_of(form, sample, everything(form))))
    assert len(texts) == 1


def test_every_wire_matters():
    """But for pixels that are not the greatest: other inputs may have the same outputs."""
    form = validate(pooled())
    for seed in (3, 4):
        sample = random_inputs(form.program, seed)
        made = circuit_of(form, sample, everything(form))
        found = read_constraints(files.r1cs(made))
        witness = read_witness(files.witness(made))
        other = int(np.random.RandomState(9).randint(2**31)) ** 8 % BN254
        free = set(free_wires(found, witness, [other]))
        assert free <= set(range(10 + 8, 10 + 8 + 32))
        assert len(free) < 24


def rows_of(program):
    form = validate(program)
    sample = random_inputs(form.program, 0)
    return circuit_of(form, sample, everything(form)).system.rows


def test_a_function_waits_where_that_takes_fewer_rows(monkeypatch):
    fewer = rows_of(pooled())
    monkeypatch.setattr(pooling, "waiting_of", lambda *_: {})
    more = rows_of(pooled())
    # 24 pixels of 32 less; three differences of 18 bits in place of 8, for 8.
    assert more - fewer > 24 * 18 - 8 * 3 * (18 - 8)


def test_windows_that_overlap_would_take_more():
    assert waiting(pooled(OVERLAPPING)) == set()


def test_a_function_that_falls_does_not_wait():
    """The greatest of f(x) is f of the least x then."""
    program = pooled(turned=True)
    assert waiting(program) == set()
    form = validate(program)
    require_right(form, random_inputs(form.program, 1))


def test_a_function_that_others_read_does_not_wait():
    assert waiting(pooled(shown=True)) == set()


def test_a_function_whose_rows_prove_its_argument_does_not_wait():
    """Such as that of a sum of two rescales that are spared their bits (`spared.py`)."""
    lowering = lower(validate(pooled()))
    assert set(pooling.waiting_of(lowering, {5})) == set()
