"""How fast the engine runs a program here: latency, giga-MAC/s, share of the processor's peak, where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from cvm.plan.steps import Plan, Step
from cvm.program import DTYPES, IntArray, Program
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from cvm.runtime import native
from cvm.runtime.machine import Native
from cvm.runtime.native import Engine

SEED = 0
WARM_UP = 2
SECONDS = 2.0  # how long the runs go on if no number of them is given
AT_LEAST, AT_MOST = 10, 1000
PEAK_READINGS = 5
TIMED_AT_MOST = 20  # runs in which every step is timed


@dataclass(frozen=True)
class StepTime:
    """One step of the plan: the instructions that it covers, and its median time and share of all steps' times.

    `products` is how its sums are computed: from "bytes"; from "blocks" of rows of bytes (AMX);
    from 16-bit "words", of which a processor multiplies fewer at once; by "winograd"; "" for a
    step without that choice.
    `epilogue` is where its sums become the result: in "registers"; a "tile" at a time, once or
    twice through registers; or by the "chain", operation by operation, which is slower; in the
    "next" step, which computes this one's as it needs them; "" for a step without that choice.
    """

    step: int
    instructions: tuple[str, ...]
    result: int
    median_ms: float
    share: float
    products: str
    epilogue: str


@dataclass(frozen=True)
class Measurement:
    """A measurement by `cvm bench`. The share of the peak is None where nothing is multiplied."""

    median_ms: float
    p90_ms: float
    gmacs: float
    peak_share: float | None
    isa: str
    threads: int
    repetitions: int
    multiply_accumulates: int
    arena_bytes: int
    steps: tuple[StepTime, ...]  # slowest first


def measure(
    form: Proven, *, threads: int = 1, repetitions: int | None = None
) -> Measurement:
    """Run on seeded random integers from the declared intervals: first as always, then timing every step."""
    engine = Native(form).engine()
    sample = random_sample(form.program)
    for _ in range(WARM_UP):
        engine.run(sample, threads=threads)
    times = list(
        _times(lambda: engine.run(sample, threads=threads), repetitions)
    )
    macs = cost(form).work.multiply_accumulates
    middle = median(times)
    gmacs = macs / middle / 1e9
    return Measurement(
        middle * 1e3,
        percentile(times, 90) * 1e3,
        gmacs,
        _share_of_peak(gmacs, threads),
        engine.core.isa,
        threads,
        len(times),
        macs,
        engine.core.arena_bytes,
        _steps(
            engine,
            [
                engine.timed(sample, threads=threads)
                for _ in range(min(len(times), TIMED_AT_MOST))
            ],
        ),
    )


def as_json(measured: Measurement) -> dict[str, Any]:
    """The measurement for other programs."""
    return asdict(measured)


def random_sample(program: Program) -> dict[str, IntArray]:
    """The same integers on every machine, from the whole of each input's interval."""
    random = np.random.default_rng(SEED)
    return {
        port.name: random.integers(
            port.lo, port.hi, port.type.shape, np.int64, endpoint=True
        ).astype(DTYPES[port.type.dtype])
        for port in program.inputs
    }


def percentile(times: list[float], percent: int) -> float:
    """The smallest time that at least this share of all times do not exceed."""
    return sorted(times)[-(-percent * len(times) // 100) - 1]


def _times(
    run: Callable[[], object], repetitions: int | None
) -> Iterator[float]:
    """Seconds of each run: as many as asked for, or as fit into a given time."""
    begin, done = time.perf_counter(), 0
    while done < (AT_MOST if repetitions is None else repetitions):
        start = time.perf_counter()
        if repetitions is None and done >= AT_LEAST and start - begin > SECONDS:
            return
        run()
        yield time.perf_counter() - start
        done += 1


def _share_of_peak(gmacs: float, threads: int) -> float | None:
    """The best of several readings; interference can only lower a reading."""
    return (
        gmacs / max(native.peak(threads) for _ in range(PEAK_READINGS))
        if gmacs
        else None
    )


def _steps(engine: Engine, runs: list[list[int]]) -> tuple[StepTime, ...]:
    medians = [median(times) for times in zip(*runs, strict=True)]
    total = sum(medians) or 1
    steps = [
        StepTime(
            number,
            covered(engine.plan, step),
            engine.plan.source(step.result),
            time / 1e6,
            time / total,
            products,
            epilogue,
        )
        for number, (step, time, products, epilogue) in enumerate(
            zip(
                engine.plan.steps,
                medians,
                engine.core.products(),
                engine.core.epilogues(),
                strict=True,
            )
        )
    ]
    return tuple(
        sorted(
            steps, key=lambda step_time: (-step_time.median_ms, step_time.step)
        )
    )


def covered(plan: Plan, step: Step) -> tuple[str, ...]:
    """The names of the instructions that a step computes; none if it copies an input or an output."""
    program = plan.form.program
    return tuple(
        program.instructions[value - program.first_instruction].name
        for value in step.covers
    )
