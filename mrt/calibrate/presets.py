"""Named ways to prepare pictures. A preset sets scale, mean, std and colour order; what is given beside it wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.preprocessor_file import read_preprocessor
from mrt.errors import BadOption
from mrt.option_values import File, Form
from mrt.options import option


@dataclass(frozen=True)
class Preset:
    """What is done to a byte, and which models were trained so."""

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    color: str
    does: str
    used_by: str

    def values(self) -> dict[str, Any]:
        """The preset as fields of Preprocessing."""
        return {
            "scale": self.scale,
            "mean": self.mean,
            "std": self.std,
            "color": self.color,
        }


PRESETS: Mapping[str, Preset] = {
    "imagenet": Preset(
        scale=1 / 255,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        color="RGB",
        does="(x/255 - mean) / std, mean 0.485,0.456,0.406, std 0.229,0.224,0.225",
        used_by="torchvision, timm, Gluon's model zoo",
    ),
    "caffe": Preset(
        scale=1.0,
        mean=(103.939, 116.779, 123.68),
        std=(1.0,),
        color="BGR",
        does="x - mean in BGR, mean 103.939,116.779,123.68",
        used_by="Caffe, Keras's VGG and ResNet",
    ),
    "tf": Preset(
        scale=1 / 127.5,
        mean=(1.0,),
        std=(1.0,),
        color="RGB",
        does="x/127.5 - 1, so -1 to 1",
        used_by="TensorFlow, Keras's MobileNet and Inception",
    ),
    "0..1": Preset(
        scale=1 / 255,
        mean=(0.0,),
        std=(1.0,),
        color="RGB",
        does="x/255, so 0 to 1",
        used_by="many small models",
    ),
    "raw": Preset(
        scale=1.0,
        mean=(0.0,),
        std=(1.0,),
        color="RGB",
        does="x as it is, 0 to 255",
        used_by="models that begin with their own normalization",
    ),
}
_NUMBERS = ("preset", "preprocessor", "scale", "mean", "std")
"""Options that state how numbers are prepared; layouts, colours and sizes alone do not."""


_PresetName = Annotated[
    str,
    Form(
        f"one of {', '.join(PRESETS)}; a preprocessor_config.json is for --preset or the key preprocessor",
        choices=tuple(PRESETS),
    ),
]


@dataclass(frozen=True)
class PresetOption:
    """The name of a bundle of other options, as it is given."""

    preset: _PresetName | None = option(
        None,
        help=f"How the model's pictures are prepared: {', '.join(PRESETS)}, or a preprocessor_config.json.",
        allowed=tuple(PRESETS),
    )
    preprocessor: File | None = option(
        None,
        help="In place of a preset, Hugging Face's preprocessor_config.json.",
        on_command_line=False,
    )


def check_presets(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why the options are refused if they name two bundles; else None."""
    if given.keys() >= {"preset", "preprocessor"}:
        return "preset", "preprocessor is given, too; give one of the two"
    return None


def prepared(base: Preprocessing, given: Mapping[str, Any]) -> Preprocessing:
    """Return `base` with the options in `given` that are not None."""
    values = {name: value for name, value in given.items() if value is not None}
    stated = base.stated or any(name in values for name in _NUMBERS)
    preset, file = values.pop("preset", None), values.pop("preprocessor", None)
    bundle: Mapping[str, Any] = {}
    if preset is not None:
        bundle = PRESETS[preset].values()
    elif file is not None:
        bundle = read_preprocessor(file)
    return replace(base, **{**bundle, **values}, stated=stated)


def require_stated(step: Preprocessing, finding: str) -> None:
    """Raise BadOption, with the presets to choose from, unless options state what is done to the numbers of pictures."""
    if step.stated:
        return
    width = max(map(len, PRESETS))
    ways = [
        f"--preset {name:<{width}}  {preset.does} ({preset.used_by})"
        for name, preset in PRESETS.items()
    ]
    raise BadOption(
        f"{finding}; it was decided when the model was trained. Add one of",
        [
            *ways,
            "--preset preprocessor_config.json, Hugging Face's file",
            '--scale, --mean and --std; or the line preset = "imagenet" under [preprocessing] in a config',
        ],
    )
