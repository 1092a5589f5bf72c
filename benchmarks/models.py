"""The networks: origins, float graphs for the peers, our programs, real images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

import cvm
from benchmarks.cache import ROOT, converter, digest, made
from cvm.file import format as cvm_format
from cvm.proof.cost import cost
from cvm.runtime.executable import Executable
from mrt import frontend
from mrt.config import Config, ModelSettings, load_config
from mrt.pipeline import convert
from mrt.project import load, open_data

SHARED = Path(os.environ.get("MRT_SHARED", ROOT.parent / "shared")) / "data"
IMAGES = SHARED / "images" / "imagenet_calibration"
# The images for the peers' quantizers; more would change their scales, not their speed.
PEER_SAMPLES = 16
SEED = 0

Image = Mapping[str, npt.NDArray[np.float32]]  # by input name


@dataclass(frozen=True)
class Source:
    """A file of the shared data, with its ready config.

    `samples` is the number of images that calibrate our program.
    """

    file: Path
    config: str
    samples: int | None = None  # None for as many as the config names


SOURCES = {
    "resnet50_v1": Source(
        SHARED / "mxnet" / "zoo" / "resnet50_v1-symbol.json", "squeezenet1.1", 8
    ),
    "squeezenet1.1": Source(
        SHARED / "onnx" / "squeezenet1.1_fp32.onnx", "squeezenet1.1"
    ),
    "mobilenetv2": Source(
        SHARED / "onnx" / "mobilenetv2_torchvision_fp32.onnx",
        "mobilenetv2_torchvision",
    ),
    "yolox_nano": Source(SHARED / "onnx" / "yolox_nano.onnx", "yolox_nano"),
}


@dataclass(frozen=True)
class Model:
    """A network, ready for every contender."""

    name: str
    config: Config
    float_path: Path  # the imported ONNX graph with static shapes, the same for all peers
    program_path: Path

    @cached_property
    def program(self) -> Executable:
        """Our program."""
        return cvm.load(self.program_path)

    @cached_property
    def images(self) -> list[Image]:
        """Preprocessed pictures.

        The peers are calibrated on all, and everyone is timed on the first.
        """
        data = replace(self.config.calibration_data, samples=PEER_SAMPLES)
        return list(
            open_data(frontend.load(self.float_path).model, self.config, data)
        )

    @property
    def multiply_accumulates(self) -> int:
        """The multiply-accumulates of one image."""
        return cost(self.program).work.multiply_accumulates


def absent(name: str) -> str | None:
    """Return the reason why a model is absent, or None."""
    for path in (SOURCES[name].file, IMAGES):
        if not path.exists():
            return f"{name}: {path} is absent (MRT_SHARED may name the folder that holds data/)"
    return None


def prepare(name: str) -> Model:
    """Return the float graph and the program.

    They are those of an earlier run if nothing that decides them has changed.
    """
    config = _config(SOURCES[name])

    def make_float(folder: Path) -> None:
        model = load(config).model
        (folder / f"{name}.onnx").write_bytes(
            ir.to_proto(model).SerializeToString(deterministic=True)
        )

    random_weights = config.model.random_weights
    float_folder = made(
        f"{name}-float",
        [_files(config), random_weights, converter()],
        make_float,
    )
    return Model(
        name, config, float_folder / f"{name}.onnx", _program(name, config)
    )


def fast_on_avx2(model: Model) -> Model:
    """Return the model with the program that `--fast-on avx2` makes."""
    quantization = replace(model.config.quantization, fast_on="avx2")
    config = replace(model.config, quantization=quantization)
    return replace(
        model, config=config, program_path=_program(model.name, config)
    )


def _program(name: str, config: Config) -> Path:
    options = [
        config.model.random_weights,
        repr(config.preprocessing),
        repr(config.calibration),
        repr(config.quantization),
    ]
    samples = config.calibration_data.samples

    def make(folder: Path) -> None:
        program = convert(
            config, table=None, progress=lambda what, done, total: None
        ).proven.program
        (folder / f"{name}.cvm").write_bytes(cvm_format.encode(program))

    key = [_files(config), options, samples, converter()]
    return made(f"{name}-program", key, make) / f"{name}.cvm"


def _files(config: Config) -> list[str]:
    """Return the digests of the model's files."""
    paths = (config.model.path, config.model.params)
    return [digest(path) for path in paths if path is not None]


def _config(source: Source) -> Config:
    """Return the ready config, with the files under MRT_SHARED."""
    config = load_config(ROOT / "configs" / f"{source.config}.toml")
    data = replace(
        config.calibration_data,
        path=IMAGES,
        samples=source.samples or config.calibration_data.samples,
    )
    settings = (
        _with_weights(source.file)
        if source.file.suffix == ".json"
        else ModelSettings(source.file)
    )
    return replace(config, model=settings, calibration_data=data)


def _with_weights(symbol: Path) -> ModelSettings:
    """Return settings with random weights.

    A symbol of the zoo has none, and seeded ones suffice to measure speed.
    """
    return ModelSettings(
        symbol, random_weights=SEED, shapes={"data": (1, 3, 224, 224)}
    )
