"""What a good verdict on few samples leaves open is noted, where something shows that they are few."""

import math
from dataclasses import replace

import numpy as np
import onnx
import pytest

import mrt
from mrt.evaluate.evaluation import Accuracy, Evaluation, NoiseFacts
from mrt.evaluate.verdict import DOUBTFUL, GOOD, Verdict
from mrt.quality import Quality

NOTHING = Accuracy(None, None, 1.0)


def quality(
    calibrated_on: int,
    word: str = GOOD,
    snr_db: float | None = 30.0,
    *,
    lone: str | None = None,
    least_db: float | None = None,
    outlier_db: float | None = None,
) -> Quality:
    verdict = Verdict(word, 8, True, None, snr_db, None)
    report = Evaluation(
        8,
        NOTHING,
        NOTHING,
        None,
        {"y": snr_db},
        noise=NoiseFacts(
            least_snr_db={"y": least_db}, outlier_db={"y": outlier_db}
        ),
    )
    return Quality(report, verdict, calibrated_on=calibrated_on, lone=lone)


def test_truly_few_samples_behind_good_figures_are_noted():
    (note,) = quality(7).notes()
    assert note == (
        "7 samples are few to calibrate on: where others hold greater values, these are cut off, "
        "which no figure here shows; give about 100"
    )
    (note,) = quality(1).notes()
    assert note.startswith("one sample is little to calibrate on: ")
    assert quality(1, lone="v").notes() == [note]  # alone by itself
    assert quality(8).notes() == []


def test_a_range_that_rests_on_one_sample_is_noted():
    (note,) = quality(31, lone="v").notes()
    assert note == (
        "31 samples are few to calibrate on: 'v' is more than 2 times as great in one of them as in any other. "
        "Where others hold greater values, these are cut off, which no figure here shows; give about 100"
    )
    (note,) = quality(3, lone="v", least_db=12.0).notes()
    assert "'v' is more than" in note  # the gravest alone


@pytest.mark.parametrize(
    "least_db, is_noted",
    [(None, False), (20.1, False), (19.9, True), (-math.inf, True)],
)
def test_figures_that_may_be_good_by_chance_are_noted(least_db, is_noted):
    notes = quality(24, least_db=least_db).notes()
    assert notes == is_noted * [
        "24 samples are few: those measured differ so much that others may have less than 20 dB; give about 100"
    ]


@pytest.mark.parametrize(
    "outlier_db, is_noted", [(None, False), (20.0, False), (13.74, True)]
)
def test_figures_that_rest_on_one_sample_are_noted(outlier_db, is_noted):
    notes = quality(28, outlier_db=outlier_db).notes()
    assert notes == is_noted * [
        "28 samples are few: one of those measured has more noise than all others together, and 13.7 dB alone, so that "
        "others like it may have less than 20 dB as well; give about 100"
    ]
    assert not quality(32, outlier_db=outlier_db).notes()


@pytest.mark.parametrize(("unsure", "is_noted"), [(1, True), (12, False)])
def test_a_probability_between_sure_ones_is_noted(unsure, is_noted, tmp_path):
    """Where a Sigmoid is nearly 0 or 1 for all samples but one, that one has the noise of its scores."""
    text = """<ir_version: 9, opset_import: ["" : 17]>
    main (float[1, 2] x) => (float[1, 1] y) <float[2, 1] w = {1, 1}> {
      s = MatMul (x, w)
      y = Sigmoid (s)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    rng = np.random.default_rng(1)
    signs = np.where(np.arange(28) % 2, 1, -1)
    x = np.stack([signs * 60.0, -signs * rng.uniform(54, 56, 28)], 1)
    x[:unsure] = [30.02, -30.45]
    samples = x.astype(np.float32)[:, None]
    found = mrt.convert(tmp_path / "m.onnx", {"x": samples}, bits=8)
    assert found.conversion.quality.verdict.is_good
    notes = [it for it in found.conversion.quality.notes() if "than all" in it]
    assert len(notes) == is_noted


def with_lone(other: Quality) -> Quality:
    return replace(other, lone="v")


@pytest.mark.parametrize(
    "other",
    [
        quality(31),
        with_lone(quality(32, least_db=12.0)),
        with_lone(quality(7, DOUBTFUL)),
        with_lone(quality(7, snr_db=None)),
        with_lone(Quality()),
    ],
    ids=[
        "nothing shows",
        "enough",
        "advised already",
        "nothing differs",
        "not measured",
    ],
)
def test_nothing_else_is_noted(other):
    assert other.notes() == []
