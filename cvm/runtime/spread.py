"""Runs many samples on the workers of a cluster: in order, with the results of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cvm.cluster import Cluster, opened
from cvm.file import format as file_format
from cvm.program import IntArray, Program
from cvm.proof.validate import check, validate
from cvm.runtime import machine
from cvm.runtime.execution import Result, run_samples
from cvm.runtime.machine import Machine

BLOCK_BYTES = 2**20  # of the samples that go to a worker at once
MOST_SAMPLES = 256  # in a block


@dataclass(frozen=True, eq=False)
class RemoteMachine:
    """A program's file, and how a worker is to run it."""

    program: bytes
    engine: str
    checked: bool
    traced: bool

    def open(self) -> Machine:
        """Decode, check and prove the program, as on any machine."""
        program = file_format.decode(self.program)
        form = check(program) if self.checked else validate(program)
        runs = machine.choose(form, self.engine, checked=self.checked)
        runs.prepare(traced=self.traced)
        return runs


@dataclass(frozen=True)
class SampleBlock:
    """Consecutive samples, of which the first has this number."""

    first: int
    samples: Sequence[Mapping[str, IntArray]]


@dataclass(frozen=True)
class ClusterRun:
    """A cluster, and the machine that its workers are to choose."""

    cluster: Cluster
    engine: str
    checked: bool

    def run_samples(
        self,
        program: Program,
        samples: Sequence[Mapping[str, IntArray]],
        *,
        traced: bool,
    ) -> Iterator[Result]:
        """The results in order, as `execution.run_samples` yields them."""
        remote = RemoteMachine(
            file_format.encode(program), self.engine, self.checked, traced
        )
        for _, results in self.cluster.map(_run, remote, _blocks(samples)):
            yield from results


def _run(remote: RemoteMachine, block: SampleBlock) -> list[Result]:
    runs = opened(remote, RemoteMachine.open)
    return list(
        run_samples(
            runs, block.samples, traced=remote.traced, first=block.first
        )
    )


def _blocks(
    samples: Sequence[Mapping[str, IntArray]],
) -> Iterator[SampleBlock]:
    if not samples:
        return
    size = sum(array.nbytes for array in samples[0].values())
    step = max(1, min(MOST_SAMPLES, BLOCK_BYTES // max(size, 1)))
    for first in range(0, len(samples), step):
        yield SampleBlock(first, samples[first : first + step])
