"""`mrt convert --target-...`: the target is met on samples that were held back, or nothing is written."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from mrt.cli import cli
from tests.support.float_models import FloatModel

RNG = np.random.default_rng(5)


def mrt(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A small network of three layers, and 40 samples, the first of which is the network's own answer as a label."""
    folder = tmp_path_factory.mktemp("toy")
    model = FloatModel(x=(1, 3, 8, 8))
    value = "x"
    for number, channels in enumerate((3, 6)):
        weights = RNG.normal(size=(6, channels, 3, 3)) / np.sqrt(9 * channels)
        value = model.add(
            "Relu",
            model.conv(
                value, weights, RNG.normal(size=6), name=f"conv{number}"
            ),
            name=f"r{number}",
        )
    flat = model.add("Reshape", value, np.array([1, 96]))
    model.gemm(flat, RNG.normal(size=(10, 96)) / 10, np.zeros(10))
    output = f"v{len(model._nodes) - 1}"
    onnx.save(model.proto(output), folder / "toy.onnx")
    np.savez(
        folder / "data.npz",
        x=RNG.normal(size=(40, 3, 8, 8)).astype(np.float32),
        y=RNG.integers(0, 10, 40),
    )
    np.savez(
        folder / "few.npz", x=RNG.normal(size=(3, 3, 8, 8)).astype(np.float32)
    )
    np.savez(
        folder / "unlabelled.npz",
        x=RNG.normal(size=(20, 3, 8, 8)).astype(np.float32),
    )
    return folder


def convert(place: Path, out: Path, *words: object) -> tuple[int, str]:
    data = () if "--data" in words else ("--data", place / "data.npz")
    return mrt("convert", place / "toy.onnx", *data, "-o", out, *words)


def test_a_target_is_met_and_what_it_was_bought_for_is_said(place, tmp_path):
    code, text = convert(place, tmp_path / "p.cvm", "--target-snr", 60)
    assert code == 0, text
    assert (
        "mixed precision for a signal to noise of 60 dB, on 16 held-back samples:"
        in text
    )
    assert "8 -> 16" in text
    assert "8 -> 11" in text
    assert "calibrated on  24 samples" in text
    code, text = mrt(
        "evaluate",
        place / "toy.onnx",
        tmp_path / "p.cvm",
        "--data",
        place / "data.npz",
        "--fail-below",
        "snr_db=59",
    )
    assert code == 0, text


def test_pictures_whose_input_got_16_bits_might_be_taken_as_bytes(
    place, tmp_path
):
    words = ("--target-snr", 60, "--scale", 0.5)
    code, text = convert(place, tmp_path / "p.cvm", *words)
    assert code == 0, text
    assert "note: the input 'x' got 16 bits for its prepared pictures" in text


def test_a_target_met_from_the_start_buys_nothing(place, tmp_path):
    code, text = convert(place, tmp_path / "p.cvm", "--target-snr", 20)
    assert code == 0
    assert "nothing had to be raised" in text


def test_a_target_too_high_is_refused_with_the_best_reached_and_nothing_is_written(
    place, tmp_path
):
    code, text = convert(
        place,
        tmp_path / "p.cvm",
        "--target-snr",
        89,
        "--write-config",
        tmp_path / "f.toml",
        "--bits",
        8,
    )
    assert code == 1
    assert (
        "a signal to noise of 89 dB cannot be met: with everything as fine as it gets"
        in text
    )
    assert "on 16 held-back samples" in text
    assert list(tmp_path.iterdir()) == []


