"""The generator of valid programs keeps its word, or every test that uses it would test less than it says."""

import numpy as np
import pytest

from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPES
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.support.cvm_programs import MAKERS, random_inputs, random_program


def test_every_instruction_has_a_maker() -> None:
    assert set(INSTRUCTIONS) - set(MAKERS) == set()


def test_200_seeds_hold_every_instruction() -> None:
    found = {
        item.name
        for seed in range(200)
        for item in random_program(seed).instructions
    }
    assert set(INSTRUCTIONS) - found == set()


@pytest.mark.parametrize("seed", range(100))
def test_random_programs_are_proven_and_their_values_stay_inside_the_proof(
    seed: int,
) -> None:
    program = random_program(seed)
    proven = validate(program)
    for inputs_seed in range(3):
        arrays = random_inputs(program, inputs_seed)
        assert all(
            array.dtype == DTYPES[item.type.dtype]
            for item, array in zip(program.inputs, arrays.values(), strict=True)
        )

        def observe(number: int, value: np.ndarray) -> None:
            low, high = proven.intervals[number]
            assert low <= int(value.min()) and int(value.max()) <= high
            assert value.shape == proven.types[number].shape

        run(proven, arrays, observe=observe)
