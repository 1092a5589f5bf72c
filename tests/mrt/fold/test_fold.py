"""fold: whatever the program, its integers stay, its proof holds, and no instruction comes on top."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvm.file import format as file_format
from cvm.program import Meaning, Program
from cvm.proof.validate import Proven, validate
from cvm.reference import interpreter
from mrt.fold import first_difference, fold
from tests.support.branches import STEPS, Branches
from tests.support.cvm_programs import random_inputs, random_program


def require_equal(before: Proven, after: Proven, seeds: int = 5) -> None:
    """By the reference machine, to the byte; and both files have the same inputs and outputs."""
    assert after.program.inputs == before.program.inputs
    for seed in range(seeds):
        sample = random_inputs(before.program, seed)
        wanted, found = (
            interpreter.run(form, sample) for form in (before, after)
        )
        assert wanted.keys() == found.keys()
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array, strict=True)


def folded(program: Program) -> Proven:
    before = validate(program)
    found = fold(before)
    after = validate(found.program)
    assert found.count <= len(program.instructions)
    assert found.sources.keys() == set(
        range(after.program.first_instruction, len(after.types))
    )
    require_equal(before, after)
    return after


def names(form: Proven) -> Counter[str]:
    return Counter(item.name for item in form.program.instructions)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_integers(seed):
    folded(random_program(seed, steps=18))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**16),
    st.integers(2, 5),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_branches_of_any_steps_keep_their_integers(
    seed, count, steps, one_input, chained
):
    program = Branches(seed).program(
        count, steps, one_input=one_input, chained=chained
    )
    folded(program)


def test_branches_become_one_grouped_convolution_with_all_that_follows():
    """Products of 5 or 6 rows, which are filled up; rescales with a multiplier for each channel."""
    steps = ["dense", "table", "dense", "greater"]
    program = Branches(1).program(8, steps, one_input=False, chained=False)
    assert len(program.instructions) == 8 * 9
    after = folded(program)
    assert names(after) == {
        **dict.fromkeys(("concat", "greater", "table"), 1),
        "conv2d": 2,
        "rescale": 2,
        "cast": 3,
        "slice": 8,
        "reshape": 4,
    }
    for item in after.program.instructions:
        if item.name == "conv2d":
            assert item.attributes["groups"] == 8


def test_products_of_one_input_become_one_product():
    program = Branches(2).program(4, ["dense"], one_input=True, chained=False)
    found = names(folded(program))
    assert found == {"dense": 1, "rescale": 1, "cast": 1, "slice": 4}


def test_one_product_for_all_steps_that_have_the_same_weights():
    branches = Branches(3)
    builder = branches.builder
    x = branches._input("x", 24)
    weights = branches._numbers(-9, 9, 3, 6, dtype="int8")
    bias = branches._numbers(-9, 9, 3)
    for index in range(4):
        own = builder.emit("slice", x, start=(0, 6 * index), size=(1, 6))
        made = builder.emit("dense", own, weights, bias, input_zp=0)
        out = branches._narrow(made, 1)
        builder.output(f"y{index}", out, builder.header().metadata.inputs["x"])
    after = folded(builder.finish({}))
    (dense,) = (i for i in after.program.instructions if i.name == "dense")
    assert after.types[dense.operands[0]].shape == (4, 6)
    assert after.types[dense.operands[1]].shape == (3, 6)  # not repeated


def test_an_input_that_is_read_whole_is_found():
    """The first input has the first handle, 0: a handle like any other."""
    branches = Branches(8)
    first = branches._narrow(branches._input("x", 7), 7)
    for index in range(3):
        branches.builder.output(
            f"y{index}", branches._dense(first), Meaning(1.0, 0)
        )
    found = names(folded(branches.builder.finish({})))
    assert found == {"rescale": 2, "dense": 1, "slice": 3}


def test_constants_of_4_bits_stay_packed_in_a_smaller_file():
    """Three products of one input become one; biases are not i8, and shifts need more than 4 bits."""
    branches = Branches(9)
    builder = branches.builder
    x = branches._input("x", 16)
    for index in range(3):
        weights = branches._numbers(-8, 8, 32, 16, dtype="int8")
        bias = branches._numbers(-9, 9, 32)
        made = builder.emit("dense", x, weights, bias, input_zp=0)
        narrow = branches._narrow(made, 32)
        builder.output(f"y{index}", narrow, Meaning(1.0, 0))
    before = builder.finish({}, packs=True)
    after = folded(before).program
    assert len(before.packed) == 3
    weights, *others = after.constants
    assert weights.shape == (96, 16)
    assert [array.size for array in others] == [96, 96, 96]
    assert after.packed == {0}
    files = [file_format.encode(program) for program in (before, after)]
    assert [file[7] for file in files] == [file_format.PACKED] * 2
    assert len(files[1]) < len(files[0])
    plain = folded(replace(before, packed=frozenset())).program
    assert plain.packed == frozenset()


def test_meanings_stay_with_the_integers_that_they_are_of():
    program = Branches(4).program(4, ["add"], one_input=False, chained=False)
    after = folded(program)
    meanings = after.program.metadata.values
    assert {meaning.source for meaning in meanings.values()} == {
        f"end {index}" for index in range(4)
    }
    sample = random_inputs(program, 0)
    outputs = interpreter.run(validate(program), sample)
    seen = {}
    interpreter.run(after, sample, observe=seen.__setitem__)
    for number, meaning in meanings.items():
        own = outputs[f"y{meaning.source.removeprefix('end ')}"]
        np.testing.assert_array_equal(seen[number], own)
    assert after.program.metadata.provenance == {"made": "for tests"}
    assert after.program.metadata.labels == ("a label",)


def test_nothing_is_folded_where_that_saves_nothing():
    program = Branches(5).program(
        1, ["dense", "table", "dense"], one_input=True, chained=False
    )
    assert fold(validate(program)).program is program


def test_a_difference_is_named():
    one, other = (
        validate(
            Branches(seed).program(2, ["dense"], one_input=True, chained=False)
        )
        for seed in (6, 7)
    )
    assert first_difference(one, one) is None
    assert (
        first_difference(one, other)
        == "output 'y0' at (0, 0) is 54; expected 46"
    )
