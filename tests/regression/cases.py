"""The models found by folder, each with its ready config where there is one: data, preprocessing, shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from benchmarks.zoo import architectures
from mrt.config import Config, DataSettings, ModelSettings, load_config
from mrt.refine import RefineOptions
from tests.support.shared_data import SHARED

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("onnx", "mxnet/trained", "mxnet/untrained")
SUFFIXES = ("-symbol.json", ".onnx")
CALIBRATION = 16  # samples
PICTURES, ARRAYS, NOISE = (
    24,
    200,
    4,
)  # samples to compare on: of a folder of pictures, of an .npz, made up

FEW = {
    "onnx/style_candy": 1
}  # samples, of a model of 20 billion multiply-accumulates
SHAPES = {
    "onnx/tract_byte_sb_bidi_lstm": {"input": (1, 4)}
}  # where the file leaves one open


@dataclass(frozen=True)
class Case:
    """One model by its folder and name."""

    name: str
    path: Path
    bits: tuple[int, ...] = (8, 16)

    @property
    def config(self) -> Config:
        """The ready config of this file, or none; with few samples."""
        found = _configs().get(self.path.name, Config())
        model = (
            replace(found.model, path=self.path)
            if found.model.path
            else ModelSettings(self.path)
        )
        model = replace(
            model, shapes={**model.shapes, **SHAPES.get(self.name, {})}
        )
        if model.params is not None:
            model = replace(
                model, params=self.path.with_name(model.params.name)
            )
        evaluation = (
            found.evaluation_data
            if found.evaluation_data.path
            else found.calibration_data
        )
        few = FEW.get(self.name)
        return replace(
            found,
            model=model,
            calibration_data=_limited(
                found.calibration_data, few or CALIBRATION
            ),
            evaluation_data=_limited(
                evaluation, few or _judges(evaluation.path)
            ),
        )


@dataclass(frozen=True)
class Published(Case):
    """An architecture without weights: with some from a seed, and plain rounding."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """To convert and compare on a sample of noise each."""
        model = ModelSettings(self.path, random_weights=0, shapes=self.shapes)
        data = DataSettings(samples=1)
        return Config(
            model=model,
            calibration_data=data,
            evaluation_data=data,
            refinement=RefineOptions.of(()),
        )


def cases(only: str = "") -> list[Case]:
    """Those that are here, of names that hold the text."""
    found = [
        Case(f"{folder}/{path.name.removesuffix(suffix)}", path)
        for folder in FOLDERS
        for suffix in SUFFIXES
        for path in sorted((SHARED / folder).glob(f"*{suffix}"))
    ]
    found += [
        Published(
            f"mxnet/published/{item.name}",
            item.path,
            bits=(8,),
            shapes=item.shapes,
        )
        for item in architectures()
    ]
    return [case for case in found if only in case.name]


@cache
def _configs() -> dict[str, Config]:
    """The ready configs by the name of the model's file."""
    configs = [
        load_config(path) for path in sorted((ROOT / "configs").glob("*.toml"))
    ]
    return {
        config.model.path.name: config
        for config in configs
        if config.model.path is not None
    }


def _judges(data: Path | None) -> int:
    return NOISE if data is None else ARRAYS if data.suffix else PICTURES


def _limited(data: DataSettings, most: int) -> DataSettings:
    """At most so many samples; of the shared folder where that has moved."""
    if data.path is None:
        return DataSettings(samples=most)
    _, moved, inside = data.path.as_posix().partition("/shared/data/")
    return replace(
        data, path=SHARED / inside if moved else data.path, samples=most
    )
