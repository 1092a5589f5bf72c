"""Mutated arrays, receipts and traces are refused in words or taken; none crashes, warns, hangs or eats memory."""

import tracemalloc
from pathlib import Path

import pytest

from tests.support.fuzzing_inputs import fuzz_inputs

WAYS = ("arrays refused", "arrays taken", "document refused", "document taken")


def test_3000_mutations_within_16_megabytes(tmp_path: Path) -> None:
    """The first ones fill numpy's and Python's caches, which are not counted."""
    fuzz_inputs(1_000_000, 500, tmp_path)
    tracemalloc.start()
    outcomes = fuzz_inputs(1_000_500, 2500, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(outcomes) == set(WAYS)
    assert min(outcomes.values()) > 100, outcomes
    assert peak < 2**24


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2_000_000, 2_100_000, 10_000))
def test_100000_mutations(seed: int, tmp_path: Path) -> None:
    outcomes = fuzz_inputs(seed, 10_000, tmp_path)
    assert sum(outcomes.values()) == 10_000
