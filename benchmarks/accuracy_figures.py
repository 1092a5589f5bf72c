"""Measures one way to quantize one model.

It runs in a process of its own, so that its peak of memory is its own:

python -m benchmarks.accuracy_figures MODEL VARIANT CALIBRATION_IMAGES EVALUATION_IMAGES
"""

from __future__ import annotations

import json
import logging
import math
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cvm
from benchmarks.cache import ROOT
from benchmarks.engine_share import engine_share
from benchmarks.footprint import peak_bytes
from benchmarks.measure import seconds
from benchmarks.models import SHARED
from benchmarks.peers import Unavailable
from benchmarks.quantizers import RECIPES
from benchmarks.variants import OURS, VARIANTS, Variant
from cvm.proof.cost import cost
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession
from mrt.config import Config, load_config
from mrt.errors import MrtError
from mrt.evaluate.scores import Hits, Noise, ranking
from mrt.pictures import config_for
from mrt.project import load_to_run, open_data

Array = npt.NDArray[Any]
TOP = 5
THREADS = 2  # of the integer side, for speed only


@dataclass
class Figures:
    """All figures of one row of the tables; `failure` is the reason why there are no more."""

    model: str
    variant: str
    failure: str | None = None
    images: int = 0  # images on which it was evaluated
    float_top1: float = 0.0
    top1: float = 0.0
    agreement: float = 0.0
    snr_db: float = 0.0
    # Of the conversion, including images read and program written.
    seconds: float = 0.0
    # Of onnxruntime's default, measured just before.
    yardstick_seconds: float = 0.0
    # The most memory of the process until the end of the conversion.
    peak_bytes: int = 0
    program_bytes: int = 0
    # The multiply-accumulates of one image, for a program of ours.
    products: int | None = None
    # The engine's time for one image over onnxruntime's in float32.
    engine_share: float | None = None


def measure(figures: Figures, samples: int, images: int) -> Figures:
    """Quantize, then evaluate; without images, only quantize."""
    variant = next(
        candidate for candidate in VARIANTS if candidate.key == figures.variant
    )
    with tempfile.TemporaryDirectory() as folder:
        config_path = Path(folder) / "config.toml"
        config_path.write_text(
            _config_text(figures.model, variant), encoding="utf-8"
        )
        program = Path(folder) / (
            "program.cvm" if variant.recipe == OURS else "int8.onnx"
        )
        try:
            make = _maker(variant, config_path, samples, program)
            figures.seconds = seconds(make)
        except (MrtError, Unavailable) as problem:
            figures.failure = str(problem).splitlines()[-1].strip()
            return figures
        figures.peak_bytes = peak_bytes()
        figures.program_bytes = program.stat().st_size
        if images:
            _evaluate(figures, load_config(config_path), program, images)
    return figures


def _config_text(model: str, variant: Variant) -> str:
    """Return the ready config, with the files under MRT_SHARED and the variant's settings."""
    text = (ROOT / "configs" / f"{model}.toml").read_text(encoding="utf-8")
    return (
        text.replace("../../shared/data", SHARED.as_posix())
        + f"\n[quantization]\n{variant.settings}\n"
    )


def _maker(
    variant: Variant, config_path: Path, samples: int, program: Path
) -> Callable[[], None]:
    """Return the function that the clock measures, from the files to the file.

    All its modules are imported before.
    """
    if variant.recipe == OURS:
        from mrt import pipeline, settings  # noqa: F401 imported, as the peers' modules are
        from mrt.cli import cli

        words = [
            "convert",
            "--config",
            config_path,
            "--samples",
            samples,
            *variant.options,
            "-o",
            program,
        ]

        def make() -> None:
            with redirect_stdout(StringIO()):
                cli.main(
                    [str(word) for word in words],
                    prog_name="mrt",
                    standalone_mode=False,
                )

        return make
    recipe, config = RECIPES[variant.recipe], load_config(config_path)
    recipe.prepare()
    path = config.model.path
    assert path is not None
    return lambda: recipe.run(path, _calibration(config, samples), program)


def _calibration(config: Config, samples: int) -> Samples:
    return open_data(
        load_to_run(config).model,
        config,
        replace(config.calibration_data, samples=samples),
    )


def _evaluate(
    figures: Figures, config: Config, program: Path, images: int
) -> None:
    """Evaluate beside the float model in onnxruntime, on the first output."""
    if program.suffix == ".cvm":
        config = config_for(cvm.load(program).program, config)
    model = load_to_run(config).model
    samples = open_data(
        model, config, replace(config.evaluation_data, samples=images)
    )
    session = FloatSession(model)
    answer = (
        _ours(figures, program)
        if program.suffix == ".cvm"
        else _theirs(program)
    )
    if program.suffix == ".cvm":
        figures.engine_share = engine_share(model, program, next(iter(samples)))
    figures.images = len(samples)
    of_float, of_integer, agreements, noise = Hits(), Hits(), 0, Noise()
    for sample, label in zip(samples, samples.labels or (), strict=True):
        real = session.run(sample)[session.names[0]]
        integer = answer(sample)
        best = ranking(real, TOP), ranking(integer, TOP)
        assert best[0] is not None and best[1] is not None, (
            f"{figures.model} is no classifier"
        )
        of_float.add(label, best[0])
        of_integer.add(label, best[1])
        agreements += best[0][0] == best[1][0]
        noise.add(real, integer)
    figures.float_top1 = of_float.top1 / len(samples)
    figures.top1 = of_integer.top1 / len(samples)
    figures.agreement = agreements / len(samples)
    figures.snr_db = noise.decibels() or math.inf


def _ours(figures: Figures, program: Path) -> Callable[[Sample], Array]:
    executable = cvm.load(program)
    figures.products = cost(executable).work.multiply_accumulates
    name = executable.outputs[0].name
    return lambda sample: executable.dequantize(
        executable.run(executable.quantize(sample), threads=THREADS)
    )[name]


def _theirs(program: Path) -> Callable[[Sample], Array]:
    """Run the quantized graph exactly as it is written.

    onnxruntime's kernels for bytes add in 16 bits where a processor has no VNNI, and
    saturate.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(program), options, providers=["CPUExecutionProvider"]
    )
    return lambda sample: np.asarray(session.run(None, dict(sample))[0])


def main() -> None:
    """Print the figures as one line of JSON."""
    model, variant, samples, images = sys.argv[1:]
    logging.disable(logging.WARNING)  # disables the peers' advice
    print(
        json.dumps(
            asdict(measure(Figures(model, variant), int(samples), int(images)))
        )
    )


if __name__ == "__main__":
    main()
