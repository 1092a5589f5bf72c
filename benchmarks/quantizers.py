"""The peers' own recipes to quantize a float ONNX model to 8-bit integers on samples."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path

from benchmarks.models import Image
from benchmarks.peers import Unavailable
from mrt.calibrate.samples import Samples


@dataclass(frozen=True)
class Recipe:
    """A recipe: `make` writes the quantized model of a float one to a path.

    `modules` are imported before the clock starts.
    """

    modules: tuple[str, ...]
    make: Callable[[Path, Samples, Path], None]

    def prepare(self) -> None:
        """Import the modules; raise Unavailable where one is not installed."""
        for module in self.modules:
            package = module.partition(".")[0]
            if importlib.util.find_spec(package) is None:
                raise Unavailable(
                    f"{package} is not installed (pip install .[bench])"
                )
            import_module(module)

    def run(self, model: Path, samples: Samples, result: Path) -> None:
        """Quantize, without any output."""
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            self.make(model, samples, result)


def _onnxruntime(model: Path, samples: Samples, result: Path) -> None:
    """Quantize by `quantize_static` with its defaults."""
    from onnxruntime.quantization import quantize_static

    quantize_static(str(model), str(result), Images(samples))


def _per_channel(
    method: str, **extra: float
) -> Callable[[Path, Samples, Path], None]:
    """Quantize after onnxruntime's own preparation, with a scale for each channel of weights."""

    def make(model: Path, samples: Samples, result: Path) -> None:
        from onnxruntime.quantization import (
            CalibrationMethod,
            QuantFormat,
            quantize_static,
        )

        quantize_static(
            str(_prepared(model, result)),
            str(result),
            Images(samples),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            calibrate_method=CalibrationMethod[method],
            extra_options=extra,
        )

    return make


def _nncf(model: Path, samples: Samples, result: Path) -> None:
    """Quantize by NNCF with its defaults, which correct biases, after the same preparation.

    Without that, convolutions may have no biases to correct.
    """
    import nncf
    import onnx

    prepared = onnx.load(_prepared(model, result))
    onnx.save(
        nncf.quantize(
            prepared, nncf.Dataset(list(samples)), subset_size=len(samples)
        ),
        result,
    )


def _prepared(model: Path, result: Path) -> Path:
    """Prepare the model as onnxruntime does before quantization.

    Normalisations are folded, and shapes are written down.
    """
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path = result.with_name("prepared.onnx")
    quant_pre_process(str(model), str(path), skip_symbolic_shape=True)
    return path


_ONNXRUNTIME = (
    "onnxruntime.quantization",
    "onnxruntime.quantization.shape_inference",
)

RECIPES = {
    "onnxruntime": Recipe(_ONNXRUNTIME, _onnxruntime),
    "onnxruntime-minmax": Recipe(_ONNXRUNTIME, _per_channel("MinMax")),
    "onnxruntime-percentile": Recipe(
        _ONNXRUNTIME, _per_channel("Percentile", CalibPercentile=99.999)
    ),
    "nncf": Recipe((*_ONNXRUNTIME, "onnx", "nncf", "nncf.onnx"), _nncf),
}


@dataclass
class Images:
    """The images as onnxruntime's CalibrationDataReader."""

    samples: Iterable[Image]

    def __post_init__(self) -> None:
        self._left = iter(self.samples)

    def get_next(self) -> Image | None:
        """Return the next image; None after the last."""
        return next(self._left, None)
