"""The reference machine against a second reading of the specification, element by element in Python's integers."""

import numpy as np
import pytest

from cvm.instructions import INSTRUCTIONS
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.support.cvm_programs import random_inputs, random_program
from tests.support.plain_integers import MEANINGS, values_of


def test_every_instruction_has_a_second_reading() -> None:
    assert MEANINGS.keys() == INSTRUCTIONS.keys()


@pytest.mark.parametrize("seed", range(500, 700))
def test_both_readings_agree_on_every_value(seed: int) -> None:
    program = random_program(seed)
    form, inputs = validate(program), random_inputs(program, seed)
    found: list[np.ndarray] = []
    run(form, inputs, observe=lambda _, value: found.append(value))
    expected = values_of(program, inputs, [type_.dtype for type_ in form.types])
    for value, exact, item in zip(
        found, expected, program.instructions, strict=True
    ):
        assert value.shape == exact.shape, item.name
        assert value.astype(object).tolist() == exact.tolist(), item


def test_the_programs_above_hold_every_instruction() -> None:
    assert {
        item.name
        for seed in range(500, 700)
        for item in random_program(seed).instructions
    } == set(INSTRUCTIONS)
