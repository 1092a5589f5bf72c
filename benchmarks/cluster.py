"""Measures how many samples a second a cluster on this machine takes, and what more workers would wait for.

    python -m benchmarks.cluster --config configs/mobilenetv2_torchvision.toml --samples 64 --workers 1,2,4

All kinds of work take turns, round after round, so that a slow moment falls on all alike. Workers have one thread each.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

from cvm.cluster import Cluster, connected
from cvm.runtime.boundary import quantize
from cvm.runtime.execution import run_samples
from cvm.runtime.machine import choose
from cvm.runtime.spread import ClusterRun
from mrt.calibrate import spread
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Sample, Samples
from mrt.config import Config, load_config
from mrt.evaluate import evaluate
from mrt.job import ConversionJob
from mrt.pipeline import STAGES, convert
from mrt.project import open_calibration_data, rewritten
from mrt.refine import FloatStatistics

ROUNDS = 3
Work = Callable[[Cluster | None], object]


def kinds_of_work(config: Config) -> tuple[dict[str, Work], int]:
    """Return the work by command, and the number of samples of each."""
    loaded = rewritten(config)
    samples = kept(open_calibration_data(loaded.model, config))
    form = convert(config, table=None, progress=lambda *_: None).proven
    integers = [quantize(form.program, sample) for sample in samples]
    machine = choose(form)

    def calibrated(cluster: Cluster | None) -> object:
        statistics = FloatStatistics(
            loaded.model, config.refinement, len(samples)
        )
        return calibrate(
            loaded.model,
            samples,
            config.calibration,
            model_sha256="",
            callbacks=[statistics],
            cluster=cluster,
        )

    def replayed(cluster: Cluster | None) -> object:
        if cluster is None:
            return list(run_samples(machine, integers))
        there = ClusterRun(cluster, "auto", checked=False)
        return list(there.run_samples(form.program, integers, traced=False))

    work: dict[str, Work] = {
        "calibrate": calibrated,
        "evaluate": lambda cluster: evaluate(
            loaded.model, form, samples, cluster=cluster
        ),
        "replay": replayed,
    }
    return work, len(samples)


def kept(samples: Samples) -> Samples:
    """Return samples that are read once: how fast files are read is not the question here."""
    read = list(samples)

    def again() -> Iterator[Sample]:
        return iter(read)

    return replace(samples, _read=again)


def throughput(config: Config, workers: Sequence[int]) -> list[str]:
    """Rows of a table: samples a second without a cluster, and the ratio with so many workers."""
    from distributed import LocalCluster

    work, count = kinds_of_work(config)
    with ExitStack() as stack:
        clusters: list[Cluster | None] = [None]
        for number in workers:
            local = LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
            )
            address = stack.enter_context(local).scheduler_address
            clusters.append(stack.enter_context(connected(address)))
        return [
            row_of(name, kind, clusters, count) for name, kind in work.items()
        ]


def row_of(
    name: str, work: Work, clusters: Sequence[Cluster | None], count: int
) -> str:
    """Return the row of one kind of work, from the medians of all rounds."""
    for cluster in clusters:  # sessions and machines are opened
        work(cluster)
    seconds: list[list[float]] = [[] for _ in clusters]
    for _ in range(ROUNDS):
        for cluster, times in zip(clusters, seconds, strict=True):
            start = time.perf_counter()
            work(cluster)
            times.append(time.perf_counter() - start)
    alone, *others = map(median, seconds)
    ratios = " | ".join(f"{alone / other:.2f}" for other in others)
    return f"| {name} | {count / alone:.1f} | {ratios} |"


def shares(config: Config) -> list[str]:
    """The time of each stage of a conversion, and what one block of calibration sends and takes here."""
    job, lines = ConversionJob(config, lambda *_: None), []
    for stage in STAGES:
        start = time.perf_counter()
        stage(job)
        lines.append(
            f"{stage.__name__:10} {time.perf_counter() - start:6.2f} s"
        )
    return [*lines, *_of_a_block(config)]


class _Measured:
    """In place of a cluster: notes bytes and seconds of each block."""

    def __init__(self) -> None:
        self.sent = 0
        self.blocks: list[tuple[int, int]] = []
        self.merging: list[float] = []

    def map(self, work, common, blocks):  # type: ignore[no-untyped-def]
        self.sent = len(pickle.dumps(common, protocol=5))
        for block in blocks:
            answer = work(common, copy.deepcopy(block))
            sizes = [
                len(pickle.dumps(message, protocol=5))
                for message in (block, answer)
            ]
            self.blocks.append((sizes[0], sizes[1]))
            start = time.perf_counter()
            yield block, answer
            self.merging.append(time.perf_counter() - start)


def _of_a_block(config: Config) -> list[str]:
    loaded = rewritten(config)
    samples = kept(open_calibration_data(loaded.model, config))
    statistics = FloatStatistics(loaded.model, config.refinement, len(samples))
    measured = _Measured()
    calibrate(
        loaded.model,
        samples,
        config.calibration,
        model_sha256="",
        callbacks=[statistics],
        cluster=measured,  # type: ignore[arg-type]
    )
    there = median(size for size, _ in measured.blocks)
    back = median(size for _, size in measured.blocks)
    return [
        f"to every worker, once: {measured.sent / 1e6:.1f} MB",
        f"a block of {spread.BLOCK} samples: {there / 1e6:.1f} MB there, {back / 1e6:.1f} MB back, "
        f"merged in {1000 * median(measured.merging):.0f} ms",
    ]


def main() -> None:
    """Print the table and the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--workers", default="1,2,4")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    data = replace(config.calibration_data, samples=arguments.samples)
    config = replace(config, calibration_data=data)
    workers = [int(number) for number in arguments.workers.split(",")]
    names = " | ".join(f"{number} workers" for number in workers)
    print(f"| work | samples a second without a cluster | {names} |")
    print(f"|---|---|{'---|' * len(workers)}")
    print("\n".join(throughput(config, workers)))
    print("\n".join(shares(config)))


if __name__ == "__main__":
    main()
