"""The engine beside onnxruntime, XLA and IREE on the same program, one sample, alternating in one run.

The engine, onnxruntime and IREE have one thread; XLA takes what it wants.

python -m benchmarks.exported [--repetitions N] [--only engine,IREE] P.cvm...
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import click
import numpy as np
import onnxruntime

from benchmarks.iree_machine import Iree
from benchmarks.measure import Turn, alternate, warmed
from cvm.errors import BadInput
from cvm.export.onnx.model import model_of
from cvm.export.samples import sample
from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.validate import Proven, validate
from cvm.runtime.native import Engine
from cvm.xla.machine import Xla

Outputs = dict[str, IntArray]
Inputs = dict[str, IntArray]
Run = Callable[[], Outputs]
OURS = "engine"


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--repetitions", default=50, show_default=True)
@click.option("--only", default="", help="Names of contenders, with commas.")
def main(paths: tuple[Path, ...], repetitions: int, only: str) -> None:
    """Print the median of each in milliseconds, and the engine's share of it. Exit code 1: an output differs."""
    chosen = only.split(",") if only else list(CONTENDERS)
    for path in paths:
        form = validate(file_format.read(path))
        runs = _runs(form, chosen)
        _require_equal(path, {name: run() for name, run in runs.items()})
        turns = {
            name: Turn(warmed(run), repetitions) for name, run in runs.items()
        }
        readings = alternate(turns, repetitions)
        times = {name: median(seconds) for name, seconds in readings.items()}
        shown = [
            f"{name} {1000 * time:.3f} ({times[OURS] / time:.2f})"
            for name, time in times.items()
        ]
        click.echo(f"{path.stem}: {', '.join(shown)}")


def _runs(form: Proven, chosen: list[str]) -> dict[str, Run]:
    """What is installed and can express the program."""
    inputs = {
        port.name: sample(port, number)
        for number, port in enumerate(form.program.inputs)
    }
    runs: dict[str, Run] = {}
    for name in (OURS, *chosen):
        try:
            runs[name] = CONTENDERS[name](form, inputs)
        except (ImportError, BadInput) as problem:
            click.echo(f"without {name}: {problem}", err=True)
    return runs


def _engine(form: Proven, inputs: Inputs) -> Run:
    engine = Engine(form)
    return lambda: engine.run(inputs)


def _onnxruntime(form: Proven, inputs: Inputs) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model_of(form).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    names = [port.name for port in form.program.outputs]
    return lambda: dict(zip(names, session.run(None, inputs), strict=True))


def _xla(form: Proven, inputs: Inputs) -> Run:
    xla = Xla(form)
    return lambda: xla.run(inputs)


def _iree(form: Proven, inputs: Inputs) -> Run:
    iree = Iree(form)
    return lambda: iree.run(inputs)


CONTENDERS: dict[str, Callable[[Proven, Inputs], Run]] = {
    OURS: _engine,
    "onnxruntime": _onnxruntime,
    "XLA": _xla,
    "IREE": _iree,
}


def _require_equal(path: Path, answers: dict[str, Outputs]) -> None:
    expected = answers[OURS]
    for name, outputs in answers.items():
        for port, array in expected.items():
            if not np.array_equal(outputs[port], array):
                raise click.ClickException(f"{path}: {port} differs on {name}")


if __name__ == "__main__":
    main()
