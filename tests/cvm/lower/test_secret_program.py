"""Steps for an engine on secrets give the reference's bytes, whoever computes the ends; units and widths by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.lower import lower
from cvm.lower.narrowing import narrowed
from cvm.lower.parties import all_on_server, parties
from cvm.lower.secret_interpreter import SecretInterpreter
from cvm.lower.secret_program import KINDS, secret_program
from cvm.lower.secret_steps import Convolve, Dot, Sum, TableLookUp
from cvm.lower.step_function import StepFunction
from cvm.lower.stored import bits_between
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.support.cvm_programs import MAKERS, random_inputs, random_program
from tests.support.golden import inputs_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
MOVEMENTS = (
    *("reshape", "transpose", "concat", "slice", "pad"),
    *("tile", "reverse", "gather", "resize"),
)
NARROW = ("clamp", "rescale", "cast", "table", "shift_right")
NAMES = tuple(
    name for name in (*KINDS, *MOVEMENTS, *NARROW * 3) if name in MAKERS
)


def computed(form, samples) -> int:
    """Return how many of the three divisions of the program have steps; all that they give is the reference's."""
    if any(item.hi - item.lo > 2**16 for item in form.program.inputs):
        return 0  # to list the steps of their functions takes seconds
    lowering, count = lower(form), 0
    for who in (
        parties(lowering),
        parties(lowering, hides_head=True),
        all_on_server(lowering),
    ):
        program = secret_program(lowering, who)
        if program.refused:
            continue
        count += 1
        interpreter_of = SecretInterpreter(program)
        for sample in samples:
            expected = interpreter.run(form, sample)
            found = interpreter_of.run(sample)
            assert found.keys() == expected.keys()
            for name, array in expected.items():
                assert found[name].dtype == array.dtype
                assert found[name].shape == array.shape
                assert np.array_equal(found[name], array), name
    return count


def test_golden_programs():
    count = 0
    for path in sorted(GOLDEN.glob("*.cvm")):
        form = validate(file_format.read(path))
        count += computed(form, [inputs_of(form.program, i) for i in range(3)])
    assert count >= 10


@pytest.mark.parametrize("block", range(4))
def test_random_programs(block):
    """Wide look-ups, and products of two secrets, are refused; enough programs have neither."""
    count = 0
    for seed in range(25 * block, 25 * block + 25):
        form = validate(random_program(seed, 6, NAMES))
        samples = [random_inputs(form.program, 7 * seed + i) for i in range(3)]
        count += computed(form, samples)
    assert count >= 5


def test_all_ends_of_intervals():
    """Also inputs that nothing but the ends of their intervals holds."""
    for seed in range(100, 120):
        form = validate(random_program(seed, 6, NAMES))
        ends = [
            {
                item.name: np.full(
                    item.type.shape,
                    end(item),
                    interpreter.DTYPES[item.type.dtype],
                )
                for item in form.program.inputs
            }
            for end in (lambda item: item.lo, lambda item: item.hi)
        ]
        computed(form, ends)


def layer(values: np.ndarray) -> Program:
    """Return a table of an input from 0 to 3, then a dense layer of two inputs, and a comparison with 30."""
    return Program(
        (Input("x", TensorType("i8", (1, 2)), 0, 3),),
        (
            values,
            np.array([[2, -4], [3, 6]], np.int8),
            np.array([1, 7], np.int32),
            np.array([[30]], np.int32),
        ),
        (
            Instruction("table", (0, 1)),  # %5
            Instruction("dense", (5, 2, 3), {"input_zp": 5}),  # %6
            Instruction("greater", (6, 4)),  # %7
        ),
        (Output("y", 7),),
    )


