"""Duplicates from the command line: their cost and gain, in the table and the program."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mrt import stages
from mrt.cli import cli
from mrt.refine import refine_model
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


def test_extra_products_buy_more_copies_and_the_table_knows_them(
    folder, tmp_path
):
    words = "--extra-products", 0.5
    result = mrt(
        *("convert", folder / "m.onnx", "--data", folder / "d.npz", *words),
        *("-o", folder / "more.cvm"),
    )
    assert result.exit_code == 0
    (copies, products) = re.findall(
        r"note: (\d+) copies of channels take off \d+% of the noise of activations for "
        r"([\d.]+)% more products \(--extra-products 0.5\)",
        result.stderr,
    )[0]
    assert int(copies) > len(NOISY)
    assert 25 < float(products) <= 50
    more, plain = compared(folder, "more.cvm"), compared(folder, "with.cvm")
    assert more["out"] > plain["out"] + 0.3
    table = tmp_path / "t.json"
    done(
        *("calibrate", folder / "m.onnx", "--data", folder / "d.npz", *words),
        *("-o", table),
    )
    done(
        *("convert", folder / "m.onnx", "--table", table),
        *("-o", folder / "again.cvm"),
    )
    settings = tmp_path / "c.toml"
    settings.write_text("[refinement]\nextra_products = 0.5\n")
    converted(folder, "by_config.cvm", "--config", settings)
    for name in ("again.cvm", "by_config.cvm"):
        assert (folder / name).read_bytes() == (
            folder / "more.cvm"
        ).read_bytes()


@pytest.mark.parametrize("words", [(), ("--extra-products", 0.5)])
def test_extra_products_are_chosen_by_the_noise_of_a_first_calibration(
    folder, words, monkeypatch
):
    tables = []

    def spied(model, samples, options, chosen, table=None):
        tables.append(table)
        return refine_model(model, samples, options, chosen, table)

    monkeypatch.setattr(stages, "refine_model", spied)
    converted(folder, "spied.cvm", *words)
    (table,) = tables
    assert (table is not None) == bool(words)
    if table is not None:
        assert "first" in table.ranges
        assert table.decisions.key and not table.decisions.layers


def test_of_no_extra_products_nothing_is_bought(folder):
    assert "of the channels" not in converted(
        folder, "none.cvm", "--extra-products", 0
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nan",), "--extra-products nan: expected a number from 0 to 2"),
        (("2.1",), "--extra-products 2.1: expected a number from 0 to 2"),
        (("-1",), "--extra-products -1: expected a number from 0 to 2"),
        (("much",), "--extra-products much: expected a number from 0 to 2"),
        ((0.3, "--refine", "none"), "choose it with --refine"),
        ((0.3, "--refine", "scales,fit"), "choose it with --refine"),
        ((0.3, "--target-snr", 30), "extra products and a target"),
        ((0.3, "--table", "t.json"), "--table and --extra-products"),
    ],
)
def test_extra_products_that_buy_nothing_are_refused(folder, words, sentence):
    result = mrt(
        *("convert", folder / "m.onnx", "--data", folder / "d.npz"),
        *("--extra-products", words[0]),
        *(folder / word if word == "t.json" else word for word in words[1:]),
        *("-o", folder / "refused.cvm"),
    )
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert not (folder / "refused.cvm").exists()


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
