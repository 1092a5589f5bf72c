"""The engine beside onnxruntime on the same program exported to ONNX, one thread, one sample.

python -m benchmarks.exported_onnx [--repetitions N] P.cvm...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnxruntime

from cvm.export.onnx.model import model_of
from cvm.export.samples import sample
from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.runtime.native import Engine


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
        inputs = {
            item.name: sample(item, number)
            for number, item in enumerate(form.program.inputs)
        }
        engine, session = Engine(form), _session(form)
        ours = engine.run(inputs)
        theirs = session.run(None, inputs)
        ports = form.program.outputs
        pairs = zip(ports, theirs, strict=True)
        if not all(np.array_equal(ours[p.name], array) for p, array in pairs):
            raise click.ClickException(f"{path}: an output differs")
        fast = _fastest(lambda: engine.run(inputs), repetitions)  # noqa: B023
        slow = _fastest(lambda: session.run(None, inputs), repetitions)  # noqa: B023
        click.echo(f"{path.stem}: engine {fast:.1f}, onnxruntime {slow:.1f}")


def _session(form: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model_of(form).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )


def _fastest(run: Callable[[], Any], repetitions: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
