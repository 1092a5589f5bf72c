"""Clusters for tests: of processes on this machine, or of none at all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """Dask's own cluster of processes with one thread each, which are started anew when they are lost."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        yield cluster


def pids_of(cluster: Any) -> list[int]:
    return [nanny.pid for nanny in cluster.workers.values()]


class Backwards:
    """In place of `Cluster`: works on the last block first, on copies, in this process."""

    def map(
        self,
        work: Callable[[Any, Any], Any],
        common: Any,
        blocks: Iterable[Any],
    ) -> Iterator[tuple[Any, Any]]:
        waiting = list(blocks)
        answers = [
            work(common, copy.deepcopy(block)) for block in reversed(waiting)
        ]
        yield from zip(waiting, reversed(answers), strict=True)
