"""Runs many samples: in order, with the same results for any number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from cvm.errors import Trap
from cvm.program import IntArray
from cvm.proof.validate import WellFormed
from cvm.runtime import boundary, machine, trace
from cvm.runtime.arguments import at_least_1, named_arrays
from cvm.runtime.machine import Machine


@dataclass(frozen=True)
class Result:
    """The outputs of one sample and, if traced, the digest of every instruction's value."""

    outputs: dict[str, IntArray]
    digests: tuple[bytes, ...]


def run(
    form: WellFormed,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    checked: bool = False,
    threads: int = 1,
    engine: str = "auto",
) -> dict[str, IntArray]:
    """Split into samples, run them, join their outputs."""
    runs = machine.choose(form, engine, checked=checked)
    named = named_arrays(form.program.inputs, arrays, "input")
    return run_on(form, runs, named, threads)


def run_on(
    form: WellFormed,
    runs: Machine,
    arrays: Mapping[str, npt.NDArray[Any]],
    threads: int,
) -> dict[str, IntArray]:
    """As `run`, on a machine that was chosen before."""
    threads = at_least_1(threads, "threads")
    samples = boundary.split_samples(form.program, arrays)
    results = (
        result.outputs for result in run_samples(runs, samples, threads=threads)
    )
    return boundary.join_outputs(
        form,
        results,
        len(samples),
        batch=boundary.is_batch(form.program, arrays),
    )


def run_samples(
    runs: Machine,
    samples: Sequence[Mapping[str, IntArray]],
    *,
    traced: bool = False,
    threads: int = 1,
    first: int = 0,
) -> Iterator[Result]:
    """The results in order, at most 2 per thread waiting. A trap is that of the first sample that traps.

    `first` is the number of the first sample, by which a trap names its own.
    """
    spread = threads > 1 and (
        len(samples) >= threads or not runs.shares_a_sample
    )

    def one(number: int) -> Result:
        digests: list[bytes] = []
        observe = trace.observer(digests) if traced else None
        try:
            outputs = runs.run(
                samples[number],
                observe=observe,
                threads=1 if spread else threads,
            )
        except Trap as trap:
            raise Trap(f"sample {first + number}: {trap}") from None
        return Result(outputs, tuple(digests))

    return (
        _in_threads(one, len(samples), threads)
        if spread
        else map(one, range(len(samples)))
    )


def _in_threads(
    run_one: Callable[[int], Result], count: int, threads: int
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number in range(count):
                if len(waiting) == 2 * threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(run_one, number))
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
