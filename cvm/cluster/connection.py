"""The connection to a Dask cluster: blocks go to its workers, results come back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from cvm import __version__
from cvm.errors import BadInput, ClusterFailed

HOW_TO_GET_DASK = "to get it, pip install 'mrt-cvm[cluster]'"
PATIENCE = 20  # seconds for the scheduler to answer, and for a first worker
WAITING_PER_THREAD = 2
"""The most blocks under way for each thread of the workers: one runs while one is sent."""

PACKAGES = ("numpy", "onnxruntime")  # that compute what is compared or measured
SCHEMES = ("tcp://", "tls://", "ws://", "wss://")
SETTINGS = {
    # A model is large, and goes to every worker once: that is no mistake to warn of.
    "distributed.admin.large-graph-warning-threshold": "1 TiB",
    "distributed.comm.timeouts.connect": f"{PATIENCE}s",
}

Common = TypeVar("Common")
Block = TypeVar("Block")
Answer = TypeVar("Answer")


class Cluster:
    """The workers at one address."""

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address

    def map(
        self,
        work: Callable[[Common, Block], Answer],
        common: Common,
        blocks: Iterable[Block],
    ) -> Iterator[tuple[Block, Answer]]:
        """Yield each block with `work(common, block)`, in the order of the blocks.

        Few blocks are read ahead. A block whose worker is lost goes to another one. What
        `work` raises is raised here, for the first block that failed.
        """
        submit = self._client.submit
        # As a task, and not as scattered data: it can be made again if its worker is lost.
        sent = submit(_itself, common, pure=False)
        waiting: deque[tuple[Block, Any]] = deque()
        try:
            for block in blocks:
                if len(waiting) >= self._most_waiting():
                    yield self._first_of(waiting)
                answer = submit(
                    _worked, work, sent, block, versions(), pure=False
                )
                waiting.append((block, answer))
            while waiting:
                yield self._first_of(waiting)
        finally:
            for _, answer in waiting:
                answer.cancel()

    def _most_waiting(self) -> int:
        threads: int = sum(self._client.ncores().values())
        return WAITING_PER_THREAD * max(1, threads)

    def _first_of(self, waiting: deque[tuple[Block, Any]]) -> tuple[Block, Any]:
        from distributed import CancelledError, KilledWorker

        block, answer = waiting.popleft()
        try:
            return block, answer.result()
        except KilledWorker as problem:
            raise ClusterFailed(
                f"cluster {self._address}: {problem.allowed_failures + 1} workers were lost on the same block of "
                "samples; have they enough memory?"
            ) from None
        except (CancelledError, OSError) as problem:
            raise ClusterFailed(
                f"cluster {self._address}: the connection was lost ({type(problem).__name__})"
            ) from None


@contextmanager
def connected(address: str | None) -> Iterator[Cluster | None]:
    """Connect to the scheduler at this address, tcp://HOST:PORT; without one, there is no cluster.

    ClusterFailed if nobody answers there, or if it has no workers.
    """
    if address is None:
        yield None
        return
    if not address.startswith(SCHEMES):
        raise BadInput(
            f"cluster {address!r}: expected the address of a Dask scheduler, such as tcp://host:8786"
        )
    dask, client = _client(address)
    with dask.config.set(SETTINGS), client:
        yield Cluster(client, address)


def _client(address: str) -> tuple[Any, Any]:
    """Dask, and a client with at least one worker behind it."""
    try:
        import dask
        import distributed
    except ImportError:
        raise BadInput(
            f"cluster {address}: Dask is not installed; {HOW_TO_GET_DASK}"
        ) from None
    try:
        make: Any = distributed.Client
        client = make(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise ClusterFailed(
            f"cluster {address}: no Dask scheduler answers there; start one with: dask scheduler"
        ) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        raise ClusterFailed(
            f"cluster {address}: it has no workers; start some with: dask worker {address}"
        ) from None
    return dask, client


def versions() -> dict[str, str]:
    """Return the versions that must be the same on every machine."""
    installed = {"mrt-cvm": __version__}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "none"
    return installed


def _itself(common: Common) -> Common:
    return common


def _worked(
    work: Callable[[Common, Block], Answer],
    common: Common,
    block: Block,
    expected: dict[str, str],
) -> Answer:
    """Work on a block, on a worker that has the same versions as the sender."""
    installed = versions()
    for package, required in expected.items():
        if installed[package] != required:
            raise ClusterFailed(
                f"a worker of the cluster has {package} {installed[package]}, and here is {required}; install the same"
            )
    return work(common, block)