def test_units_pass_through_sums_channel_by_channel():
    """Entries 5, 13, 29, 5 are 5 + 8 u; channels of the sum have the units gcd(16, 32) and gcd(24, 48)."""
    table = np.full(256, 5, np.int8)
    table[128:132] = 5, 13, 29, 5
    form = validate(layer(table))
    program = secret_program(lower(form), all_on_server(lower(form)))
    assert program.refused == []
    entries = program.by_number[5].stored
    assert entries.factor.tolist() == [8, 8]
    assert entries.offset.tolist() == [5, 5]
    assert (entries.low.tolist(), entries.high.tolist()) == ([0, 0], [3, 3])
    sums = program.by_number[6].stored
    assert sums.factor.tolist() == [16, 24]
    assert sums.offset.tolist() == [1, 7]  # b + w (5 - 5)
    assert sums.low.tolist() == [-6, 0]  # u - 2 v, u + 2 v
    assert sums.high.tolist() == [3, 9]
    (dot,) = [step for step in program.steps if isinstance(step, Dot)]
    assert dot.weights.tolist() == [[1, 1], [-2, 2]]
    assert computed(form, [inputs_of(form.program, i) for i in range(5)]) == 3


def test_the_client_computes_before_the_first_sum_and_after_the_last():
    lowering = lower(validate(layer(np.arange(-128, 128).astype(np.int8))))
    found = parties(lowering)
    assert (found.head, found.server, found.tail) == ((5,), (6,), (7,))
    assert (found.encrypted, found.decrypted) == ((5,), (6,))


def test_a_hidden_head_is_the_servers():
    """Also where nothing but an output reads it: there, too, the client would have its constants."""
    program = layer(np.arange(-128, 128).astype(np.int8))
    found = parties(lower(validate(program)), hides_head=True)
    assert (found.head, found.server, found.tail) == ((), (5, 6), (7,))
    assert (found.encrypted, found.decrypted) == ((0,), (6,))
    shown = replace(program, outputs=(Output("y", 7), Output("t", 5)))
    found = parties(lower(validate(shown)), hides_head=True)
    assert (found.head, found.server, found.tail) == ((), (5, 6), (7,))
    assert found.decrypted == (5, 6)


def test_a_function_that_the_server_reads_is_no_tail():
    """%3 is an output, and a sum reads it, too."""
    i32 = TensorType("i32", (2, 2))
    program = Program(
        (Input("x", i32, -9, 9), Input("y", i32, -9, 9)),
        (),
        (
            Instruction("add", (0, 1)),
            Instruction("abs", (2,)),
            Instruction("add", (3, 0)),
            Instruction("abs", (4,)),
        ),
        (Output("a", 3), Output("b", 5)),
    )
    form = validate(program)
    found = parties(lower(form))
    assert (found.head, found.server, found.tail) == ((), (2, 3, 4), (5,))
    assert found.decrypted == (3, 4)
    assert computed(form, [inputs_of(form.program, i) for i in range(3)]) == 3


