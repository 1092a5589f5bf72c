"""Runs the float model on the workers of a cluster, and gathers there.

A worker gathers the statistics of a block of samples. They are merged here in the order
of the blocks: counts and extremes merge exactly, and sums of floats are added sample by
sample, so that the table is the one that this machine alone would write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from cvm.cluster import Cluster, opened
from mrt.calibrate.gathering import Gathering
from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession, SessionSource

BLOCK = 8
"""The samples that go to a worker at once.

What comes back is hardly larger for many samples than for one, but few samples occupy more
workers. The result is the same for any number.
"""


@dataclass(frozen=True, eq=False)
class BlockWork:
    """What every worker needs: the float model, and what it is to gather, still empty."""

    session: SessionSource
    empty: Gathering


@dataclass(frozen=True)
class CalibrationBlock:
    """Consecutive samples, of which the first has this number."""

    first: int
    samples: list[Sample]


def spread(
    cluster: Cluster,
    session: SessionSource,
    samples: Iterable[Sample],
    empty: Gathering,
    merge: Callable[[Gathering], None],
) -> Generator[int]:
    """Gather from all samples, merge block by block, and yield the number of samples merged."""
    work = BlockWork(session, empty)
    for block, gathered in cluster.map(_gathered, work, _blocks(samples)):
        merge(gathered)
        yield block.first + len(block.samples)


def _gathered(work: BlockWork, block: CalibrationBlock) -> Gathering:
    session = opened(work.session, FloatSession)
    gathering = copy.deepcopy(work.empty)
    for number, sample in enumerate(block.samples, block.first):
        gathering.gather(number, sample, session.run(sample))
    return gathering


def _blocks(samples: Iterable[Sample]) -> Iterator[CalibrationBlock]:
    stream, first = iter(samples), 0
    while some := list(islice(stream, BLOCK)):
        yield CalibrationBlock(first, some)
        first += len(some)
