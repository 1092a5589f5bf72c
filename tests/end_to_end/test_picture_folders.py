"""Folders of pictures: how they are prepared is asked about, not guessed."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from cvm.file import format as cvm_format
from mrt.cli import cli


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A convolution and a mean by channel for pictures of 12 pixels, and some pictures in colour."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("GlobalAveragePool", ["c"], ["p"]),
            helper.make_node("Flatten", ["p"], ["y"]),
        ],
        "g",
        [
            helper.make_tensor_value_info(
                "x", TensorProto.FLOAT, [None, 3, 12, 12]
            )
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opset), tmp_path / "m.onnx"
    )
    pictures = tmp_path / "images"
    pictures.mkdir()
    for index in range(6):
        pixels = rng.integers(0, 256, (12, 12, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(pictures / f"{index}.png")
    return tmp_path


def test_pictures_without_preprocessing_are_refused_with_the_ways_out(folder):
    files = (folder / "m.onnx", "--data", folder / "images")
    program = (folder / "m.onnx", folder / "m.cvm", *files[1:])
    assert mrt("convert", *files, "--preset", "raw").exit_code == 0
    for words in (
        ("convert", *files),
        ("convert", *files, "--crop", 12, "--color", "BGR"),
        ("calibrate", *files, "-o", folder / "t.json"),
        ("evaluate", *program),
        ("compare", *program),
    ):
        result = mrt(*words)
        assert result.exit_code == 2, words
        assert "pictures, and nothing says how the model wants them" in (
            result.stderr
        )
        assert "--preset imagenet  (x/255 - mean) / std" in result.stderr
        assert 'preset = "imagenet" under [preprocessing]' in result.stderr
        assert all("\\n" not in line for line in result.stderr.splitlines())


def test_a_preset_a_number_or_a_config_are_answers(folder):
    files = (folder / "m.onnx", "--data", folder / "images")
    (folder / "c.toml").write_text('[preprocessing]\npreset = "0..1"\n')
    ids = {}
    for words in (
        ("--preset", "0..1"),
        ("--scale", "1/255"),
        ("--config", folder / "c.toml"),
        ("--preset", "imagenet"),
    ):
        result = mrt("convert", *files, *words, "--refine", "none")
        assert result.exit_code == 0, result.output
        ids[words] = cvm_format.program_id((folder / "m.cvm").read_bytes())
    first, second, third, other = ids.values()
    assert first == second == third != other


def test_a_program_that_prepares_pictures_itself_is_told_how(folder):
    files = (folder / "m.onnx", "--data", folder / "images")
    result = mrt("convert", *files, "--input-dtype", "u8")
    assert result.exit_code == 2
    assert "the program prepares pictures itself, and nothing says how" in (
        result.stderr
    )
    words = ("--input-dtype", "u8", "--preset", "imagenet")
    assert mrt("convert", *files, *words).exit_code == 0
    # What the program says of its pictures is enough from then on.
    program = (folder / "m.onnx", folder / "m.cvm", "--data", folder / "images")
    result = mrt("evaluate", *program)
    assert result.exit_code == 0, result.output
    result = mrt("evaluate", *program, "--preset", "tf")
    assert result.exit_code == 2
    assert "but the program computes with" in result.stderr


def test_a_grey_picture_is_noted_by_the_commands(folder):
    Image.new("L", (12, 12), 9).save(folder / "images" / "z.png")
    files = (folder / "m.onnx", "--data", folder / "images", "--preset", "raw")
    program = (folder / "m.onnx", folder / "m.cvm", *files[1:])
    for words in (
        ("convert", *files),
        ("calibrate", *files, "-o", folder / "t.json"),
        ("evaluate", *program),
        ("compare", *program),
    ):
        result = mrt(*words)
        assert result.exit_code == 0, result.output
        notes = result.stderr.count("z.png is grey, but the model takes colour")
        assert notes == 1, words


def test_sub_folders_give_the_classes_of_an_evaluation(folder):
    images = folder / "images"
    for index in range(6):
        place = images / f"class{index % 4}"
        place.mkdir(exist_ok=True)
        (images / f"{index}.png").rename(place / f"{index}.png")
    files = (folder / "m.onnx", "--data", images, "--preset", "raw")
    assert mrt("convert", *files).exit_code == 0
    program = (folder / "m.onnx", folder / "m.cvm", *files[1:])
    result = mrt("evaluate", *program, "--json")
    assert json.loads(result.stdout)["float.top1"] is not None


def test_bytes_in_an_array_are_noted_unless_anyone_said_what_is_done_to_them(
    folder,
):
    pixels = np.random.default_rng(1).integers(0, 256, (6, 3, 12, 12))
    np.savez(folder / "bytes.npz", x=pixels.astype(np.uint8))
    np.savez(folder / "floats.npz", x=pixels.astype(np.float32))
    words = ("convert", folder / "m.onnx", "--data")
    said = (
        "bytes.npz: array 'x' holds bytes, and the model gets them as 0 to 255"
    )
    assert said in mrt(*words, folder / "bytes.npz").stderr
    assert "bytes" not in mrt(*words, folder / "floats.npz").stderr
    for preset in ("raw", "0..1"):
        result = mrt(*words, folder / "bytes.npz", "--preset", preset)
        assert "bytes" not in result.stderr
    program = (folder / "m.onnx", folder / "m.cvm", "--data")
    assert said in mrt("evaluate", *program, folder / "bytes.npz").stderr
