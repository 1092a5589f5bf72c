"""Runs the float model and the integer program over the same samples, and counts.

A few samples run at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from cvm.program import Program
from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from cvm.runtime.machine import Machine
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.errors import BadData
from mrt.evaluate.report import Accuracy, Report
from mrt.evaluate.scores import Hits, Noise, ranking
from mrt.progress import Progress

Outputs = dict[str, npt.NDArray[Any]]
_TOP = 5


@dataclass
class _Tally:
    """All counts so far."""

    of_float: Hits = field(default_factory=Hits)
    of_integer: Hits = field(default_factory=Hits)
    agreements: int = 0
    ranked: int = 0  # samples whose first output is a vector of classes
    noise: dict[str, Noise] = field(default_factory=dict)
    float_seconds: float = 0.0
    integer_seconds: float = 0.0

    def add(
        self, real: Outputs, integer: Outputs, label: int | None, source: str
    ) -> None:
        """Count one sample."""
        for name, values in real.items():
            self.noise.setdefault(name, Noise()).add(values, integer[name])
        first = next(iter(real))
        best_real, best_integer = (
            ranking(real[first], _TOP),
            ranking(integer[first], _TOP),
        )
        if best_real is None or best_integer is None:
            return
        self.ranked += 1
        self.agreements += best_real[0] == best_integer[0]
        if label is not None:
            if label >= real[first].size:
                raise BadData(
                    f"{source}: class {label} among the labels, but output '{first}' has {real[first].size}"
                )
            self.of_float.add(label, best_real)
            self.of_integer.add(label, best_integer)


def evaluate(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    progress: Progress | None = None,
    *,
    threads: int = 1,
) -> Report:
    """Compare the float model with the program made from it.

    `threads` share the integer side, for speed only.
    """
    check_same_interface(model, program.program, samples)
    session = FloatSession(model)
    runs = machine.choose(program)
    tally = _Tally()
    labels: Iterator[int | None] = iter(samples.labels or [None] * len(samples))
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(samples, 4 * threads):
            start = time.perf_counter()
            real = [session.run(sample) for sample in batch]
            middle = time.perf_counter()
            integer = list(
                pool.map(
                    lambda sample: _run_integer(runs, program.program, sample),
                    batch,
                )
            )
            tally.float_seconds += middle - start
            tally.integer_seconds += time.perf_counter() - middle
            for pair in zip(real, integer, strict=True):
                tally.add(*pair, next(labels), samples.source)
            done += len(batch)
            if progress is not None:
                progress("comparing", done, len(samples))
    return _report(tally, done, labelled=samples.labels is not None)


def _run_integer(runs: Machine, program: Program, sample: Sample) -> Outputs:
    """Return the program's outputs as real numbers."""
    return dict(
        boundary.dequantize(
            program, runs.run(boundary.quantize(program, sample))
        )
    )


def _batches(samples: Samples, size: int) -> Iterator[list[Sample]]:
    stream = iter(samples)
    while batch := list(islice(stream, size)):
        yield batch


def check_same_interface(
    model: ir.Model, program: Program, samples: Samples
) -> None:
    """Raise BadData unless the program has the model's inputs and outputs.

    There must also be at least one sample.
    """
    if not len(samples):
        raise BadData(
            f"{samples.source}: holds no samples; expected at least one"
        )
    pairs = (
        (
            "inputs",
            [item.name for item in program.inputs],
            [str(value.name) for value in model_inputs(model)],
        ),
        (
            "outputs",
            [item.name for item in program.outputs],
            [str(value.name) for value in model.graph.outputs],
        ),
    )
    for what, found, expected in pairs:
        if sorted(found) != sorted(expected):
            raise BadData(
                f"the program's {what} are {', '.join(found)}, the model's {', '.join(expected)}"
                "; give the program that was made from this model, with the same --outputs"
            )


def _report(tally: _Tally, count: int, *, labelled: bool) -> Report:
    def accuracy(hits: Hits, seconds: float) -> Accuracy:
        speed = count / max(seconds, 1e-9)
        if not (labelled and tally.ranked):
            return Accuracy(None, None, speed)
        return Accuracy(hits.top1 / count, hits.top5 / count, speed)

    return Report(
        samples=count,
        of_float=accuracy(tally.of_float, tally.float_seconds),
        of_integer=accuracy(tally.of_integer, tally.integer_seconds),
        agreement=tally.agreements / count if tally.ranked else None,
        snr_db={name: item.decibels() for name, item in tally.noise.items()},
    )
