"""A detector gives as many rows as it keeps boxes, and its program always the most: float's first, then those of no box."""

import json
import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import mrt
from mrt.calibrate.session import FloatSession, SessionSource
from mrt.cli import cli
from mrt.evaluate.all_rows import AllRows
from mrt.evaluate.both_sides import RemoteSides, run_on_worker
from mrt.evaluate.same_answers import answers, differences
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import build, graph_of, node

BOXES, PLACES, MOST = 12, 4, 6
"""Boxes of four places, which overlap nowhere: three in each, of which one is kept."""
LEAST = 0.35


def samples(count=40, places=PLACES):
    """Rows of four corners and a score; those of a place overlap almost entirely."""
    random = np.random.default_rng(1)
    place = np.arange(BOXES) % places
    low = 20 * place[:, None] + random.uniform(0, 1, (count, BOXES, 2))
    high = low + random.uniform(14, 15, (count, BOXES, 2))
    ranks = np.argsort(random.random((count, BOXES)))[..., None]
    scores = (ranks + 9) / (BOXES + 9)  # 0.43 at least
    return np.concatenate([low, high, scores], 2).astype(np.float32)


def detector(path, least=LEAST):
    """Write a model whose rows are the boxes kept, moved by 10, and their scores."""
    nodes = [
        node("Slice", "x zero four two", "corners"),
        node("Slice", "x four five two", "column"),
        node("Transpose", "column", "scores", perm=[0, 2, 1]),
        node("NonMaxSuppression", "corners scores most overlap least", "kept"),
        node("Gather", "kept last", "places", axis=1),
        node("Squeeze", "corners front", "all_boxes"),
        node("Gather", "all_boxes places", "found", axis=0),
        node("Add", "found ten", "box"),
        node("Squeeze", "scores fronts", "all_scores"),
        node("Gather", "all_scores places", "score", axis=0),
    ]
    arrays = {
        "zero": np.array([0]), "four": np.array([4]), "five": np.array([5]), "two": np.array([2]), "last": np.array(2),
        "most": np.array([MOST]), "overlap": np.float32([0.5]), "least": np.float32([least]), "front": np.array([0]),
        "fronts": np.array([0, 1]), "ten": np.float32(10),
    }  # fmt: skip
    proto = build(nodes, {"x": (1, BOXES, 5)}, arrays, outputs="box score")
    onnx.save(proto, path)
    return path


@pytest.fixture
def files(tmp_path):
    """The detector, its samples, and the program that `mrt convert` makes of them; and what it says."""
    model, data = detector(tmp_path / "m.onnx"), tmp_path / "d.npz"
    np.savez(data, x=samples())
    program = tmp_path / "p.cvm"
    said = call(
        "convert", model, "--data", data, "-o", program, "--activation-bits", 16
    )
    return model, data, program, said


