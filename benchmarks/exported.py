"""The engine beside onnxruntime and XLA on the same program, one sample.

The engine and onnxruntime have one thread; XLA takes what it wants.

python -m benchmarks.exported [--repetitions N] P.cvm...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import onnxruntime

from cvm.export.onnx.model import model_of
from cvm.export.samples import sample
from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.validate import Proven, validate
from cvm.runtime.native import Engine
from cvm.xla.machine import Xla

Outputs = dict[str, IntArray]
Run = Callable[[], Outputs]


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--repetitions", default=50, show_default=True)
def main(paths: tuple[Path, ...], repetitions: int) -> None:
    """Print the fastest run of each in milliseconds. Exit code 1: an output differs."""
    for path in paths:
        form = validate(file_format.read(path))
        runs = _contenders(form)
        _require_equal(path, {name: run() for name, run in runs.items()})
        times = {name: _fastest(run, repetitions) for name, run in runs.items()}
        shown = ", ".join(f"{name} {t:.1f}" for name, t in times.items())
        click.echo(f"{path.stem}: {shown}")


def _contenders(form: Proven) -> dict[str, Run]:
    inputs = {
        item.name: sample(item, number)
        for number, item in enumerate(form.program.inputs)
    }
    names = [item.name for item in form.program.outputs]
    engine, session, xla = Engine(form), _session(form), Xla(form)
    return {
        "engine": lambda: engine.run(inputs),
        "onnxruntime": lambda: dict(
            zip(names, session.run(None, inputs), strict=True)
        ),
        "XLA": lambda: xla.run(inputs),
    }


def _require_equal(path: Path, answers: dict[str, Outputs]) -> None:
    expected = answers["engine"]
    for name, found in answers.items():
        for port, array in expected.items():
            if not np.array_equal(found[port], array):
                raise click.ClickException(f"{path}: {port} differs on {name}")


def _session(form: Proven) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model_of(form).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )


def _fastest(run: Run, repetitions: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
