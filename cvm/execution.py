"""A loaded program, and running many samples through it: in order, with the same results for any number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from cvm import boundary, trace
from cvm.errors import Trap
from cvm.program import Input, IntArray, Output
from cvm.reference import interpreter
from cvm.validate import Proven, WellFormed


@dataclass(frozen=True)
class Executable(Proven):
    """A proven program, ready to run."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Name, type and interval of each input."""
        return self.program.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Name and value number of each output; `types[value]` is its type."""
        return self.program.outputs

    def run(self, arrays: Mapping[str, npt.NDArray[Any]], *, threads: int = 1) -> dict[str, IntArray]:
        """Integers by input name, one sample or many, to integers by output name."""
        return run(self, arrays, threads=threads)


@dataclass(frozen=True)
class Result:
    """What one sample gave: its outputs and, if traced, the digest of every instruction's value."""

    outputs: dict[str, IntArray]
    digests: tuple[bytes, ...]


def run(
    form: WellFormed, arrays: Mapping[str, npt.NDArray[Any]], *, checked: bool = False, threads: int = 1
) -> dict[str, IntArray]:
    """Split into samples, run them, join their outputs."""
    samples = boundary.split_samples(form.program, arrays)
    results = (item.outputs for item in run_samples(form, samples, checked=checked, threads=threads))
    return boundary.join_outputs(form, results, len(samples), batch=boundary.is_batch(form.program, arrays))


def run_samples(
    form: WellFormed,
    samples: Sequence[Mapping[str, IntArray]],
    *,
    checked: bool = False,
    traced: bool = False,
    threads: int = 1,
) -> Iterator[Result]:
    """The results in order, at most 2 per thread waiting. A trap is that of the first sample that traps."""

    def one(number: int) -> Result:
        digests: list[bytes] = []
        observe = trace.observer(digests) if traced else None
        try:
            outputs = interpreter.run(form, samples[number], checked=checked, observe=observe)
        except Trap as trap:
            raise Trap(f"sample {number}: {trap}") from None
        return Result(outputs, tuple(digests))

    return map(one, range(len(samples))) if threads == 1 else _in_threads(one, len(samples), threads)


def _in_threads(one: Callable[[int], Result], count: int, threads: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number in range(count):
                if len(waiting) == 2 * threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(one, number))
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
