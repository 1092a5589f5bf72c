"""The float model and the program, opened side by side: on this machine, or on the workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from cvm.cluster import opened
from cvm.file import format as file_format
from cvm.program import Program
from cvm.proof.validate import validate
from cvm.runtime import boundary, machine
from cvm.runtime.boundary import Clipping
from cvm.runtime.machine import Machine
from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession, SessionSource
from mrt.evaluate.all_rows import AllRows, Outputs

BLOCK = 16  # samples that go to a worker at once


@dataclass(frozen=True)
class BothOutputs:
    """The outputs of some samples as real numbers, what was clipped of their inputs, and the time taken."""

    of_float: list[Outputs]
    of_integer: list[Outputs]
    clipping: list[tuple[Clipping, ...]]
    float_seconds: float
    integer_seconds: float


@dataclass(frozen=True, eq=False)
class BothSides:
    """A session of the float model with that of the rows which it lacks, and a machine for the program."""

    session: FloatSession
    rows: AllRows
    machine: Machine
    program: Program

    def run(self, samples: Sequence[Sample], pool: Executor) -> BothOutputs:
        """Run both on some samples, one side after the other; the pool's threads share the samples."""
        start = time.perf_counter()
        real = list(pool.map(self.session.run, samples))
        middle = time.perf_counter()
        integer = list(pool.map(self._run_integer, samples))
        end = time.perf_counter()
        outputs = [outputs for outputs, _ in integer]
        return BothOutputs(
            list(pool.map(self.rows.like, samples, real, outputs)),
            outputs,
            [clipping for _, clipping in integer],
            middle - start,
            end - middle,
        )

    def _run_integer(
        self, sample: Sample
    ) -> tuple[Outputs, tuple[Clipping, ...]]:
        quantized = boundary.quantize_and_count(self.program, sample)
        integers = self.machine.run(quantized.integers)
        outputs = dict(boundary.dequantize(self.program, integers))
        return outputs, quantized.clipping


@dataclass(frozen=True, eq=False)
class RemoteSides:
    """All that a worker opens both sides from: it proves the program anew."""

    session: SessionSource
    rows: SessionSource | None
    program: bytes

    def open(self) -> BothSides:
        """Open them on this machine."""
        form = validate(file_format.decode(self.program))
        return BothSides(
            FloatSession(self.session),
            AllRows(self.rows),
            machine.choose(form),
            form.program,
        )


def run_on_worker(sides: RemoteSides, samples: Sequence[Sample]) -> BothOutputs:
    """Run both on some samples, on a worker of a cluster, whose threads take other samples."""
    with ThreadPoolExecutor(1) as pool:
        return opened(sides, RemoteSides.open).run(samples, pool)
