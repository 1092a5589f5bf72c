"""`--input-dtype u8`: from picture files to a program of bytes, by the commands, with nothing real left outside it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import cvm
from cvm.file import format as cvm_format
from mrt.cli import cli
from tests.support.command import cvm as cvm_command
from tests.support.command import said
from tests.support.shared_data import needs_shared

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data/digits8"
MODEL = DIGITS / "resnet_digits8-symbol.json"
TEST = np.load(DIGITS / "test.npz")
STEP = 15  # a digit's 17 greys as bytes 0, 15, .. 240


def mrt(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def _bytes(name: str) -> np.ndarray:
    """[N,8,8,1] uint8."""
    images = np.load(DIGITS / f"{name}.npz")["data"]
    return np.rint(images * 16 * STEP).astype(np.uint8).transpose(0, 2, 3, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Arrays of bytes to calibrate on, PNG files to evaluate on, a config, and the program."""
    place = tmp_path_factory.mktemp("pictures")
    np.savez(place / "calibration.npz", data=_bytes("calibration"))
    pictures = place / "pictures"
    pictures.mkdir()
    with (pictures / "labels.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["file", "class"])
        for index, image in enumerate(_bytes("test")):
            Image.fromarray(image[..., 0]).save(pictures / f"{index}.png")
            rows.writerow([f"{index}.png", int(TEST["y"][index])])
    (place / "c.toml").write_text(
        f"""
[model]
path = "{MODEL}"
shapes = {{ data = [1, 1, 8, 8] }}
[preprocessing]
layout = "NHWC"
scale = "1/240"
[calibration]
data = "calibration.npz"
samples = 24
[evaluation]
data = "pictures"
"""
    )
    mrt(
        "convert",
        "--config",
        place / "c.toml",
        "--input-dtype",
        "u8",
        "-o",
        place / "p.cvm",
    )
    return place


def test_the_program_takes_the_bytes_of_a_picture_and_names_the_digit(folder):
    program = cvm.load(folder / "p.cvm")
    (port,) = program.inputs
    assert (port.dtype, port.shape, port.interval) == (
        "u8",
        (1, 8, 8, 1),
        (0, 255),
    )
    picture = np.asarray(Image.open(folder / "pictures/7.png"))[
        :, :, np.newaxis
    ]
    outputs = program.run({"data": picture[np.newaxis]})
    assert int(next(iter(outputs.values())).argmax()) == int(TEST["y"][7])


def test_the_program_has_the_weights_that_were_decided_on_the_samples(
    folder, tmp_path
):
    words = ("--config", folder / "c.toml", "--input-dtype", "u8")
    mrt("calibrate", *words, "-o", tmp_path / "t.json")
    mrt(
        "convert",
        *words,
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "p.cvm",
    )
    program = cvm_format.read(tmp_path / "p.cvm")
    (layers,) = tmp_path.glob("t.*.npz")
    decided = {
        name: array
        for name, array in np.load(layers).items()
        if name.startswith("weights") and array.ndim == 4
    }
    assert len(decided) > 5
    for name, weights in decided.items():
        assert any(
            np.array_equal(weights, constant) for constant in program.constants
        ), name
    assert (tmp_path / "p.cvm").read_bytes() == (folder / "p.cvm").read_bytes()


def test_evaluate_gives_the_float_model_the_prepared_picture_and_the_program_its_bytes(
    folder,
):
    report = json.loads(
        mrt(
            "evaluate",
            "--config",
            folder / "c.toml",
            folder / "p.cvm",
            "--samples",
            100,
            "--json",
        )
    )
    assert (report["samples"], report["float.top1"]) == (
        100,
        0.99,
    )  # as on the arrays that the model came with
    assert report["agreement"] >= 0.99
    assert report["snr_db"] > 30


def test_without_a_config_the_program_says_how_pictures_are_prepared(folder):
    words = (
        "--shape",
        "data=1,1,8,8",
        "--data",
        folder / "pictures",
        "--samples",
        50,
        "--json",
    )
    report = json.loads(mrt("evaluate", MODEL, folder / "p.cvm", *words))
    assert report["agreement"] == 1.0


def test_compare_knows_the_layers_of_such_a_program(folder):
    words = (
        "--config",
        folder / "c.toml",
        folder / "p.cvm",
        "--samples",
        4,
        "--json",
    )
    layers = json.loads(mrt("compare", *words))["layers"]
    assert (
        len(layers) > 5
        and min(
            layer["snr_db"] for layer in layers if layer["snr_db"] is not None
        )
        > 20
    )


def test_a_config_can_ask_for_it_and_a_table_belongs_to_it(folder, tmp_path):
    config = folder / "u8.toml"
    config.write_text(
        (folder / "c.toml")
        .read_text()
        .replace("[preprocessing]", '[preprocessing]\ninput_dtype = "u8"')
    )
    mrt("calibrate", "--config", config, "-o", tmp_path / "t.json")
    mrt(
        "convert",
        "--config",
        config,
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "p.cvm",
    )
    assert (tmp_path / "p.cvm").read_bytes() == (folder / "p.cvm").read_bytes()
    words = (
        "--config",
        folder / "c.toml",
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "q.cvm",
    )
    assert "the calibration table is for the model" in mrt(
        "convert", *words, code=2
    )


def test_a_folder_of_picture_files_runs_as_it_is(folder, tmp_path):
    result = cvm_command(
        "run",
        folder / "p.cvm",
        "--input",
        folder / "pictures",
        "-o",
        tmp_path / "y.npz",
    )
    assert result.exit_code == 0, result.output
    (scores,) = np.load(tmp_path / "y.npz").values()
    order = sorted(range(360), key=lambda index: f"{index}.png")
    assert np.mean(scores.argmax(1) == TEST["y"][order]) >= 0.95


def test_arrays_of_bytes_run_as_they_are_and_as_reals_alike(folder, tmp_path):
    np.savez(tmp_path / "x.npz", data=_bytes("test"))
    for option in ((), ("--real",)):
        result = cvm_command(
            "run",
            folder / "p.cvm",
            "--input",
            tmp_path / "x.npz",
            *option,
            "-o",
            tmp_path / "y.npz",
        )
        assert result.exit_code == 0, result.output
        (scores,) = np.load(tmp_path / "y.npz").values()
        assert np.mean(scores.argmax(1) == TEST["y"]) >= 0.95


@pytest.mark.parametrize("option", [(), ("--real",)])
def test_pictures_that_were_scaled_already_are_refused(
    folder, tmp_path, option
):
    np.save(tmp_path / "x.npy", TEST["data"].transpose(0, 2, 3, 1))
    sentence = said(
        cvm_command(
            "run", folder / "p.cvm", "--input", tmp_path / "x.npy", *option
        ),
        2,
    )
    assert "input 'data'" in sentence and (
        "expected u8 integers" in sentence
        or "takes integers 0..255" in sentence
    )
    np.savez(tmp_path / "x.npz", data=TEST["data"].transpose(0, 2, 3, 1))
    words = (
        "--config",
        folder / "c.toml",
        folder / "p.cvm",
        "--data",
        tmp_path / "x.npz",
    )
    assert "the program takes a picture's own bytes, 0..255 (uint8)" in mrt(
        "evaluate", *words, code=2
    )


def test_a_config_that_prepares_otherwise_is_refused(folder):
    other = folder / "other.toml"
    other.write_text((folder / "c.toml").read_text().replace("1/240", "1/255"))
    found = mrt("evaluate", "--config", other, folder / "p.cvm", code=2)
    assert (
        "scale = 0.00392" in found
        and "the program computes with 0.004166" in found
    )


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    ("name", "first", "gain"),
    [("cifar10_resnet20", "relu_5", 1.0), ("squeezenet1.1", "c0r", 0.7)],
)
def test_the_first_layer_has_less_noise_than_of_prepared_numbers_in_8_bits(
    name, first, gain, tmp_path
):
    config, decibels = ROOT / f"configs/{name}.toml", {}
    for dtype in (
        "real",
        "u8",
    ):  # unrefined: what the samples win back in later steps would hide the difference
        words = ("--samples", 30, "--refine", "none", "--input-dtype", dtype)
        mrt("convert", "--config", config, *words, "-o", tmp_path / "p.cvm")
        layers = json.loads(
            mrt(
                "compare",
                "--config",
                config,
                tmp_path / "p.cvm",
                "--samples",
                10,
                "--json",
            )
        )["layers"]
        decibels[dtype] = next(
            layer["snr_db"] for layer in layers if layer["source"] == first
        )
    assert decibels["u8"] > decibels["real"] + gain


def test_synthetic_calibration_is_on_bytes(folder, tmp_path):
    words = (
        "convert",
        MODEL,
        "--shape",
        "data=1,1,8,8",
        "--input-dtype",
        "u8",
        "--preset",
        "0..1",
        "-o",
        tmp_path / "p.cvm",
    )
    assert "32 synthetic samples" in mrt(*words)
    assert cvm.load(tmp_path / "p.cvm").inputs[0].dtype == "u8"
