"""At least 2,000 random valid programs: the engine gives the reference's bytes on every instruction set and 1..4 threads.

The seed of a program is in its failure; the seeds of a test are in its name. `make test` runs the first ones on two numbers of
threads each, `make slow` all on all.
"""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program import IntArray, Program
from cvm.proof.validate import validate
from cvm.reference import interpreter
from cvm.runtime import native
from cvm.runtime.native import Engine
from tests.support.cvm_programs import random_inputs, random_program
from tests.support.image_networks import image_network
from tests.support.plan_programs import (
    branching_program,
    halves_program,
    parts_program,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

AT_LEAST, SHARE = 2000, 50
SHARES = [range(first, first + SHARE) for first in range(0, AT_LEAST, SHARE)]
FAST = SHARES[:3]


def program_of_seed(seed: int) -> Program:
    """Of twenty: twelve of any instructions, two of image size, six built like networks.

    Of the last, two have weights in halves, and one has shortcuts of which products multiply a part.
    """
    if seed % 10 == 0:
        return image_network(seed)
    if seed % 10 == 3:
        return halves_program(seed)
    if seed % 20 == 2:
        return parts_program(seed)
    return (
        branching_program(seed)
        if seed % 10 < 4
        else random_program(seed, steps=4 + seed % 31)
    )


def assert_same(
    found: dict[str, IntArray], expected: dict[str, IntArray], what: str
) -> None:
    assert found.keys() == expected.keys(), what
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, f"{what}, output {name}"
        np.testing.assert_array_equal(
            found[name], value, f"{what}, output {name}"
        )


def assert_the_engine_agrees(seed: int, *, in_full: bool) -> None:
    """By every instruction set; on 1..4 threads in full, else on two of these, in turns."""
    form = validate(program_of_seed(seed))
    sample = random_inputs(form.program, seed)
    values: dict[int, IntArray] = {}
    expected = interpreter.run(form, sample, observe=values.__setitem__)
    for place, isa in enumerate(native.isas()):
        first = 1 + (seed // 2 + place) % 2
        fused = Engine(form, isa=isa)
        traced = Engine(form, isa=isa, traceable=True)
        for threads in (1, 2, 3, 4) if in_full else (first, first + 2):
            assert_same(
                fused.run(sample, threads=threads),
                expected,
                f"seed {seed}, {isa}, {threads} threads",
            )
        threads, seen = 1 + seed % 4, {}
        traced.observe(
            sample,
            lambda number, value, seen=seen: seen.update(
                {number: value.copy()}
            ),
            threads=threads,
        )
        assert list(seen) == list(values), f"seed {seed}, {isa}"
        for number, value in values.items():
            np.testing.assert_array_equal(
                seen[number],
                value,
                f"seed {seed}, {isa}, {threads} threads, %{number}",
            )


def run_share(seeds: range, *, in_full: bool) -> int:
    print(f"seeds {seeds.start}..{seeds.stop - 1}")
    count = 0
    for seed in seeds:
        assert_the_engine_agrees(seed, in_full=in_full)
        count += 1
    return count


@pytest.mark.parametrize(
    "seeds", FAST, ids=lambda seeds: f"{seeds.start}..{seeds.stop - 1}"
)
def test_the_engine_gives_the_bytes_of_the_reference(seeds: range) -> None:
    assert run_share(seeds, in_full=False) == SHARE


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", SHARES, ids=lambda seeds: f"{seeds.start}..{seeds.stop - 1}"
)
def test_every_program_gives_the_bytes_of_the_reference_on_1_to_4_threads(
    seeds: range,
) -> None:
    assert run_share(seeds, in_full=True) == SHARE


def test_the_shares_are_2000_programs_and_no_two_the_same() -> None:
    seeds = [seed for share in SHARES for seed in share]
    assert len(set(seeds)) == len(seeds) >= 2000
