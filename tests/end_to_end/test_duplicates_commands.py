"""Duplicates from the command line: their cost and gain, in the table and the program."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mrt.cli import cli
from tests.support.float_models import FloatModel
from tests.support.noisy_channels import NOISY, noisy_network


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of which two channels weigh far more than the others, samples, and what is made of them."""
    place = tmp_path_factory.mktemp("twins")
    (place / "m.onnx").write_bytes(
        noisy_network().proto("out").SerializeToString()
    )
    np.savez(
        place / "d.npz",
        x=np.random.default_rng(6)
        .normal(size=(40, 3, 10, 10))
        .astype(np.float32),
    )
    done(
        "calibrate",
        place / "m.onnx",
        "--data",
        place / "d.npz",
        "-o",
        place / "t.json",
    )
    converted(place, "with.cvm")
    converted(
        place, "without.cvm", "--refine", "scales,centres,fit,weights,biases"
    )
    return place


def done(*words: object) -> str:
    result = mrt(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def converted(folder: Path, name: str, *words: object) -> str:
    return done(
        "convert",
        folder / "m.onnx",
        "--data",
        folder / "d.npz",
        *words,
        "-o",
        folder / name,
    )


def compared(folder: Path, name: str) -> dict[str, float]:
    """Signal to noise by float value."""
    listed = json.loads(
        done(
            "compare",
            folder / "m.onnx",
            folder / name,
            "--data",
            folder / "d.npz",
            "--json",
        )
    )
    return {layer["source"]: layer["snr_db"] for layer in listed["layers"]}


def test_the_summary_says_how_many_there_are(folder):
    assert "duplicates     2 of the channels" in converted(folder, "again.cvm")
    assert "of the channels" not in converted(
        folder, "again.cvm", "--refine", "scales"
    )


def test_a_table_gives_the_same_program(folder):
    assert json.loads((folder / "t.json").read_text())["twins"] == {
        "first": NOISY
    }
    done(
        "convert",
        folder / "m.onnx",
        "--table",
        folder / "t.json",
        "-o",
        folder / "from_table.cvm",
    )
    assert (folder / "from_table.cvm").read_bytes() == (
        folder / "with.cvm"
    ).read_bytes()


def test_every_value_of_the_program_can_be_compared_and_has_less_noise(folder):
    found, plain = compared(folder, "with.cvm"), compared(folder, "without.cvm")
    assert found.keys() == plain.keys()
    assert found["out"] > plain["out"] + 1


def test_a_table_or_a_program_with_duplicates_of_another_model_is_refused(
    folder, tmp_path
):
    for layers in folder.glob("t.*.npz"):
        shutil.copy(layers, tmp_path)
    (tmp_path / "t.json").write_text(
        (folder / "t.json").read_text().replace('"first": [7', '"first": [46')
    )
    result = mrt(
        "convert",
        folder / "m.onnx",
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "p.cvm",
    )
    assert (result.exit_code, list(tmp_path.glob("*.cvm"))) == (2, [])
    assert (
        "the channels [46, 30] of 'first' are to be duplicated" in result.stderr
    )
    other = FloatModel(x=(1, 3, 10, 10))
    other.conv("x", np.ones((9, 3, 3, 3)), np.zeros(9), name="out")
    (tmp_path / "other.onnx").write_bytes(
        other.proto("out").SerializeToString()
    )
    result = mrt(
        "compare",
        tmp_path / "other.onnx",
        folder / "with.cvm",
        "--data",
        folder / "d.npz",
    )
    assert result.exit_code == 2
    assert (
        "channels of 'first' are to be duplicated, of which none can be: "
        "they were chosen for another model" in result.stderr
    )


def test_a_search_for_precisions_goes_without_and_says_so_in_its_settings(
    folder, tmp_path
):
    words = (
        "--target-snr",
        38,
        "--write-config",
        tmp_path / "c.toml",
        "--refine",
        "twins,scales",
    )
    assert "of the channels" not in converted(folder, "tuned.cvm", *words)
    assert "duplicates = false" in (tmp_path / "c.toml").read_text()
    done("convert", "--config", tmp_path / "c.toml", "-o", folder / "again.cvm")
    assert (folder / "again.cvm").read_bytes() == (
        folder / "tuned.cvm"
    ).read_bytes()
