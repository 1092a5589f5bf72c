"""Validation of programs that no file can hold, and rule V13 at its ends: refused by name, in few steps."""

from dataclasses import replace

import numpy as np
import pytest

from cvm.errors import Invalid
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import check, validate

WIDE = 65536  # 2^16 intervals; rule V13 allows 2^21 live ones and 2^26 steps
WIDE_INPUT = Input("x", TensorType("i32", (WIDE,)), -1, 1)
CLAMP = {"min": -1, "max": 1}
SMALL = Program(
    (Input("x", TensorType("i32", (2,)), -1, 1),),
    (),
    (Instruction("clamp", (0,), CLAMP),),
    (Output("y", 1),),
)


def clamps(count: int, inputs: int = 1) -> Program:
    """A chain of clamps on the last of some wide inputs."""
    declared = tuple(
        replace(WIDE_INPUT, name=f"x{number}") for number in range(inputs)
    )
    chain = tuple(
        Instruction("clamp", (inputs - 1 + number,), CLAMP)
        for number in range(count)
    )
    return Program(declared, (), chain, (Output("y", inputs + count - 1),))


def test_a_proof_of_2_to_the_26_steps_is_accepted() -> None:
    # (1 for the input + 2 for each of 511 clamps) * 2^16 = 1023 * 2^16
    assert validate(clamps(511)).intervals[-1] == (-1, 1)


def test_a_proof_of_more_steps_is_refused() -> None:
    with pytest.raises(
        Invalid,
        match=r"%512 = clamp: .* 67174400 steps \(at most 67108864\) \[V13\]",
    ):
        validate(clamps(512))


def test_2_to_the_21_live_intervals_are_accepted() -> None:
    assert validate(clamps(1, inputs=31)).intervals[-1] == (-1, 1)


def test_more_live_intervals_are_refused() -> None:
    with pytest.raises(
        Invalid, match=r"2162688 intervals at once \(at most 2097152\)"
    ):
        validate(clamps(1, inputs=32))


def test_results_stop_counting_after_their_last_use() -> None:
    # 200 values of 2^16 intervals, but never more than two at once.
    assert len(validate(clamps(200)).intervals) == 201


def sums(count: int) -> Program:
    """A chain of additions of one constant of 2^16 elements, of which 2^26 + 16 * 2^16 may be read: 1040 times all."""
    chain = tuple(
        Instruction("add", (0 if number == 0 else number + 1, 1))
        for number in range(count)
    )
    return Program(
        (WIDE_INPUT,),
        (np.zeros(WIDE, np.int32),),
        chain,
        (Output("y", count + 1),),
    )


def test_1040_readings_of_a_large_constant_are_well_formed() -> None:
    assert len(check(sums(1040)).types) == 1042


def test_a_reading_more_is_refused_before_any_rule_reads() -> None:
    with pytest.raises(
        Invalid,
        match=r"%1042 = add: the proof reads 68222976 elements .* at most 68157440 \[V13\]",
    ):
        check(sums(1041))


def tables(count: int, *, alive: bool) -> Program:
    """Tables of 2^16 entries, each of its own; if all are to stay alive, they are read once more, the last one first."""
    entries = tuple(
        np.arange(WIDE, dtype=np.int32).astype(np.int16) + np.int16(number)
        for number in range(count)
    )
    one = Input("x", TensorType("i16", (2,)), -1, 1)
    order = [*range(count), *(range(count - 1, -1, -1) if alive else ())]
    reads = tuple(
        Instruction("table", (count + place, 1 + table) if place else (0, 1))
        for place, table in enumerate(order)
    )
    return Program((one,), entries, reads, (Output("y", count + len(reads)),))


def test_constants_count_only_while_they_are_still_to_be_read() -> None:
    # 40 tables of 2^16 entries: 40 * 2^16 intervals in all, but never more than one table's at once.
    assert len(validate(tables(40, alive=False)).intervals) == 81


