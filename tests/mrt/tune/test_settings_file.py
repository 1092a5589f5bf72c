"""Settings written as TOML read back as what was meant, whatever layers are called."""

import tomllib
from pathlib import Path

import pytest

from mrt.config import load_config
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.tune.settings_file import settings_text

NAMES = [
    "conv0",
    "a/b:0",
    'quote"d',
    "back\\slash",
    "new\nline",
    "dotted.name",
    "ä 漢 🎈",
    "\x7f\x1f",
    "layers",
    "",
]
CONTENT = {
    "model": {
        "path": "/data/m.onnx",
        "shapes": {"x y": [1, 3]},
        "outputs": ["a", "b"],
    },
    "preprocessing": {
        "scale": "1/255",
        "mean": [0.5, 0.25],
        "std": 2.0,
        "layout": "NHWC",
    },
    "inputs": {"x y": {"mean": 1.5}},
    "calibration": {
        "data": "/data/images",
        "samples": 100,
        "held_back": 33,
        "arrays": {"x": "x_test"},
    },
    "quantization": {"bits": 4, "scheme": "affine"},
    "layers": {"old": {"bits": 8}},
}


def written(folder: Path, options: QuantizeOptions) -> Path:
    path = folder / "found.toml"
    path.write_text(
        settings_text(CONTENT, options, folder=folder, title="a title"),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("name", NAMES[:-1])
def test_any_name_of_a_layer_survives(name, tmp_path):
    options = QuantizeOptions(layers={name: LayerBits(15, 16)})
    content = tomllib.loads(
        written(tmp_path, options).read_text(encoding="utf-8")
    )
    assert content["layers"] == {
        name: {"weight_bits": 15, "activation_bits": 16}
    }


def test_the_file_is_read_as_the_settings_it_was_made_of_with_the_options_found(
    tmp_path,
):
    options = QuantizeOptions(
        8,
        8,
        "shift",
        "affine",
        layers={"c": LayerBits(15), "d": LayerBits(None, 16)},
    )
    config = load_config(written(tmp_path, options))
    assert config.quantization == options
    assert config.model.path is not None
    assert config.model.path.resolve() == Path("/data/m.onnx")
    assert config.model.shapes == {"x y": (1, 3)}
    assert config.model.outputs == ("a", "b")
    assert config.preprocessing.mean == (0.5, 0.25)
    assert config.inputs["x y"].mean == (1.5,)
    assert config.inputs["x y"].layout == "NHWC"
    assert (
        config.calibration_data.samples,
        config.calibration_data.held_back,
    ) == (
        100,
        33,
    )
    assert config.calibration_data.arrays == {"x": "x_test"}


def test_paths_are_relative_to_the_file(tmp_path):
    text = settings_text(
        {"model": {"path": str(tmp_path / "models/m.onnx")}},
        QuantizeOptions(),
        folder=tmp_path / "out",
        title="t",
    )
    assert 'path = "../models/m.onnx"' in text


FORMER = """\
# Converting by this file gives the same program without a search.

# Our own classifier.
[model]
path = "/data/m.onnx"  # exported in May

[quantization]
bits = 8  # sets both
scheme = "affine"  # skewed values

# Layers that hurt:
[layers."conv1"]
weight_bits = 12  # found by hand
"""


def test_the_comments_of_a_file_survive(tmp_path):
    options = QuantizeOptions(
        6, 8, "real", "affine", layers={"conv1": LayerBits(15)}
    )
    text = settings_text(
        tomllib.loads(FORMER),
        options,
        folder=Path("/data"),
        title="Converting by this file and the same --table gives the same program.",
        former=FORMER,
    )
    assert text.splitlines()[0].endswith(
        "the same --table gives the same program."
    )
    assert "without a search" not in text
    assert "# Our own classifier." in text
    assert 'path = "m.onnx" # exported in May' in " ".join(text.split())
    assert 'scheme = "affine"  # skewed values' in text
    assert "weight_bits = 15  # found by hand" in text
    assert "# Layers that hurt:" in text
    assert (
        "bits = 8  # sets both" not in text
    )  # the two that it sets are written out
    file = tmp_path / "c.toml"
    file.write_text(text)
    assert load_config(file).quantization == options