def test_padding_stands_for_the_zero_point():
    """Entries 5 + 8 u beside a zero point of 1: padded places take the unit down to 4."""
    table = np.full(256, 5, np.int8)
    table[128:132] = 5, 13, 29, 5
    weights = np.ones((1, 3, 1, 1), np.int8)
    conv = {"pad": (1, 1, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    program = Program(
        (Input("x", TensorType("i8", (1, 4, 1, 1)), 0, 3),),
        (table, weights, np.array([2], np.int32)),
        (
            Instruction("table", (0, 1)),
            Instruction(
                "conv2d", (4, 2, 3), {**conv, "groups": 1, "input_zp": 1}
            ),
        ),
        (Output("y", 5),),
    )
    form = validate(program)
    made = secret_program(lower(form), all_on_server(lower(form)))
    assert made.by_number[5].stored.factor.tolist() == [4]
    (step,) = [step for step in made.steps if isinstance(step, Convolve)]
    assert step.weights.reshape(-1).tolist() == [1, 1, 1]
    assert computed(form, [inputs_of(form.program, i) for i in range(3)]) == 3


def steps_of(*classes):
    """A step function of such (starts, values)."""
    lengths = np.cumsum([0, *(len(starts) for starts, _ in classes)])
    starts, values = (
        np.concatenate(column) for column in zip(*classes, strict=True)
    )
    return StepFunction(np.arange(len(classes)), lengths, starts, values)


def test_bits_that_cannot_matter_are_dropped():
    """Steps at 3, 7, 11 of 0..13 lie at multiples of 4 once 1 is added: x + 1 has 4 bits, of which 2 are left."""
    steps = steps_of((np.array([0, 3, 7, 11]), np.array([5, 6, 5, 9])))
    found = narrowed(steps, np.array([0]), np.array([13]), 16)
    assert (found.bits, found.dropped, found.left) == (4, 2, 2)
    assert (found.factors.tolist(), found.constants.tolist()) == ([1], [1])
    assert found.tables.tolist() == [[5, 6, 5, 9]]


def test_classes_share_an_index_by_factors():
    """Steps every 4 of 16 beside steps every 2 of 8: the second is doubled, and both drop two bits."""
    steps = steps_of(
        (np.array([0, 4, 8, 12]), np.array([0, 1, 2, 3])),
        (np.array([-4, -2, 0, 2]), np.array([7, 6, 5, 4])),
    )
    found = narrowed(steps, np.array([0, -4]), np.array([15, 3]), 16)
    assert (found.bits, found.dropped, found.left) == (4, 2, 2)
    assert found.factors.tolist() == [1, 2]
    assert found.constants.tolist() == [0, 8]
    assert found.tables.tolist() == [[0, 1, 2, 3], [7, 6, 5, 4]]


def test_a_single_step_leaves_one_bit():
    """A comparison with 5 of 0..9: x + 3 reaches 8 at 5."""
    steps = steps_of((np.array([0, 5]), np.array([0, 1])))
    found = narrowed(steps, np.array([0]), np.array([9]), 16)
    assert (found.bits, found.dropped, found.left) == (4, 3, 1)
    assert found.constants.tolist() == [3]


def test_a_short_index_keeps_all_bits():
    steps = steps_of((np.array([0, 5]), np.array([0, 1])))
    found = narrowed(steps, np.array([0]), np.array([9]), 16, 4)
    assert (found.bits, found.dropped, found.left) == (4, 0, 4)
    found = narrowed(steps, np.array([0]), np.array([9]), 16, 3)
    assert (found.bits, found.dropped, found.left) == (4, 1, 3)


def test_fewer_bits_are_dropped_where_the_index_would_become_too_wide():
    """A step at 1 of 0..15: four bits as they are, five if one is to be left."""
    steps = steps_of((np.array([0, 1]), np.array([0, 1])))
    found = narrowed(steps, np.array([0]), np.array([15]), 4)
    assert (found.bits, found.dropped, found.left) == (4, 0, 4)
    assert narrowed(steps, np.array([0]), np.array([15]), 3).tables is None


def test_widths_hold_a_sign():
    assert [bits_between(*ends) for ends in ((0, 0), (0, 7), (0, 8))] == [
        1,
        3,
        4,
    ]
    assert [bits_between(*ends) for ends in ((-1, 0), (-8, 7), (-9, 0))] == [
        1,
        4,
        5,
    ]


def test_a_line_takes_no_look_up():
    """-2 x + 3 of channels, then an absolute value: only that is looked up."""
    i32 = TensorType("i32", (1, 2))
    program = Program(
        (Input("x", i32, -40, 40), Input("z", i32, -40, 40)),
        (np.array([[-2, 2]], np.int32), np.array([[3]], np.int32)),
        (
            Instruction("add", (0, 1)),  # %4
            Instruction("mul", (4, 2), {"shift": 0}),
            Instruction("add", (5, 3)),  # %6
            Instruction("add", (6, 0)),  # %7
        ),
        (Output("y", 7),),
    )
    form = validate(program)
    made = secret_program(lower(form))
    assert not any(isinstance(step, TableLookUp) for step in made.steps)
    assert [type(step) for step in made.steps] == [Sum, Sum, Sum]
    assert made.by_number[6].stored.factor.tolist() == [2, 2]
    # x + z = u - 80: -2 (u - 80) + 3 and 2 (u - 80) + 3
    assert made.by_number[6].stored.offset.tolist() == [163, -157]
    assert computed(form, [inputs_of(form.program, i) for i in range(3)]) == 3


def test_two_secrets_are_not_multiplied():
    i8 = TensorType("i8", (2,))
    program = Program(
        (Input("x", i8, -9, 9), Input("y", i8, -9, 9)),
        (),
        (Instruction("mul", (0, 1), {"shift": 0}),),
        (Output("z", 2),),
    )
    (found,) = secret_program(lower(validate(program))).refused
    assert (found.value, found.name) == (2, "mul")
    assert found.reason == "it multiplies two secrets"
