"""Tables as polynomials, and a division of which only a table is read: one entry for each argument, and no free wire."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvm.export.r1cs import files, functions, polynomial
from cvm.export.r1cs.circuit import circuit_of
from cvm.export.r1cs.system import System
from cvm.export.r1cs.tabulated import Tabulated
from cvm.lower import lower
from cvm.lower.runnable import runnable
from cvm.lower.step_function import step_function
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.cvm.export.test_r1cs import everything, require_right
from tests.support.cvm_programs import random_inputs
from tests.support.r1cs_reader import (
    BN254,
    broken,
    free_wires,
    read_constraints,
    read_witness,
)

RESCALE = {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
TANH = np.round(127 * np.tanh(np.arange(-128, 128) / 20)).astype(np.int8)
HUMPS = np.round(90 * np.sin(np.arange(-128, 128) / 9 + 1)).astype(np.int8)
TABLES = {"odd": TANH, "wavy": HUMPS}


def tabulated(table) -> Program:
    """Return two channels of sums, rescaled by other numbers, and a table of the results."""
    return Program(
        (Input("x", TensorType("i32", (1, 2)), -1_089_218, 953_077),),
        (
            np.array([1112539136, 2124414976], np.int32),
            np.array([42, 43], np.int8),
            table,
        ),
        (
            Instruction("rescale", (0, 1, 2), RESCALE),  # %4
            Instruction("table", (4, 3)),
        ),
        (Output("y", 5),),
    )


def plans_of(table):
    """Return the function of the output, its steps and its plans."""
    lowering = lower(validate(tabulated(table)))
    function = runnable(lowering, lowering.functions[5])
    steps = step_function(function)
    return function, steps, functions.plans_of(function, steps)


def entry_of(plan: Tabulated, x):
    """Return the entry by the rows' own meaning: the quotient, clipped, and its place."""
    line, ends = plan.index.line, (plan.index.low, plan.index.high)
    z = np.clip((line.slope * x + line.offset) // line.step, *ends)
    return plan.entries[z - ends[0]]


@pytest.mark.parametrize("name", TABLES)
def test_the_outputs_are_those_of_the_reference(name):
    form = validate(tabulated(TABLES[name]))
    texts = set()
    for seed in range(8):
        sample = random_inputs(form.program, seed)
        sample["x"] = sample["x"] // (1 + 2 ** (2 * seed))
        require_right(form, sample)
        texts.add(files.r1cs(circuit_of(form, sample, everything(form))))
    assert len(texts) == 1


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("x", [(-1_089_218, 3), (-70_000, 953_077), (1, 0)])
def test_every_wire_matters(name, x):
    form = validate(tabulated(TABLES[name]))
    sample = {"x": np.array([x], np.int32)}
    made = circuit_of(form, sample, everything(form))
    found = read_constraints(files.r1cs(made))
    witness = read_witness(files.witness(made))
    assert broken(found, witness) == []
    random = np.random.RandomState(9)
    others = [int(random.randint(2**31)) ** 8 % BN254 for _ in range(2)]
    assert free_wires(found, witness, others) == []


def test_a_factor_that_is_0_in_the_field_is_left_out():
    """The polynomial of this table has a term that is a multiple of the prime."""
    places = np.arange(-128, 128)
    table = np.where(places <= 1, -1, np.where(places == 2, 0, 3))
    form = validate(tabulated(table.astype(np.int8)))
    sample = random_inputs(form.program, 1)
    require_right(form, sample)
    made = circuit_of(form, sample, everything(form))
    found = read_constraints(files.r1cs(made))
    assert broken(found, read_witness(files.witness(made))) == []


@pytest.mark.parametrize("name", TABLES)
def test_one_quotient_fits_and_its_entry_is_the_function(name):
    function, steps, plans = plans_of(TABLES[name])
    assert len(plans) == 2
    for which, plan in enumerate(plans):
        assert isinstance(plan, Tabulated)
        line = plan.index.line
        assert line.most == line.step - 1  # each argument has one quotient
        starts, values = steps.of(which)
        x = np.arange(int(function.low[which]), int(function.high[which]) + 1)
        right = values[np.searchsorted(starts, x, "right") - 1]
        assert (entry_of(plan, x) == right).all()
        beyond = (line.slope * x + line.offset) // line.step
        assert (beyond - plan.index.high).max() <= plan.index.over
        assert (plan.index.low - beyond).max() <= plan.index.under


def test_a_line_that_is_off_by_one_is_seen():
    """The check above can fail."""
    _, steps, plans = plans_of(TANH)
    line = plans[0].index.line
    index = replace(plans[0].index, line=replace(line, offset=line.offset + 9))
    starts, values = steps.of(0)
    moved = Tabulated(index, plans[0].entries)
    assert (entry_of(plans[0], starts) == values).all()
    assert (entry_of(moved, starts - 1)[1:] != values[:-1]).any()


def test_tanh_takes_its_middle_alone():
    """From 63 places on it does not change, on both sides, and there it is clipped; 16 of the rows are the polynomial's."""
    assert (TANH[: 129 - 63] == -127).all() and (TANH[128 + 63 :] == 127).all()
    _, _, plans = plans_of(TANH)
    assert {(len(p.entries), p.is_odd) for p in plans} == {(127, True)}
    # 6 powers of t * t, 62 terms of which each row takes 7, and a row for t
    assert polynomial.rows_of(127, odd=True) == 1 + 6 + 8 + 1
    assert all(plan.rows < 52 for plan in plans)


@pytest.mark.parametrize(
    "table, odd",
    [
        ([3, 5], False),
        ([4, -9, 4], False),
        ([-9, -3, 0, 3, 9], True),
        ([2, 9, 12, 15, 22, 25], False),
        ([2, 9, 12, 14, 17, 24], True),
        (np.arange(512) ** 2 % 251, False),
    ],
)
def test_a_polynomial_has_the_entries(table, odd):
    """By the rows themselves, modulo the prime, for every place; another entry breaks one."""
    table = np.array(table)
    assert polynomial.is_odd(table) == odd
    made = System()
    places = made.new(np.arange(len(table)))
    before = made.rows
    y = polynomial.evaluated(made, places, [table] * len(table))
    assert made.rows - before == len(table) * polynomial.rows_of(
        len(table), odd
    )
    assert y.values.tolist() == table.tolist()
    witness = made.witness().astype(object)
    assert not failing(made, witness)
    for place in range(0, len(table), 1 + len(table) // 9):
        wrong = witness.copy()
        wrong[y.wires[place, 0]] += 1
        assert failing(made, wrong)


def failing(made, witness):
    """Return whether a row does not hold."""
    for row in made.blocks:
        a, b, c = (
            (part.factors * witness[part.wires]).sum(-1) + part.constants
            for part in row
        )
        if ((a * b - c) % BN254).any():
            return True
    return False