def call(*words, exit_code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == exit_code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def decibels(said):
    """The signal to noise of each output, as `mrt evaluate` prints it."""
    found = re.findall(r"signal to noise of '(\w+)': (\S+) dB", said)
    return {name: float(number) for name, number in found}


def test_the_rows_that_float_lacks_are_those_of_no_box(files):
    model = load_onnx(files[0])[0]
    real = FloatSession(model).run({"x": samples()[:1]})
    assert real["box"].shape == (PLACES, 4)
    real = {name: values + 1 for name, values in real.items()}
    full = AllRows(AllRows.source(model)).complete({"x": samples()[:1]}, real)
    assert full["box"].shape == (MOST, 4)
    assert np.array_equal(full["box"][:PLACES], real["box"])
    assert (full["box"][PLACES:] == 10).all()  # a box of 0, moved
    assert np.array_equal(full["score"][:PLACES], real["score"])
    assert (full["score"][PLACES:] == 0).all()


def test_a_conversion_is_good_and_calls_its_rows_no_fault(files):
    said = files[3]
    assert re.search(r"against float .*: good\n", said)
    assert "fault of mrt" not in said and "another shape" not in said
    assert "note: 'box', 'score': the model gives a row for each box" in said


def test_the_program_is_evaluated(files):
    model, data, program, _ = files
    said = call("evaluate", model, program, "--data", data)
    assert all(it > 40 for it in decibels(said).values())
    assert set(decibels(said)) == {"box", "score"}
    assert re.search(r"against float: .*: good\n", said)
    written = call("evaluate", model, program, "--data", data, "--json", "-q")
    facts = json.loads(written)
    assert facts["verdict"] == "good"
    assert facts["snr_db.outputs"]["box"] > 40


def test_a_report_is_written(files, tmp_path):
    model, data, program, _ = files
    page = tmp_path / "r.html"
    call("report", model, program, "--data", data, "-o", page)
    assert "The integers answer as float does" in page.read_text()


def test_a_converted_object_is_evaluated(files):
    model, data, _, _ = files
    report = mrt.convert(model, data, activation_bits=16).evaluate(samples(8))
    assert all(it > 40 for it in report.snr_db.values())


def test_workers_of_a_cluster_give_the_same_rows(files):
    model = load_onnx(files[0])[0]
    sides = RemoteSides(
        SessionSource.of(model), AllRows.source(model), files[2].read_bytes()
    )
    batch = [{"x": x[None]} for x in samples(3)]
    both = run_on_worker(sides, batch)
    for real, integer in zip(both.of_float, both.of_integer, strict=True):
        np.testing.assert_allclose(integer["box"], real["box"], atol=0.1)


@pytest.mark.parametrize("least", [0.9, 0.96])
def test_boxes_that_the_program_alone_keeps_show(files, tmp_path, least):
    """Float asks for more here, and keeps fewer boxes, or none."""
    _, data, program, _ = files
    other = detector(tmp_path / "other.onnx", least)
    said = call("evaluate", other, program, "--data", data)
    if least == 0.9:
        assert max(decibels(said).values()) < 10
    assert not re.search(r"against float: .*: good\n", said)


def test_the_last_row_of_all_counts(tmp_path):
    """The program keeps as many boxes as it has rows, and float one fewer."""
    x = samples(places=MOST)
    x[:, :, 4] = np.arange(BOXES, 0, -1) / 13  # the best six are in six places
    data, program = tmp_path / "d.npz", tmp_path / "p.cvm"
    np.savez(data, x=x)
    model = detector(tmp_path / "m.onnx", 6.5 / 13)
    call(
        "convert", model, "--data", data, "-o", program, "--activation-bits", 16
    )
    said = call("evaluate", model, program, "--data", data)
    assert min(decibels(said).values()) > 40
    stricter = detector(tmp_path / "other.onnx", 7.5 / 13)
    said = call("evaluate", stricter, program, "--data", data)
    assert max(decibels(said).values()) < 20


def test_rewriting_is_compared_row_by_row(files, tmp_path):
    """Both a box that the rewritten model alone keeps and one that it drops show."""
    given = [{"x": x[None]} for x in samples(4)]
    paths = [files[0], detector(tmp_path / "other.onnx", 0.9)]
    of_file = [answers(load_onnx(path)[0], given) for path in paths]
    of_rewritten = [answers(rewritten(path), given) for path in paths]
    for expected, actual in zip(of_file, of_rewritten, strict=True):
        assert differences(expected, actual) == {}
    for expected, actual in zip(of_file, reversed(of_rewritten), strict=True):
        apart = differences(expected, actual)
        assert set(apart) == {"box", "score"}
        assert all(it.startswith("SNR ") for it in apart.values())


def rewritten(path):
    model = load_onnx(path)[0]
    rewrite(model)
    return model


def test_outputs_that_do_not_fit_are_named(tmp_path):
    x, data = np.ones((40, 1, 6), np.float32), tmp_path / "d.npz"
    np.savez(data, x=x)
    model, program = tmp_path / "m.onnx", tmp_path / "p.cvm"
    onnx.save(build([node("Neg", "x", "y")], {"x": (1, 6)}), model)
    call("convert", model, "--data", data, "-o", program)
    turned = node("Transpose", "x", "y", perm=[1, 0])
    onnx.save(build([turned], {"x": (1, 6)}), model)
    said = call("evaluate", model, program, "--data", data, exit_code=2)
    assert (
        "output 'y': float gives [6, 1] of a sample, the program [1, 6]; give the program that was made from this model"
        in said
    )


def test_a_model_without_boxes_has_no_second_session():
    model = graph_of([node("Neg", "x", "y")], {"x": (1, 6)})
    assert AllRows.source(model) is None