def test_the_settings_written_give_the_same_program_without_a_search_and_so_does_the_search_again(
    place, tmp_path
):
    words = ("--target-snr", 45, "--bits", 6, "--write-config")
    assert (
        convert(place, tmp_path / "a.cvm", *words, tmp_path / "f.toml")[0] == 0
    )
    assert (
        convert(place, tmp_path / "b.cvm", *words, tmp_path / "g.toml")[0] == 0
    )
    code, text = mrt(
        "convert", "--config", tmp_path / "f.toml", "-o", tmp_path / "c.cvm"
    )
    assert code == 0, text
    assert "mixed precision" not in text
    programs = {
        (tmp_path / name).read_bytes() for name in ("a.cvm", "b.cvm", "c.cvm")
    }
    assert len(programs) == 1
    assert "weight_bits = 6" in (tmp_path / "f.toml").read_text()
    assert "[layers." in (tmp_path / "f.toml").read_text()


def test_agreement_and_drop_are_targets_of_classifiers(place, tmp_path):
    code, text = convert(
        place, tmp_path / "p.cvm", "--target-agreement", 0.9, "--bits", 3
    )
    assert code == 0, text
    assert "3 -> 8" in text
    code, text = convert(
        place, tmp_path / "q.cvm", "--target-drop", 5, "--bits", 3
    )
    assert code == 0, text
    assert "top-1 drop" in text


def test_a_table_leaves_every_sample_but_one_for_the_search(place, tmp_path):
    mrt(
        "calibrate",
        place / "toy.onnx",
        "--data",
        place / "data.npz",
        "-o",
        tmp_path / "t.json",
    )
    words = (
        "--table",
        tmp_path / "t.json",
        "--target-snr",
        45,
        "--write-config",
        tmp_path / "f.toml",
    )
    code, text = convert(place, tmp_path / "p.cvm", *words)
    assert code == 0, text
    assert "on 39 held-back samples" in text
    code, _ = mrt(
        "convert",
        "--config",
        tmp_path / "f.toml",
        "--table",
        tmp_path / "t.json",
        "-o",
        tmp_path / "q.cvm",
    )
    assert code == 0
    assert (tmp_path / "p.cvm").read_bytes() == (
        tmp_path / "q.cvm"
    ).read_bytes()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("--target-agreement", 0.9, "--target-snr", 30),
            "--target-agreement and --target-snr: one target at a time",
        ),
        (
            ("--target-agreement", 98),
            "--target-agreement 98: expected a fraction between 0 and 1, such as 0.98",
        ),
        (
            ("--target-drop", 0),
            "--target-drop 0: expected points of top-1 accuracy, such as 0.5",
        ),
        (
            ("--target-snr", 120),
            "--target-snr 120: expected decibels above 0 and below 90, such as 30",
        ),
        (
            ("--data", "few.npz", "--target-snr", 30),
            "3 samples; a search needs 4 or more, to hold some back",
        ),
        (
            ("--data", "unlabelled.npz", "--target-drop", 1),
            "has no labels, which --target-drop needs",
        ),
        (
            ("--target-agreement", 0.99),
            "20 held-back samples are too few for agreement with float of 99 %: one of them is 5 %. "
            "What other samples will give is estimated from at least 25 held-back samples, with 25 others",
        ),
        (
            ("--target-drop", 1),
            "20 held-back samples are too few for at most 1 points of top-1 lost: one of them is 5 %. What",
        ),
        (
            ("--class-output", "scores"),
            "--class-output: only a target needs it here",
        ),
        (
            ("--target-agreement", 0.9, "--class-output", "scores"),
            "--class-output scores: the model has no such output",
        ),
    ],
)
def test_targets_that_make_no_sense_are_refused(
    words, problem, place, tmp_path
):
    resolved = [
        place / word if str(word).endswith(".npz") else word for word in words
    ]
    code, text = convert(place, tmp_path / "p.cvm", *resolved)
    assert code == 2
    assert problem in text
    assert not (tmp_path / "p.cvm").exists()


def test_a_target_without_samples_is_refused(place, tmp_path):
    code, text = mrt(
        "convert",
        place / "toy.onnx",
        "--target-snr",
        30,
        "-o",
        tmp_path / "p.cvm",
    )
    assert code == 2
    assert "a target needs samples to be measured on" in text
