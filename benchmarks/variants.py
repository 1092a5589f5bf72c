"""The models that `make accuracy` compares, and the ways to quantize each.

The ways are ours and the peers', one line each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.models import SHARED

SAMPLES = 100  # images on which everyone calibrates


@dataclass(frozen=True)
class Subject:
    """A trained model with a ready config, and the number of images that test it."""

    name: str
    images: int

    @property
    def path(self) -> Path:
        """The model's file."""
        return SHARED / "onnx" / f"{self.name}_fp32.onnx"

    @property
    def absent(self) -> str | None:
        """The reason why the model cannot be measured, or None."""
        if self.path.exists() and (SHARED / "images").is_dir():
            return None
        return f"{self.name}: {self.path} is absent (MRT_SHARED may name the folder that holds data/)"


SUBJECTS = (
    Subject("squeezenet1.1", 500),
    Subject("mobilenetv2_torchvision", 500),
    Subject("mobilenetv1_0.25_keras", 500),
    Subject("cifar10_resnet20", 2000),
)

OURS = "mrt"
YARDSTICK = "onnxruntime"  # the variant whose time is the unit of all others'


@dataclass(frozen=True)
class Variant:
    """One way to quantize.

    It is a peer's recipe, or `mrt convert` with options and lines under [quantization]
    of the config.
    """

    key: str
    title: str
    recipe: str = OURS
    options: tuple[str, ...] = ()
    settings: str = ""
    only: tuple[str, ...] = ()  # the models; all, if none is named

    def is_for(self, model: str) -> bool:
        """Whether this model is quantized in this way."""
        return not self.only or model in self.only


# Models with channelwise convolutions.
MOBILENETS = ("mobilenetv2_torchvision", "mobilenetv1_0.25_keras")

# Models with residual blocks.
WITH_STREAMS = ("mobilenetv2_torchvision", "cifar10_resnet20")

STAGES = tuple(
    Variant(key, f"mrt, `--refine {stages}`", options=("--refine", stages))
    for key, stages in (
        ("mrt-unrefined", "none"),
        ("mrt-scales", "scales"),
        ("mrt-centres", "scales,centres"),
        ("mrt-weights", "scales,centres,weights"),
        ("mrt-unfitted", "scales,centres,weights,biases"),
        ("mrt-untwinned", "scales,centres,fit,weights,biases"),
    )
)

VARIANTS = (
    Variant(YARDSTICK, "onnxruntime, defaults", recipe="onnxruntime"),
    Variant(
        "onnxruntime-minmax",
        "onnxruntime, per channel, minmax",
        recipe="onnxruntime-minmax",
    ),
    Variant(
        "onnxruntime-percentile",
        "onnxruntime, per channel, percentile 99.999",
        recipe="onnxruntime-percentile",
    ),
    Variant("nncf", "NNCF", recipe="nncf"),
    Variant("mrt", "**mrt**, 8 bits"),
    Variant(
        "mrt-bytes",
        "**mrt**, 8 bits, `--input-dtype u8`",
        options=("--input-dtype", "u8"),
    ),
    Variant(
        "mrt-fine",
        "mrt, 8 bits between layers, weights of 15, `--weight-bits 15 --input-dtype u8`",
        options=("--weight-bits", "15", "--input-dtype", "u8"),
    ),
    Variant(
        "extra",
        "mrt, `--extra-products 0.3 --input-dtype u8`",
        options=("--extra-products", "0.3", "--input-dtype", "u8"),
    ),
    Variant(
        "mrt-affine", "mrt, `--scheme affine`", options=("--scheme", "affine")
    ),
    Variant(
        "mrt-shift",
        "mrt, powers of two only, `--scales shift`",
        options=("--scales", "shift"),
    ),
    Variant(
        "mrt-16",
        "mrt, `--activation-bits 16`",
        options=("--activation-bits", "16"),
    ),
    Variant(
        "mrt-streams",
        "mrt, `--stream-bits 16`",
        options=("--stream-bits", "16"),
        only=WITH_STREAMS,
    ),
    Variant(
        "mrt-channelwise",
        "mrt, `--channelwise-bits 16 --input-dtype u8`",
        options=("--channelwise-bits", "16", "--input-dtype", "u8"),
        only=MOBILENETS,
    ),
    Variant(
        "mrt-mixed",
        "mrt, mixed precision, `--target-agreement 0.988`",
        options=("--target-agreement", "0.988"),
    ),
    Variant(
        "mrt-minmax",
        "mrt, `--observer minmax`",
        options=("--observer", "minmax"),
    ),
    Variant(
        "mrt-percentile",
        "mrt, `--observer percentile`",
        options=("--observer", "percentile"),
    ),
    *STAGES,
    Variant(
        "mrt-per-tensor",
        "mrt, one scale for all weights of a layer",
        settings="per_channel = false",
    ),
    Variant(
        "mrt-signed",
        "mrt, without the unsigned range",
        settings="unsigned = false",
    ),
    Variant(
        "mrt-uncorrected",
        "mrt, without bias correction",
        settings="bias_correction = false",
    ),
    Variant(
        "mrt-unrefined-uncorrected",
        "mrt, `--refine none`, without bias correction",
        options=("--refine", "none"),
        settings="bias_correction = false",
    ),
    Variant(
        "mrt-4",
        "mrt, `--weight-bits 4`",
        options=("--weight-bits", "4"),
        only=("cifar10_resnet20",),
    ),
)
