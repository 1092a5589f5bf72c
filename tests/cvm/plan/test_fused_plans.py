"""Plans run in the bytes that they name give what the reference gives, and ask of each step only what the engine does."""

from collections.abc import Callable

import numpy as np
import pytest

from cvm.instructions import INSTRUCTIONS
from cvm.plan.fuse import fused
from cvm.plan.steps import CHAIN, LINEAR, Plan, Room
from cvm.plan.unfused import unfused
from cvm.program import DTYPES, Program
from cvm.proof.validate import WellFormed, validate
from cvm.reference import interpreter
from tests.support.cvm_programs import random_inputs, random_program
from tests.support.plan_programs import (
    branching_program,
    halves_program,
    parts_program,
)
from tests.support.plan_simulator import byte_places, simulate, type_of

MOVEMENT = {
    name for name, spec in INSTRUCTIONS.items() if spec.family == "movement"
}
POOLING = {"max_pool2d", "avg_pool2d"}
PROGRAMS = [
    (make, seed)
    for make in (
        branching_program,
        halves_program,
        parts_program,
        random_program,
    )
    for seed in range(40)
]
each_program = pytest.mark.parametrize(
    ("make", "seed"),
    PROGRAMS,
    ids=lambda item: getattr(item, "__name__", str(item)),
)


@each_program
@pytest.mark.parametrize("planner", [fused, unfused])
def test_a_plan_gives_the_bytes_of_the_reference(
    planner: Callable[[WellFormed], Plan],
    make: Callable[[int], Program],
    seed: int,
) -> None:
    program = make(seed)
    form = validate(program)
    inputs = random_inputs(program, seed)
    expected = interpreter.run(form, inputs)
    found = simulate(planner(form), inputs, seed)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array), name


@each_program
def test_every_operand_is_one_that_its_step_takes(
    make: Callable[[int], Program], seed: int
) -> None:
    plan = fused(validate(make(seed)))
    for step in plan.steps:
        own = (
            len(step.operands)
            if step.name not in LINEAR
            else 2
            if step.name == "matmul"
            else 1
        )
        for number, value in enumerate(step.operands):
            place, type_ = plan.places[value], type_of(plan, value)
            if place.pitch != (type_.shape[-1] if type_.shape else 1):
                x = step.name in ("conv2d", "dense") and type_.dtype == "i8"
                assert step.name in (CHAIN, "concat") or (
                    step.name in LINEAR and (x or number >= own)
                ), step
            if place.room is Room.INPUT and type_.dtype == "i8":
                assert step.name in MOVEMENT | {CHAIN}, step


@each_program
def test_every_result_is_one_that_its_step_can_write(
    make: Callable[[int], Program], seed: int
) -> None:
    plan = fused(validate(make(seed)))
    for step in plan.steps:
        place, type_ = plan.places[step.result], type_of(plan, step.result)
        assert place.room in (Room.ARENA, Room.OUTPUT, Room.PASSED)
        if place.pitch != (type_.shape[-1] if type_.shape else 1):
            assert place.room is Room.ARENA
            assert step.name in MOVEMENT | LINEAR | POOLING | {CHAIN}, step
        if place.room is Room.OUTPUT and type_.dtype == "i8":
            assert step.name in MOVEMENT | LINEAR | {CHAIN}, step


@each_program
def test_what_passes_is_read_by_the_next_step_alone(
    make: Callable[[int], Program], seed: int
) -> None:
    plan = fused(validate(make(seed)))
    for number, step in enumerate(plan.steps):
        if plan.places[step.result].room is Room.PASSED:
            readers = [
                reader
                for reader, other in enumerate(plan.steps)
                if step.result in other.operands
            ]
            assert readers == [number + 1]


@each_program
def test_values_lie_inside_the_arena_aligned_and_no_step_writes_what_it_reads(
    make: Callable[[int], Program], seed: int
) -> None:
    plan = fused(validate(make(seed)))
    for step in plan.steps:
        used = {
            value: plan.places[value] for value in (*step.operands, step.result)
        }
        taken = {
            value: set(
                byte_places(p, type_of(plan, value)).reshape(-1).tolist()
            )
            for value, p in used.items()
        }
        for value, place in used.items():
            if place.room is Room.ARENA:
                assert (
                    place.position % DTYPES[type_of(plan, value).dtype].itemsize
                    == 0
                )
                assert max(taken[value]) < plan.arena_bytes
        for number, value in enumerate(step.operands):
            assert used[value].room is not Room.OUTPUT
            overwrites = (
                number > 0
                and step.name in ("conv2d", "dense")
                and used[value] == used[step.result]
                and type_of(plan, value) == type_of(plan, step.result)
            )
            assert (
                overwrites
                or used[value].room != used[step.result].room
                or taken[value].isdisjoint(taken[step.result])
            )


@each_program
def test_every_instruction_is_covered_once_or_needs_no_step(
    make: Callable[[int], Program], seed: int
) -> None:
    program = make(seed)
    plan = fused(validate(program))
    covered = [value for step in plan.steps for value in step.covers]
    assert len(covered) == len(set(covered))
    for number, item in enumerate(
        program.instructions, program.first_instruction
    ):
        assert number in covered or item.name in (
            "reshape",
            "transpose",
            "slice",
            "pad",
            "tile",
            "concat",
        )


@each_program
def test_a_step_stays_inside_the_limits_of_the_engine(
    make: Callable[[int], Program], seed: int
) -> None:
    for step in fused(validate(make(seed))).steps:
        assert step.name == "concat" or len(step.operands) <= 16
        assert len(step.stages) <= 64


def test_the_arena_is_little_more_than_what_lives_at_once() -> None:
    plans = [
        fused(validate(branching_program(seed, blocks=12)))
        for seed in range(40)
    ]
    large = [plan for plan in plans if plan.largest_live_bytes >= 4096]
    assert len(large) > 10
    assert all(
        plan.arena_bytes <= 1.5 * plan.largest_live_bytes for plan in large
    )
