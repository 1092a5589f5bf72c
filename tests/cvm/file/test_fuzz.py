"""Mutated files and programs are refused by name or are programs like any other; none crashes, hangs or eats memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from cvm.instructions import INSTRUCTIONS
from tests.support.fuzzing import corpus, fuzz
from tests.support.nasty_programs import NASTY

QUICK = (
    "maps_for_instructions",
    "arrays_for_operands",
    "one_weight_read_by_many_convolutions",
    "many_constants_without_data",
    "many_live_intervals",
    "one_table_read_by_many_channels",
    "one_small_value_joined_to_itself",
    "long_names",
    "too_many_names",
)
PROBE = """
import json, resource, sys, time
from cvm.file import format as file_format
from cvm.errors import CvmError
from cvm.proof.validate import validate
from tests.support.nasty_programs import NASTY

data = NASTY[sys.argv[1]]()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 64 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
started = time.process_time()
try:
    validate(file_format.decode(data))
    outcome = "proven"
except CvmError as problem:
    outcome = type(problem).__name__
print(json.dumps({"outcome": outcome, "seconds": time.process_time() - started, "bytes": len(data)}))
"""


PLAN_PROBE = """
import json, resource, sys, time
from cvm.file import format as file_format
from cvm.plan.fuse import fused
from cvm.plan.unfused import unfused
from cvm.proof.validate import validate
from tests.support.nasty_programs import NASTY

form = validate(file_format.decode(NASTY[sys.argv[1]]()))
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 512 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
started = time.process_time()
for plan in (fused(form), unfused(form)):
    assert plan.arena_bytes <= plan.largest_live_bytes + 64 * len(plan.steps)
print(json.dumps(time.process_time() - started))
"""
PLANNED = (
    "many_live_values",
    "one_value_in_many_concats",
    "many_small_instructions",
    "many_casts_to_and_fro",
    "many_reshapes_of_rank_6",
    "one_small_value_joined_to_itself",
)


def test_the_corpus_holds_every_instruction() -> None:
    assert set(INSTRUCTIONS) == {
        item.name for program in corpus() for item in program.instructions
    }


def test_4500_mutations() -> None:
    outcomes = fuzz(1_000_000, 4500)
    least = {"Malformed": 1000, "Invalid": 500, "proven": 300, "Unproven": 1}
    assert set(outcomes) == set(least)
    assert all(outcomes[way] >= count for way, count in least.items()), (
        f"one way to end is hardly met: {outcomes}"
    )


def test_500_mutations_within_64_megabytes() -> None:
    tracemalloc.start()
    fuzz(2_000_000, 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.slow
def test_200000_mutations() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        results = list(
            pool.map(fuzz, range(3_000_000, 3_200_000, 5000), [5000] * 40)
        )
    assert sum(sum(outcomes.values()) for outcomes in results) == 200_000


limits_a_process = pytest.mark.skipif(
    sys.platform != "linux",
    reason="limits a process through /proc and RLIMIT_AS",
)


@limits_a_process
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in NASTY
    ],
)
def test_a_nasty_megabyte_is_judged_in_64_megabytes_and_seconds(
    name: str,
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROBE, name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["bytes"] < 2_000_000
    assert found["seconds"] < 30


@limits_a_process
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in PLANNED[:2] else [pytest.mark.slow]
        )
        for name in PLANNED
    ],
)
def test_a_nasty_program_that_is_proven_is_planned_in_seconds(
    name: str,
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PLAN_PROBE, name],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) < 30
