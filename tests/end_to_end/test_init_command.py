"""`mrt init`: what it finds in a model and its data is what `mrt convert` then uses."""

import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from mrt.cli import cli

DIGITS = Path(__file__).resolve().parents[2] / "calibration_data" / "digits8"
SYMBOL = DIGITS / "resnet_digits8-symbol.json"


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> Path:
    """A convolution of pictures of 8 by 6 in 3 channels, of open batch."""
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["pixels", "w"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info(
                "pixels", TensorProto.FLOAT, ["n", 3, 8, 6]
            )
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight.astype(np.float32), "w")],
    )
    path = tmp_path / "net.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
        path,
    )
    return path


def written(result: Result, path: Path) -> tuple[dict, list[str]]:
    """The config, and the points that are still to be said."""
    assert result.exit_code == 0, result.output
    first, *points = result.stdout.splitlines()
    assert first == f"wrote {path}"
    return tomllib.loads(path.read_text()), points


def test_arrays_of_other_names_and_another_layout_are_found(
    model: Path, tmp_path: Path
) -> None:
    samples = np.random.default_rng(1).normal(size=(20, 8, 6, 3))
    data = tmp_path / "data.npz"
    np.savez(data, index=np.arange(20), photos=samples, labels=np.zeros(20))
    config, points = written(mrt("init", model, data), tmp_path / "net.toml")
    assert points == []
    assert config["model"] == {
        "path": "net.onnx",
        "shapes": {"pixels": [1, 3, 8, 6]},
    }
    assert config["preprocessing"] == {"layout": "NHWC"}
    assert config["calibration"] == {
        "data": "data.npz",
        "arrays": {"x": "photos"},
        "labels": "labels",
    }
    assert config["quantization"] == {}
    text = (tmp_path / "net.toml").read_text()
    assert "# bits = 8\n" in text
    assert text.startswith(
        "# Convert with: mrt convert --config net.toml --bits auto\n"
    )
    output = tmp_path / "by_config.cvm"
    by_config = ("--config", tmp_path / "net.toml", "--bits", "auto")
    result = mrt("convert", *by_config, "-o", output)
    assert result.exit_code == 0, result.output
    np.savez(tmp_path / "plain.npz", x=samples.transpose(0, 3, 1, 2))
    plain = tmp_path / "plain.cvm"
    words = ("convert", model, "--data", tmp_path / "plain.npz", "-o", plain)
    assert mrt(*words).exit_code == 0
    digests = [
        line
        for path in (output, plain)
        for line in mrt_id(path)
        if line.startswith("program ")
    ]
    assert digests[0] == digests[1]


def mrt_id(path: Path) -> list[str]:
    from cvm.cli import cli as cvm

    return CliRunner().invoke(cvm, ["digest", str(path)]).stdout.splitlines()


def test_two_arrays_that_fit_ask_which_one_is_the_input(
    model: Path, tmp_path: Path
) -> None:
    fits = np.zeros((9, 3, 8, 6))
    arrays = {"clean": fits, "noisy": fits, "labels": np.zeros(9)}
    np.savez(tmp_path / "d.npz", index=np.arange(9), **arrays)
    config, points = written(
        mrt("init", model, tmp_path / "d.npz"), tmp_path / "net.toml"
    )
    assert config["calibration"]["arrays"] == {"x": "clean"}
    (point,) = points
    assert "'clean' is the model's input: 'noisy' of the file" in point


def test_pictures_ask_how_they_are_prepared(
    model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (6, 8), (number, 9, 200)).save(
            folder / f"{number}.png"
        )
    path = tmp_path / "net.toml"
    config, points = written(mrt("init", model, folder), path)
    assert config["preprocessing"] == {}
    assert points == [
        "  to be said: how training prepared pictures, one of imagenet, caffe, tf, 0..1, raw"
    ]
    refused = mrt("convert", "--config", path, "-o", tmp_path / "p.cvm")
    assert refused.exit_code == 2
    assert "--preset" in refused.stderr
    text = path.read_text()
    path.write_text(text.replace("# preset =", "preset ="))
    assert tomllib.loads(path.read_text())["preprocessing"]["preset"]
    result = mrt("convert", "--config", path, "-o", tmp_path / "p.cvm")
    assert result.exit_code == 0, result.output


def test_bytes_that_may_be_pictures_ask_too(
    model: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((9, 3, 8, 6), np.uint8))
    config, points = written(
        mrt("init", model, tmp_path / "d.npz"), tmp_path / "net.toml"
    )
    assert "arrays" not in config["calibration"]
    assert len(points) == 1 and "how training prepared pictures" in points[0]


def test_data_that_do_not_fit_are_said(model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((9, 5, 5)))
    _, points = written(
        mrt("init", model, tmp_path / "d.npz"), tmp_path / "net.toml"
    )
    assert len(points) == 1
    assert points[0].startswith("  to be said: how the data fit the model (")
    assert "[5, 5]" in points[0]


def test_the_shape_and_the_parameters_of_a_symbol_are_found(
    tmp_path: Path,
) -> None:
    path = tmp_path / "digits.toml"
    result = mrt("init", SYMBOL, DIGITS / "calibration.npz", "-o", path)
    config, points = written(result, path)
    assert points == []
    assert config["model"]["shapes"] == {"data": [1, 1, 8, 8]}
    assert config["model"]["params"].endswith("resnet_digits8-0000.params")
    assert (path.parent / config["model"]["params"]).exists()


def test_a_config_that_exists_is_kept(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    path.write_text("mine")
    np.savez(tmp_path / "d.npz", x=np.zeros((9, 3, 8, 6)))
    result = mrt("init", model, tmp_path / "d.npz")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"mrt: {path}: exists already")
    assert path.read_text() == "mine"


def test_shapes_come_from_an_array_of_another_name(tmp_path: Path) -> None:
    data = tmp_path / "grey.npz"
    pictures = np.random.default_rng(2).normal(size=(20, 8, 8))
    np.savez(data, index=np.arange(20), photos=pictures)
    path = tmp_path / "digits.toml"
    config, _ = written(mrt("init", SYMBOL, data, "-o", path), path)
    assert config["model"]["shapes"] == {"data": [1, 1, 8, 8]}
    assert config["preprocessing"] == {"layout": "HW"}
    assert config["calibration"]["arrays"] == {"x": "photos"}


def test_convert_lists_the_arrays_where_none_gives_the_shape(
    tmp_path: Path,
) -> None:
    data = tmp_path / "grey.npz"
    np.savez(data, photos=np.zeros((20, 8, 8)))
    result = mrt("convert", SYMBOL, "--data", data, "-o", tmp_path / "a.cvm")
    assert result.exit_code == 2
    assert "has no array 'data' or 'x'" in result.stderr
    assert "it has photos" in result.stderr
