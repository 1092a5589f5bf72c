"""Chains that bend at 0 and round twice: each argument has one result that fits, and each wire changed alone breaks a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvm.export.r1cs import files, functions, spared
from cvm.export.r1cs.bend import Bend
from cvm.export.r1cs.circuit import circuit_of
from cvm.lower import lower
from cvm.lower.runnable import runnable
from cvm.lower.step_function import step_function
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.cvm.export.test_r1cs import everything
from tests.support.cvm_programs import random_inputs
from tests.support.r1cs_reader import (
    BN254,
    broken,
    free_wires,
    read_constraints,
    read_witness,
    signed,
)

WIDE = {"input_zp": 0, "output_zp": 0, "dtype": "i32"}
BYTE = {**WIDE, "dtype": "i8"}
TURNED = {"input_zp": 0, "output_zp": 0}
POSITIVE = {"min": 0, "max": 2**30 - 1}
SHAPE = TensorType("i32", (1, 2))


def leaky_sum() -> Program:
    """Return two rescales, added, a leaky ReLU of the sum, and its rescale: the end of a residual block."""
    constants = (
        np.array([1578401247, 1119538281], np.int32),
        np.array([26, 27], np.int8),
        np.array([1117064945, 2117792488], np.int32),
        np.array([18, 17], np.int8),
        np.array([1717986944], np.int32),  # a tenth
        np.array([34], np.int8),
        np.array([1732387555, 2046290922], np.int32),
        np.array([43, 42], np.int8),
    )
    return Program(
        (
            Input("x", SHAPE, -700_000, 600_000),
            Input("y", TensorType("i8", (1, 2)), -27, 127),
        ),
        constants,
        (
            Instruction("rescale", (0, 2, 3), WIDE),  # %10
            Instruction("rescale", (1, 4, 5), WIDE),
            Instruction("add", (10, 11)),  # %12
            Instruction("negate", (12,), TURNED),
            Instruction("clamp", (12,), POSITIVE),
            Instruction("rescale", (13, 6, 7), WIDE),
            Instruction("clamp", (15,), POSITIVE),
            Instruction("sub", (14, 16)),
            Instruction("rescale", (17, 8, 9), BYTE),  # %18
        ),
        (Output("z", 18),),
    )


def leaky_convolution() -> Program:
    """Return a leaky ReLU of which both halves are rescaled, and its rescale: two channels of a network, as converted."""
    constants = (
        np.array([1136749821, 2041794955], np.int32),
        np.array([25, 26], np.int8),
        np.array([1818799714, 1633435964], np.int32),
        np.array([29, 29], np.int8),
        np.array([1279746676, 2147477348], np.int32),
        np.array([43, 44], np.int8),
    )
    return Program(
        (Input("x", SHAPE, -577_168, 543_632),),
        constants,
        (
            Instruction("negate", (0,), TURNED),  # %7
            Instruction("rescale", (0, 1, 2), WIDE),
            Instruction("clamp", (8,), POSITIVE),
            Instruction("rescale", (7, 3, 4), WIDE),
            Instruction("clamp", (10,), POSITIVE),
            Instruction("sub", (9, 11)),
            Instruction("rescale", (12, 5, 6), BYTE),  # %13
        ),
        (Output("z", 13),),
    )


PROGRAMS = {"sum": leaky_sum, "convolution": leaky_convolution}
VALUES = {"sum": 18, "convolution": 13}


def contents(made):
    return read_constraints(files.r1cs(made)), read_witness(files.witness(made))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_outputs_are_those_of_the_reference(name):
    form = validate(PROGRAMS[name]())
    texts = set()
    for seed in range(8):
        sample = random_inputs(form.program, seed)
        if seed % 2:  # near the bend
            sample["x"] = sample["x"] // (1 + 2 ** (2 * seed))
        made = circuit_of(form, sample, everything(form))
        found, witness = contents(made)
        assert broken(found, witness) == []
        expected = interpreter.run(form, sample)["z"].reshape(-1)
        assert [signed(n) for n in witness[10:12]] == expected.tolist()
        texts.add(files.r1cs(made))
    assert len(texts) == 1


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("x", [(-577_168, 3), (-40, 543_632), (1, 0)])
def test_every_wire_matters(name, x):
    form = validate(PROGRAMS[name]())
    sample = random_inputs(form.program, 4)
    sample["x"] = np.array([x], np.int32)
    found, witness = contents(circuit_of(form, sample, everything(form)))
    assert broken(found, witness) == []
    random = np.random.RandomState(9)
    others = [int(random.randint(2**31)) ** 8 % BN254 for _ in range(2)]
    assert free_wires(found, witness, others) == []


def plans_of(name):
    """Return the function of the last value, its steps and its plans."""
    lowering = lower(validate(PROGRAMS[name]()))
    function = runnable(lowering, lowering.functions[VALUES[name]])
    steps = step_function(function)
    return function, steps, functions.plans_of(function, steps)


def fits(bend: Bend, x: int, y: int) -> bool:
    """Whether any choice of the other wires fits x and y, by the rows as `bent` writes them."""
    for s, line in ((1, bend.upper), (0, bend.lower)):
        z = bend.inner[1 - s].at(x) if bend.inner else x
        rest = line.slope * z + line.offset - line.step * y
        first = bend.at if s else bend.low
        here = [y - first] + [y - first - 1] * int(s == 0 and y == bend.at)
        if not any(0 <= n <= bend.high - bend.at for n in here):
            continue
        end = bend.high if s else bend.low
        most = line.most
        if s == 0 and y == bend.at:
            most = bend.half
        if 0 <= rest <= most:
            return True
        beyond = rest > line.most if s else rest < 0
        if y == end and bend.excess and beyond:
            return True
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_result_fits(name):
    function, steps, plans = plans_of(name)
    for which, plan in enumerate(plans):
        assert isinstance(plan, Bend)
        assert plan.inner is not None
        starts, values = steps.of(which)
        low, high = int(function.low[which]), int(function.high[which])
        near = {int(t) + d for t in [*starts, 0, high + 1] for d in (-1, 0, 9)}
        for x in sorted(near):
            if low <= x <= high:
                right = values[np.searchsorted(starts, x, "right") - 1]
                for y in range(plan.low, plan.high + 1):
                    assert fits(plan, x, y) == (y == right), (x, y)


def test_a_half_that_is_too_wide_admits_a_wrong_result():
    """The check above can fail: without its bound, the lower line holds for arguments above 0."""
    _, steps, plans = plans_of("sum")
    wide = replace(plans[0], half=plans[0].upper.most)
    starts, values = steps.of(0)
    place = int(np.searchsorted(starts, 1))  # the first step above 0
    right, below = values[place], values[place - 1]
    assert fits(plans[0], int(starts[place]), right)
    assert not fits(plans[0], int(starts[place]), below)
    assert fits(wide, int(starts[place]), below)


def test_the_rescales_of_a_sum_are_spared_their_bits():
    """Steps have no divisor in common with one another, nor with a slope on the way from the sum."""
    lowering = lower(validate(leaky_sum()))
    found = spared.spared_of(lowering)
    assert set(found.divisions) == {10, 11}
    for place in range(2):
        plan = found.plans[18][
            runnable(lowering, lowering.functions[18]).classes[0, place]
        ]
        first, second = (found.divisions[v][place].step for v in (10, 11))
        slopes = functions.slopes_of(plan)
        assert len(slopes) == 4
        for step, others in ((first, [second, *slopes]), (second, slopes)):
            assert all(np.gcd(step, other) == 1 for other in others)


def test_a_sum_that_others_read_keeps_the_bits():
    program = leaky_sum()
    outputs = (*program.outputs, Output("sum", 12))
    shown = Program(
        program.inputs, program.constants, program.instructions, outputs
    )
    assert not spared.spared_of(lower(validate(shown))).divisions
