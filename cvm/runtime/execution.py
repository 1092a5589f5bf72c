"""A loaded program, and running many samples through it: in order, with the same results for any number of threads."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy.typing as npt

from cvm.errors import BadInput, ClippedInput, Trap
from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.cost import cost
from cvm.proof.validate import Proven, WellFormed, validate
from cvm.runtime import boundary, machine, trace
from cvm.runtime.boundary import RealArray
from cvm.runtime.machine import Machine
from cvm.runtime.ports import Port, inputs_of, outputs_of

Arrays = Mapping[str, npt.NDArray[Any]] | npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Executable(Proven):
    """A proven program, ready to run, from several Python threads at once if need be."""

    machine: Machine = field(repr=False, compare=False)

    @cached_property
    def id(self) -> str:
        """The program id: SHA-256, in hexadecimal, of the file up to its metadata."""
        return file_format.program_id(self.program)

    @cached_property
    def cost(self) -> int:
        """The cost of one sample, the same number on every machine (SPEC section 5)."""
        return cost(self).total

    def verify(self) -> None:
        """Prove once more, from the program alone, that no input can make any value overflow.

        Raises a subclass of `cvm.errors.CvmError` with the reason, if it is not so.
        """
        validate(self.program)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, dtype, shape, interval, scale and zero point of each input."""
        return inputs_of(self)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The same of each output."""
        return outputs_of(self)

    def run(self, arrays: Arrays, *, threads: int = 1) -> dict[str, IntArray]:
        """Integers by input name, one sample or many, to integers by output name.

        The array of an only input may stand alone.

        Many samples are spread over the threads; one sample is shared among them, if the engine runs it.
        """
        return _run(self, self.machine, self._by_name(arrays), threads)

    def quantize(
        self,
        arrays: Arrays,
        *,
        strict: bool = False,
    ) -> dict[str, IntArray]:
        """Real numbers by input name to the integers that `run` takes, by the program's scales.

        Values outside the range of the calibration are clipped, with a warning of the
        category `cvm.errors.ClippedInput`; with `strict` they are refused by BadInput.
        """
        named = self._by_name(arrays)
        quantized = boundary.quantize_and_count(self.program, named)
        if strict:
            quantized.require_unclipped()
        for clipping in quantized.clipped:
            warnings.warn(str(clipping), ClippedInput, stacklevel=2)
        return quantized.integers

    def dequantize(
        self, arrays: Mapping[str, IntArray]
    ) -> dict[str, RealArray]:
        """The integers that `run` gave to real numbers, by the program's scales."""
        return boundary.dequantize(self.program, arrays)

    def _by_name(self, arrays: Arrays) -> Mapping[str, npt.NDArray[Any]]:
        if isinstance(arrays, Mapping):
            return arrays
        names = [item.name for item in self.program.inputs]
        if len(names) != 1:
            raise BadInput(
                f"one array for {len(names)} inputs; give arrays by name: {', '.join(names)}"
            )
        return {names[0]: arrays}

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{port.name} {port.dtype}{list(port.shape)}"
            for port in self.inputs
        )
        outputs = ", ".join(
            f"{port.name} {port.dtype}{list(port.shape)}"
            for port in self.outputs
        )
        return (
            f"<cvm program {self.id[:12]}...: {inputs} -> {outputs}; "
            f"{len(self.program.instructions)} instructions, proven, {self.machine.name}>"
        )


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
    return _run(
        form, machine.choose(form, engine, checked=checked), arrays, threads
    )


def _run(
    form: WellFormed,
    runs: Machine,
    arrays: Mapping[str, npt.NDArray[Any]],
    threads: int,
) -> dict[str, IntArray]:
    if threads < 1:
        raise BadInput(f"threads {threads}: expected at least 1")
    samples = boundary.split_samples(form.program, arrays)
    results = (
        item.outputs for item in run_samples(runs, samples, threads=threads)
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
) -> Iterator[Result]:
    """The results in order, at most 2 per thread waiting. A trap is that of the first sample that traps."""
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
            raise Trap(f"sample {number}: {trap}") from None
        return Result(outputs, tuple(digests))

    return (
        _in_threads(one, len(samples), threads)
        if spread
        else map(one, range(len(samples)))
    )


def _in_threads(
    one: Callable[[int], Result], count: int, threads: int
) -> Iterator[Result]:
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
