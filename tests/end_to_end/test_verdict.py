"""`mrt convert` measures what it wrote, and prints the verdict beside it."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import mrt
from mrt.cli import cli
from tests.support.float_models import FloatModel
from tests.support.graphs import build, node

DIGITS = Path(__file__).resolve().parent.parent.parent / (
    "calibration_data/digits8"
)
MODEL = DIGITS / "resnet_digits8-symbol.json"
DATA = DIGITS / "calibration.npz"


def convert(folder: Path, *words: object):
    out = folder / "p.cvm"
    words = ("convert", MODEL, *words, "-o", out)
    return CliRunner().invoke(cli, [str(word) for word in words])


def verdict_line(output: str) -> str:
    (line,) = [line for line in output.splitlines() if "against float" in line]
    return line.removeprefix("  against float").strip()


def test_a_program_is_measured_on_samples_that_were_not_calibrated_on(
    tmp_path,
):
    found = convert(tmp_path, "--data", DATA, "--samples", 100)
    line = verdict_line(found.stdout)
    assert line.startswith("agreement 32 of 32 held-back samples, SNR 3")
    assert line.endswith(" dB: good")


def pictures_in(folder: Path, pictures) -> Path:
    path = folder / f"{len(pictures)}.npz"
    np.savez(path, data=pictures)
    return path


def test_a_quarter_is_held_back_if_no_others_are_left(tmp_path):
    pictures = np.load(DATA)["data"][:40]
    found = convert(tmp_path, "--data", pictures_in(tmp_path, pictures))
    assert "calibrated on  30 samples, not on 10 held back" in found.stdout
    assert "of 10 held-back samples" in verdict_line(found.stdout)
    program = (tmp_path / "p.cvm").read_bytes()
    rest = [place for place in range(40) if place % 4]
    words = ("--data", pictures_in(tmp_path, pictures[rest]))
    again = convert(tmp_path, *words)
    assert "calibrated on  30 samples\n" in again.stdout
    assert "of 30 samples that were calibrated on" in verdict_line(again.stdout)
    assert program == (tmp_path / "p.cvm").read_bytes()


def test_as_many_as_are_said_are_held_back(tmp_path):
    pictures = np.load(DATA)["data"][:40]
    words = ("--data", pictures_in(tmp_path, pictures))
    settings = tmp_path / "s.toml"
    kept = ("--held-back", 0, "--write-config", settings)
    found = convert(tmp_path, *words, *kept)
    assert "calibrated on  40 samples\n" in found.stdout
    assert "held_back = 0" in settings.read_text()
    found = convert(tmp_path, *words, "--held-back", 20)
    assert "calibrated on  20 samples, not on 20 held back" in found.stdout
    found = convert(tmp_path, *words, "--held-back", 40)
    assert found.exit_code == 2
    assert "40 of 40 samples cannot be held back" in found.stderr


def evaluate(folder: Path, *words: object) -> str:
    words = ("evaluate", MODEL, folder / "p.cvm", *words)
    found = CliRunner().invoke(cli, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize(("bits", "word"), [(8, "good"), (2, "useless")])
def test_evaluation_gives_the_verdict_of_the_conversion(tmp_path, bits, word):
    """On the samples that were held back, it has the same figures."""
    pictures = np.load(DATA)["data"][:40]
    every = ("--data", pictures_in(tmp_path, pictures), "--bits", bits)
    converted = verdict_line(convert(tmp_path, *every).stdout)
    held = ("--data", pictures_in(tmp_path, pictures[::4]))
    line = verdict_line(evaluate(tmp_path, *held)).removeprefix(": ")
    assert line == converted.replace("held-back ", "")
    facts = json.loads(evaluate(tmp_path, *held, "--json"))
    assert (facts["verdict"], facts["sentence"]) == (word, line)


def test_too_few_bits_are_not_good(tmp_path):
    words = ("--data", DATA, "--samples", 100, "--bits", 2)
    found = convert(tmp_path, *words)
    assert found.exit_code == 0
    assert verdict_line(found.stdout).endswith("dB: useless")


def test_without_data_nothing_is_measured(tmp_path):
    found = convert(tmp_path, "--shape", "data=1,1,8,8")
    assert verdict_line(found.stdout) == "not measured, without samples"


def test_samples_that_cannot_be_read_are_named_and_the_program_is_written(
    tmp_path,
):
    pictures = np.load(DATA)["data"][:40].astype(np.float32)
    pictures[1::2] = np.nan  # --samples 20 takes the others
    np.savez(tmp_path / "d.npz", x=pictures)
    found = convert(tmp_path, "--data", tmp_path / "d.npz", "--samples", 20)
    assert found.exit_code == 0
    line = verdict_line(found.stdout)
    assert line.startswith("not measured: ") and "NaN" in line
    assert (tmp_path / "p.cvm").exists()


def test_a_program_that_is_not_good_comes_with_layers_and_remedies_that_help(
    tmp_path,
):
    words = ("--data", DATA, "--samples", 100, "--bits", 2)
    report = tmp_path / "r.json"
    found = convert(tmp_path, *words, "--report", report)
    lines = found.stderr.splitlines()
    for line, start in zip(
        lines,
        (
            "the program is useless: agreement ",
            "most noise arises in 'res_dense0_fwd' (its weights), ",
            "what helps: ",
        ),
        strict=True,
    ):
        assert line.startswith(f"mrt: warning: {start}")
    promised = "--activation-bits 16 --weight-bits 8 (about agreement 32"
    assert promised in lines[-1] and lines[-1].endswith(", before refinement)")
    quality = json.loads(report.read_text())["quality"]
    assert quality["verdict"] == "useless" and quality["held_back"] is True
    best = quality["remedies"][-1]
    assert best["verdict"] == "good" and best["snr_db"] > 40
    again = convert(tmp_path, *words, *best["options"].split())
    line = verdict_line(again.stdout)
    assert line.endswith("dB: good")
    given = float(line.split("SNR ")[1].split(" dB")[0])
    assert given >= best["snr_db"] - 0.05  # one decimal is printed
    assert again.stderr == ""


def test_few_samples_are_named_as_a_cause(tmp_path):
    words = ("--data", DATA, "--samples", 10, "--bits", 3)
    found = convert(tmp_path, *words)
    assert "calibrate on about 100 samples" in found.stderr
    assert "10 were given" in found.stderr


def test_a_program_without_layers_is_measured_too():
    """A product by a constant is in the scale of the output: no instruction stands for a float value."""
    model = FloatModel(x=(1, 5))
    output = model.add("Mul", "x", np.float32(3.0))
    samples = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    converted = mrt.convert(model.proto(output), samples, bits=2)
    quality = converted.conversion.quality
    assert quality.verdict is not None and not quality.verdict.is_good
    assert quality.advice is not None and quality.advice.layers == []


def test_what_is_required_and_missed_writes_nothing(tmp_path):
    words = ("--data", DATA, "--bits", 2, "--samples", 100)
    report = tmp_path / "r.json"
    missed = convert(
        tmp_path,
        *words,
        *("--require", "snr=20", "--require", "agreement=0.95"),
        *("--report", report),
    )
    assert missed.exit_code == 1
    assert "snr is 0.309" in missed.stderr
    assert "expected at least 20; agreement is 0." in missed.stderr
    assert "nothing was written" in missed.stderr
    assert not (tmp_path / "p.cvm").exists() and not report.exists()


def test_what_is_required_and_met_writes_the_program(tmp_path):
    words = ("--data", DATA, "--samples", 100, "--require", "snr=30")
    assert convert(tmp_path, *words).exit_code == 0
    assert (tmp_path / "p.cvm").exists()


def test_a_requirement_needs_samples_and_a_figure(tmp_path):
    shape = ("--shape", "data=1,1,8,8")
    without = convert(tmp_path, *shape, "--require", "snr=20")
    assert without.exit_code == 2 and "--require needs samples" in (
        without.stderr
    )
    wrong = convert(tmp_path, *shape, "--require", "quality=20")
    assert wrong.exit_code == 2 and "expected KEY=X" in wrong.stderr


def binary_network() -> onnx.ModelProto:
    """Pixels as bytes, binary and ternary weights, Sign, sums: all numbers are integers."""
    random = np.random.default_rng(0)

    def integers(most, *shape):
        weights = random.integers(-most, most + 1, shape)
        return numpy_helper.from_array(weights.astype(np.float32))

    nodes = [
        helper.make_node("Cast", ["x"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Conv", ["real", "w0", "b0"], ["sum0"]),
        helper.make_node("Sign", ["sum0"], ["sign0"]),
        helper.make_node(
            "MaxPool",
            ["sign0"],
            ["pooled"],
            kernel_shape=[2, 2],
            strides=[2, 2],
        ),
        helper.make_node("Conv", ["pooled", "w1", "b1"], ["sum1"]),
        helper.make_node("Sign", ["sum1"], ["sign1"]),
        helper.make_node("Flatten", ["sign1"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w2"], ["product"]),
        helper.make_node("Add", ["product", "b2"], ["scores"]),
    ]
    shapes = {
        "w0": (1, 8, 3, 3, 3), "b0": (99, 8), "w1": (1, 4, 8, 3, 3),
        "b1": (3, 4), "w2": (1, 16, 5), "b2": (9, 5),
    }  # fmt: skip
    weights = []
    for name, (most, *shape) in shapes.items():
        weights.append(integers(most, *shape))
        weights[-1].name = name
    graph = helper.make_graph(
        nodes,
        "binary",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 10, 10])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 5])],
        weights,
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_network_of_integers_has_no_noise(bits):
    pictures = np.random.default_rng(1).integers(0, 256, (48, 3, 10, 10))
    pictures = pictures.astype(np.uint8)
    converted = mrt.convert(binary_network(), pictures[:24], bits=bits)
    sentence = converted.conversion.quality.sentence
    assert sentence == (
        "agreement 24 of 24 samples that were calibrated on, no difference: good"
    )
    report = converted.evaluate(pictures[24:])
    assert (report.agreement, report.snr_db) == (1.0, {"scores": None})


@pytest.mark.parametrize(("bits", "word"), [(8, "good"), (2, "useless")])
def test_python_has_the_verdict(bits, word):
    pictures = np.load(DATA)["data"][:40]
    converted = mrt.convert(MODEL, pictures, bits=bits)
    quality = converted.conversion.quality
    assert quality.verdict is not None and quality.verdict.word == word
    assert quality.report is not None and quality.report.samples == 10
    assert quality.verdict.fresh
    assert converted.report.quality["verdict"] == word
    assert "against float" in converted._repr_html_()


@pytest.mark.parametrize(("lead", "is_noted"), [(11.0, True), (5.0, False)])
def test_a_class_that_is_almost_always_the_answer_is_noted(
    tmp_path, lead, is_noted
):
    """Shares of 6 places: where the first class leads by far, little else is in the outputs."""
    rng = np.random.default_rng(0)
    nodes = [
        node("MatMul", "x w", "z"),
        node("Add", "z lead", "s"),
        node("Softmax", "s", "y", axis=-1),
    ]
    weights = {
        "w": rng.normal(size=(4, 3)).astype(np.float32),
        "lead": np.array([lead, 0, 0], np.float32),
    }
    model, data = tmp_path / "m.onnx", tmp_path / "d.npz"
    program = tmp_path / "p.cvm"
    onnx.save(build(nodes, {"x": (1, 6, 4)}, weights), model)
    np.savez(data, x=rng.normal(size=(128, 1, 6, 4)).astype(np.float32))
    for words in (
        ("convert", model, "--data", data, "--bits", 5, "-o", program),
        ("evaluate", model, program, "--data", data, "--samples", 32),
    ):
        found = CliRunner().invoke(cli, [str(word) for word in words])
        assert verdict_line(found.stdout).endswith(": good")
        note = "mrt: note: output 'y' is nearly the same for all samples"
        assert (note in found.stderr) == is_noted


@pytest.mark.parametrize("spread, is_noted", [(0.0, True), (1.0, False)])
def test_the_same_answer_for_every_sample_is_noted(tmp_path, spread, is_noted):
    """A model whose samples are prepared wrongly often answers to none of them."""
    rng = np.random.default_rng(1)
    nodes = [node("Mul", "x spread", "s"), node("Add", "s lead", "y")]
    weights = {
        "spread": np.float32(spread),
        "lead": rng.normal(size=6).astype(np.float32),
    }
    model, data = tmp_path / "m.onnx", tmp_path / "d.npz"
    program = tmp_path / "p.cvm"
    onnx.save(build(nodes, {"x": (1, 6)}, weights), model)
    np.savez(data, x=rng.normal(size=(40, 1, 6)).astype(np.float32))
    for words in (
        ("convert", model, "--data", data, "--bits", 8, "-o", program),
        ("evaluate", model, program, "--data", data, "--samples", 16),
    ):
        result = CliRunner().invoke(cli, [str(word) for word in words])
        assert verdict_line(result.stdout).endswith(": good"), result.output
        note = "float gives the same answer for all"
        assert (note in result.stderr) == is_noted


def test_a_classifier_of_digits_has_no_notes(tmp_path):
    found = convert(tmp_path, "--data", DATA)
    assert verdict_line(found.stdout).endswith(": good")
    assert "note" not in found.stderr


def test_scores_along_time_are_no_classes(tmp_path):
    """An onset detector has a score for each step, of which several may be the highest."""
    nodes = [node("ReduceMean", "x axes", "y", keepdims=0)]
    model, data = tmp_path / "m.onnx", tmp_path / "d.npz"
    weights = {"axes": np.array([1])}
    onnx.save(build(nodes, {"x": ("steps", 4)}, weights), model)
    x = np.random.default_rng(1).normal(size=(40, 9, 4)).astype(np.float32)
    np.savez(data, x=x)
    words = ("convert", model, "--data", data, "-o", tmp_path / "p.cvm")
    found = CliRunner().invoke(cli, [str(word) for word in words])
    assert verdict_line(found.stdout).startswith("SNR")
