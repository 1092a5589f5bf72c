"""Sums that pass from one step to the next, which computes them tile by tile: never in memory as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cvm.plan.encode import OperandTuple
from cvm.plan.steps import OPCODES, Room
from cvm.program import IntArray, Program
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from cvm.runtime.native import Engine
from tests.support.epilogue_programs import Draft, factors
from tests.support.passing_programs import CHANNELS, SHIFTS, depthwise, residual

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)


def sample_of(program: Program) -> dict[str, IntArray]:
    shape = program.inputs[0].type.shape
    random = np.random.default_rng(5)
    return {"x": random.integers(-128, 128, shape).astype(np.int8)}


@pytest.mark.parametrize("size, stride", [(6, 1), (9, 2), (41, 1)])
def test_a_shortcut_is_computed_within_the_step_that_adds_it(
    size: int, stride: int
) -> None:
    program = residual(size, stride)
    form, sample = validate(program), sample_of(program)
    wanted = run(form, sample)["y"]
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        taken = "next" in engine.core.epilogues()
        assert taken == ("winograd" not in engine.core.products()), isa
        for threads in (1, 2, 3):
            found = engine.run(sample, threads=threads)["y"]
            np.testing.assert_array_equal(found, wanted, isa)


def wrong_values(engine: Engine, sample: dict[str, IntArray]) -> list[int]:
    """The numbers of the values that the engine shows and the reference has otherwise."""
    wanted: dict[int, IntArray] = {}
    seen: dict[int, IntArray] = {}
    run(engine.form, sample, observe=wanted.__setitem__)
    engine.observe(sample, seen.__setitem__)
    assert passed_value(engine) in seen
    return [n for n in seen if not np.array_equal(seen[n], wanted[n])]


def passed_value(engine: Engine) -> int:
    (value,) = [
        value
        for value, place in engine.plan.places.items()
        if place.room is Room.PASSED
    ]
    return value


def test_every_value_can_be_observed() -> None:
    program = residual()
    engine = Engine(validate(program))
    assert wrong_values(engine, sample_of(program)) == []


def test_a_fault_in_what_passes_is_seen() -> None:
    program = residual()
    engine = Engine(validate(program))
    results = [step.result for step in engine.plan.steps]
    engine.core.inject_fault(results.index(passed_value(engine)))
    assert passed_value(engine) in wrong_values(engine, sample_of(program))


def test_what_two_steps_read_does_not_pass() -> None:
    engine = Engine(validate(residual(read_twice=True)))
    rooms = {place.room for place in engine.plan.places.values()}
    assert Room.PASSED not in rooms


def test_what_passes_takes_no_part_of_the_arena() -> None:
    alone = Engine(validate(residual())).core.arena_bytes
    kept = Engine(validate(residual(read_twice=True))).core.arena_bytes
    assert kept - alone >= 6 * 6 * 40 * 4


def test_what_is_passed_and_not_taken_counts_as_memory() -> None:
    program = depthwise()
    engine, sample = Engine(validate(program)), sample_of(program)
    assert "next" not in engine.core.epilogues()
    passed = 6 * 6 * CHANNELS * 4
    assert engine.core.arena_bytes == engine.plan.arena_bytes + passed
    found = engine.run(sample)["y"]
    np.testing.assert_array_equal(found, run(engine.form, sample)["y"])


def test_what_the_passing_step_reads_is_kept_for_the_next() -> None:
    d = Draft(CHANNELS, 6, 0)
    factor = np.array([2**30]), np.array([43])
    sides = []
    for _ in range(2):
        sums = d.conv(("input", 0), CHANNELS, 40, 1, -7)
        stored = d.rescale(sums, *factor, (0, 3), "i8")
        sides.append(d.conv(stored, 40, 40, 1, 3))
    mine = d.rescale(sides[0], *factors(d.random, 40, SHIFTS), (0, 0), "i32")
    total = d.add("add", mine, sides[1])
    last = d.rescale(total, *factor, (0, 3), "i8")
    d.add("reverse", last, axis=2)
    program = d.finish()
    engine, sample = Engine(validate(program)), sample_of(program)
    assert wrong_values(engine, sample) == []
    found = engine.run(sample)["y"]
    np.testing.assert_array_equal(found, run(engine.form, sample)["y"])


def operand(
    room: Room, position: int, count: int = 4, code: int = 4, pitch: int = 0
) -> OperandTuple:
    return (int(room), position, code, (count,), pitch or count)


FROM, TO = operand(Room.ARENA, 0), operand(Room.ARENA, 64)
PASSED = operand(Room.PASSED, 0)
ABS = [
    (OPCODES["load"], (), 0, (), {}),
    (OPCODES["abs"], (0,), -1, (), {}),
]


def make(*steps: tuple[OperandTuple, OperandTuple]) -> object:
    """A plan of steps that each take the absolute values of one operand."""
    module = native._module()
    assert module is not None
    listed: Sequence[object] = [
        (OPCODES["chain"], [x], (), y, {}, ABS) for x, y in steps
    ]
    return module.make([], [], [], 256, listed, "")


def test_any_step_may_pass_its_result() -> None:
    make((FROM, PASSED), (PASSED, TO))


@pytest.mark.parametrize(
    "steps",
    [
        [(PASSED, TO)],
        [(FROM, TO), (PASSED, operand(Room.ARENA, 128))],
        [(FROM, PASSED), (FROM, TO), (PASSED, operand(Room.ARENA, 128))],
        [(FROM, PASSED), (operand(Room.PASSED, 0, 3), TO)],
        [(FROM, PASSED), (operand(Room.PASSED, 0, 4, 3), TO)],
    ],
)
def test_what_passes_is_the_result_of_the_step_before(
    steps: list[tuple[OperandTuple, OperandTuple]],
) -> None:
    with pytest.raises(ValueError, match="not what the step before passes"):
        make(*steps)


def test_a_step_does_not_write_over_what_the_passing_one_reads() -> None:
    with pytest.raises(ValueError, match="overlaps an operand of the step"):
        make((FROM, PASSED), (PASSED, operand(Room.ARENA, 8)))


def test_a_step_that_takes_does_not_pass() -> None:
    with pytest.raises(ValueError, match="the result overlaps an operand"):
        make((FROM, PASSED), (PASSED, PASSED), (PASSED, TO))


@pytest.mark.parametrize(
    "wrong", [operand(Room.PASSED, 4), operand(Room.PASSED, 0, pitch=8)]
)
def test_what_passes_lies_at_the_start_without_gaps(
    wrong: OperandTuple,
) -> None:
    with pytest.raises(ValueError, match="what is passed is not at position 0"):
        make((FROM, wrong), (wrong, TO))
