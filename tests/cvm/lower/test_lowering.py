"""Lowered programs give the reference's bytes; functions, steps, widths and directions of small programs by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS
from cvm.lower import lower
from cvm.lower.interpreter import LoweredProgram
from cvm.lower.lowering import ELEMENT_WISE
from cvm.lower.monotonicity import Monotonicity, monotonicity_of
from cvm.lower.runnable import runnable
from cvm.lower.secret_cost import secret_cost
from cvm.lower.step_function import step_function
from cvm.program import (
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven, validate
from cvm.reference import interpreter
from tests.support.command import cvm, said
from tests.support.cvm_programs import MAKERS, random_inputs, random_program
from tests.support.golden import inputs_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CHAINS = tuple(name for name in MAKERS if name in ELEMENT_WISE)
I8, I32 = TensorType("i8", (2,)), TensorType("i32", (2,))


def require_equal(form: Proven, samples: list[dict[str, IntArray]]) -> None:
    lowered = LoweredProgram(lower(form))
    for sample in samples:
        expected = interpreter.run(form, sample)
        found = lowered.run(sample)
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*.cvm")), ids=lambda path: path.stem
)
def test_golden_programs(path):
    form = validate(file_format.read(path))
    require_equal(form, [inputs_of(form.program, i) for i in range(3)])


@pytest.mark.parametrize("seed", range(24))
def test_random_chains(seed):
    form = validate(random_program(seed, 20, CHAINS))
    samples = [random_inputs(form.program, 7 * seed + i) for i in range(8)]
    require_equal(form, samples)


def leaky_relu() -> Program:
    """Return x * 64 / 64 above 0 and x * 16 / 64 below, as a sum of both halves, in steps of 64."""
    multiplier = np.array([2**30], np.int32)
    one, quarter = np.array([36], np.int8), np.array([38], np.int8)
    halves = {"input_zp": 0, "output_zp": 0, "dtype": "i32"}
    turned = {"input_zp": 0, "output_zp": 0}
    return Program(
        (Input("x", I32, -8192, 8191),),
        (multiplier, one, quarter),
        (
            Instruction("clamp", (0,), {"min": 0, "max": 2**31 - 1}),  # %4
            Instruction("rescale", (4, 1, 2), halves),  # %5
            Instruction("negate", (0,), turned),  # %6
            Instruction("clamp", (6,), {"min": 0, "max": 2**31 - 1}),  # %7
            Instruction("rescale", (7, 1, 3), halves),  # %8
            Instruction("sub", (5, 8)),  # %9
        ),
        (Output("y", 9),),
    )


def test_a_chain_is_one_function():
    form = validate(leaky_relu())
    lowering = lower(form)
    assert lowering.kept == ()
    (function,) = lowering.functions.values()
    assert (function.value, function.argument) == (9, 0)
    assert function.members == (4, 5, 6, 7, 8, 9)
    runner = runnable(lowering, function)
    directions = monotonicity_of(runner)
    assert directions[6] is Monotonicity.FALLING
    assert directions[9] is Monotonicity.RISING
    steps = step_function(runner)
    starts, values = steps.of(0)
    # above 0: y = floor(x / 64 + 1/2), which begins at 32, 96, ..., 8160
    above = starts[starts > 0]
    assert above.tolist() == list(range(32, 8192, 64))
    # below 0: y = -floor(-x / 256 + 1/2), which is -1 down from -128 and 0 from -127 on
    below = starts[(starts <= 0) & (starts > -8192)]
    assert below.tolist() == list(range(-8192 + 129, 0, 256))
    assert values[0] == -32 and values[-1] == 128
    require_equal(form, [inputs_of(form.program, i) for i in range(3)])


def test_a_function_of_a_function_that_others_read():
    """%3 is read by a sum; what follows from it alone has %3 as its argument, not the wide input."""
    double = Instruction(
        "rescale", (0, 1, 2), {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
    )
    program = Program(
        (Input("x", I32, -100000, 100000),),
        (np.array([2**30], np.int32), np.array([40], np.int8)),
        (
            double,  # %3, of 8 bits
            Instruction("cast", (3,), {"dtype": "i32"}),  # %4
            Instruction("negate", (4,), {"input_zp": 0, "output_zp": 0}),
            Instruction("reduce_sum", (4,), {"axis": 0}),  # %6
        ),
        (Output("a", 3), Output("b", 5), Output("c", 6)),
    )
    lowering = lower(validate(program))
    assert {
        number: (item.argument, item.members)
        for number, item in lowering.functions.items()
    } == {3: (0, (3,)), 4: (3, (4,)), 5: (4, (5,))}
    assert lowering.kept == (6,)


def test_classes_are_channels_that_share_constants():
    multiplier = np.array([2**30, 2**30, 2**30 + 5], np.int32)
    shift = np.array([34, 34, 34], np.int8)
    program = Program(
        (Input("x", TensorType("i32", (4, 3)), -50, 50),),
        (multiplier, shift),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": "i8"},
            ),
        ),
        (Output("y", 3),),
    )
    lowering = lower(validate(program))
    runner = runnable(lowering, lowering.functions[3])
    assert runner.classes.tolist() == [[0, 0, 1]] * 4


def test_a_report_drops_the_bits_that_no_step_needs():
    """Halves of 16 round up: steps begin at 8, 24, ..., so 4 bits never matter; 5 tell the 17 values apart."""
    program = Program(
        (Input("x", I8, -128, 127),),
        (np.array([2**30], np.int32), np.array([34], np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": "i8"},
            ),
            Instruction("mul", (3, 3), {"shift": 0}),
        ),
        (Output("y", 4),),
    )
    found = secret_cost(lower(validate(program)))
    (look_up,) = found.look_ups  # the square is a function of x, too
    assert (look_up.value, look_up.argument) == (4, 0)
    assert (look_up.bits, look_up.needed, look_up.elements) == (8, 5, 2)
    assert look_up.steps == 17


def test_a_product_of_two_inputs_is_no_function():
    program = Program(
        (Input("x", I8, -9, 9), Input("y", I8, -9, 9)),
        (),
        (Instruction("mul", (0, 1), {"shift": 0}),),
        (Output("z", 2),),
    )
    found = secret_cost(lower(validate(program)))
    assert found.look_ups == ()
    assert found.products == {"mul": 2}
    assert found.sums == found.comparisons == found.others == {}


def test_show_secret(tmp_path):
    path = tmp_path / "leaky.cvm"
    file_format.write(leaky_relu(), path)
    table = cvm("show", "--secret", path)
    assert table.exit_code == 0
    row = ["%9", "%0", "2", "6", "14", "14", "14", "161"]
    assert row in [line.split() for line in table.stdout.splitlines()]
    facts = json.loads(cvm("show", "--secret", "--json", path).stdout)
    assert facts["format"] == "cvm-secret-1"
    assert facts["look_ups"][0]["instructions"] == 6
    both = said(cvm("show", "--secret", "--plan", path), 2)
    assert both.startswith("--plan and --secret list different things")


def test_every_element_wise_instruction_has_a_random_chain():
    missing = ELEMENT_WISE - set(CHAINS)
    assert missing == set(), missing
    assert len(ELEMENT_WISE) > 20 and set(INSTRUCTIONS) > ELEMENT_WISE


def test_lines_that_only_fall_turn_the_direction_of_their_argument():
    points = np.arange(256, -257, -1, np.int16)
    program = Program(
        (Input("x", TensorType("i16", (2,)), -300, 300),),
        (points, np.array([2**30], np.int32), np.array([40], np.int8)),
        (
            Instruction("interpolate", (0, 1)),  # %4: -x
            Instruction(
                "rescale",
                (4, 2, 3),
                {"input_zp": 0, "output_zp": 0, "dtype": "i8"},
            ),
        ),
        (Output("y", 5),),
    )
    form = validate(program)
    lowering = lower(form)
    (function,) = lowering.functions.values()
    runner = runnable(lowering, function)
    assert monotonicity_of(runner)[4] is Monotonicity.FALLING
    assert step_function(runner).of(0)[0].tolist() == [-300]  # all are 0
    require_equal(form, [inputs_of(form.program, i) for i in range(3)])