def test_constants_that_are_read_again_count_until_then() -> None:
    # The 32nd table comes while the 31 before it wait for their second reading: 32 * 2^16 + the two values of 2 channels.
    with pytest.raises(
        Invalid,
        match=r"%72 = table: .* 2097156 intervals at once \(at most 2097152\)",
    ):
        validate(tables(40, alive=True))


HUGE = 10**5000  # more digits than Python prints


@pytest.mark.parametrize(
    ("program", "rule"),
    [
        (
            replace(SMALL, inputs=(replace(SMALL.inputs[0], name="\ud800"),)),
            "V2",
        ),
        (replace(SMALL, outputs=(Output("\ud800", 1),)), "V2"),
        (
            replace(SMALL, inputs=(replace(SMALL.inputs[0], name="é" * 129),)),
            "V2",
        ),
        (
            replace(SMALL, inputs=(Input("x", TensorType("f32", (2,)), 0, 1),)),
            "V3",
        ),
        (
            replace(
                SMALL, inputs=(Input("x", TensorType("i8", (HUGE,)), 0, 1),)
            ),
            "V3",
        ),
        (
            replace(
                SMALL, inputs=(Input("x", TensorType("i8", (-HUGE,)), 0, 1),)
            ),
            "V3",
        ),
        (replace(SMALL, constants=(np.zeros(2),)), "V3"),
        (replace(SMALL, constants=(np.zeros((2, 0), np.int8),)), "V3"),
        (
            replace(
                SMALL, inputs=(Input("x", TensorType("i8", (2,)), -HUGE, 1),)
            ),
            "V4",
        ),
        (
            replace(
                SMALL, instructions=(Instruction("clamp", (HUGE,), CLAMP),)
            ),
            "V5",
        ),
        (
            replace(
                SMALL, instructions=(Instruction("clamp", (-HUGE,), CLAMP),)
            ),
            "V5",
        ),
        (replace(SMALL, instructions=(Instruction("x" * 10**6, (0,)),)), "V6"),
        (
            replace(
                SMALL,
                instructions=(
                    Instruction("clamp", (0,), {"min": -HUGE, "max": 1}),
                ),
            ),
            "V8",
        ),
        (
            replace(
                SMALL,
                instructions=(
                    Instruction("clamp", (0,), {"min": 0, "max": 2**63}),
                ),
            ),
            "V8",
        ),
        (
            replace(
                SMALL,
                instructions=(
                    Instruction("clamp", (0,), {"min": False, "max": 1}),
                ),
            ),
            "V8",
        ),
        (
            replace(
                SMALL,
                instructions=(Instruction("clamp", (0,), {"x" * 10**6: 0}),),
            ),
            "V8",
        ),
        (
            replace(
                SMALL,
                instructions=(
                    Instruction("reshape", (0,), {"shape": (HUGE,)}),
                ),
            ),
            "V8",
        ),
        (
            replace(
                SMALL,
                instructions=(
                    Instruction("tile", (0,), {"multiples": (2**40,)}),
                ),
            ),
            "V9",
        ),
        (replace(SMALL, outputs=(Output("y", HUGE),)), "V10"),
    ],
)
def test_hostile_values_are_refused_in_a_short_sentence(
    program: Program, rule: str
) -> None:
    with pytest.raises(Invalid) as caught:
        validate(program)
    assert caught.value.rule == rule
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "attributes", [{}, {"min": 0}, {"min": 0, "max": 9, "more": 1}]
)
def test_an_instruction_has_exactly_the_attributes_of_its_list(attributes):
    """The file format cannot hold others, but a program made in memory can."""
    x = Input("x", TensorType("i8", (2,)), -128, 127)
    clamp = Instruction("clamp", (0,), attributes)
    program = Program((x,), (), (clamp,), (Output("y", 1),))
    with pytest.raises(Invalid, match=r"expected min, max .*\[V8\]"):
        check(program)
