"""A forked process has an engine's sessions, but not their threads."""

from __future__ import annotations

import os
import signal
import time
import warnings

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
        not hasattr(os, "fork"), reason="this system forks no process"
    ),
]

SAME = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}


def test_an_engine_that_ran_before_a_fork_runs_in_the_child() -> None:
    case = Convolution(
        "conv2d", (1, 9, 9, 16), (3, 3), 16, SAME, groups=1, stages="rescale"
    )
    engine, sample = native.Engine(validate(case.program(0))), case.sample(1)
    expected = engine.run(sample, threads=2)["y"]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Python warns of every fork of a process with threads
        child = os.fork()
    if child == 0:
        same = all(
            np.array_equal(engine.run(sample, threads=2)["y"], expected)
            for _ in range(2)
        )
        os._exit(0 if same else 1)
    assert _ending(child) == 0


def _ending(child: int, seconds: float = 60) -> int | None:
    """How a child ended, or None, and it is killed, if it does not."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
