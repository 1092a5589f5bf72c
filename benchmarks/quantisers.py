"""The peers' own recipes from a float ONNX model and calibration samples to a model of 8-bit integers."""

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
    """`make` writes the quantised model of a float one to a path; `modules` are imported before the clock starts."""

    modules: tuple[str, ...]
    make: Callable[[Path, Samples, Path], None]

    def prepare(self) -> None:
        """Import what it needs; Unavailable where that is not installed."""
        for module in self.modules:
            package = module.partition(".")[0]
            if importlib.util.find_spec(package) is None:
                raise Unavailable(
                    f"{package} is not installed (pip install .[bench])"
                )
            import_module(module)

    def run(self, model: Path, samples: Samples, result: Path) -> None:
        """Quantise, without a word."""
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            self.make(model, samples, result)


def _onnxruntime(model: Path, samples: Samples, result: Path) -> None:
    """`quantize_static` with nothing said."""
    from onnxruntime.quantization import quantize_static

    quantize_static(str(model), str(result), Images(samples))


def _per_channel(
    method: str, **extra: float
) -> Callable[[Path, Samples, Path], None]:
    """After onnxruntime's own preparation, with the weights of each channel on a scale of their own."""

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
    """Its defaults, which correct biases, after the same preparation: without, convolutions may have none to correct."""
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
    """The model as onnxruntime simplifies it before quantisation: normalisations folded, shapes written down."""
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
    """What onnxruntime calls a CalibrationDataReader."""

    samples: Iterable[Image]

    def __post_init__(self) -> None:
        self._left = iter(self.samples)

    def get_next(self) -> Image | None:
        """The next one; None after the last."""
        return next(self._left, None)
