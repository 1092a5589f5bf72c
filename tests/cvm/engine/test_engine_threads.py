"""A step is divided into as many parts as threads are asked for, by no more threads than there are cores."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cvm.proof.validate import validate
from cvm.runtime import native
from tests.support.convolution_programs import Convolution

pytestmark = [
    pytest.mark.skipif(
        not native.available(), reason="the native engine is not built"
    ),
    pytest.mark.skipif(
        not hasattr(os, "sched_setaffinity"),
        reason="this system gives a process all cores",
    ),
]

SAME = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}
CASE = Convolution(
    "conv2d", (1, 9, 9, 16), (3, 3), 16, SAME, groups=1, stages="rescale"
)


@pytest.fixture
def one_core() -> Iterator[None]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("one_core")
def test_on_one_core_there_is_one_thread() -> None:
    engine, sample = native.Engine(validate(CASE.program(0))), CASE.sample(1)
    expected, before = engine.run(sample)["y"], _threads()
    for threads in (2, 3, 8):
        answer = engine.run(sample, threads=threads)["y"]
        np.testing.assert_array_equal(answer, expected)
    assert _threads() == before


def test_every_core_has_a_thread() -> None:
    cores = len(os.sched_getaffinity(0))
    engine, sample = native.Engine(validate(CASE.program(0))), CASE.sample(1)
    before = _threads()
    engine.run(sample, threads=256)
    assert _threads() - before == min(cores, 256) - 1


def _threads() -> int:
    gc.collect()  # engines that nobody holds any more still have theirs
    return len(list(Path("/proc/self/task").iterdir()))
