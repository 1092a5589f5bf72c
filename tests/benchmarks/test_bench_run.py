"""One model, measured: with contenders of our own making, so that no peer is needed."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench
from benchmarks.contenders import Contender, reference
from benchmarks.figures import OURS, REFERENCE
from benchmarks.models import Model
from benchmarks.peers import Ready, Unavailable
from mrt.config import Config
from tests.support.run_programs import MEANINGS, doubler, save

IMAGE = np.array(
    [[1.0, -2.0, 3.5]], np.float32
)  # 2, -4, 7 at scale 0.5; doubled 4, -8, 14; minus 1, times 0.25:
ANSWER = np.array([0.75, -2.25, 3.25])


@pytest.fixture
def model(tmp_path):
    made = Model(
        "doubler",
        Config(),
        Path("no.onnx"),
        Path(save(doubler(metadata=MEANINGS), tmp_path)),
    )
    made.__dict__["images"] = [{"x": IMAGE}]
    return made


def contender(name, answer=ANSWER, note=""):
    return Contender(
        name, lambda model, threads: Ready(lambda: answer, np.asarray, note)
    )


def rows(model, contenders, threads=(1,), repetitions=2):
    outcome = bench.run_model(model, contenders, threads, repetitions)
    return {
        (row.contender, part.threads): row
        for part in outcome.measured
        for row in part.rows
    }


def test_the_reference_answers_in_real_numbers(model):
    ready = reference(model, 1)
    assert ready.answer(ready.call()).tolist() == ANSWER.tolist()


def test_every_contender_is_read_once_a_round_on_every_number_of_threads(model):
    found = rows(model, [contender("onnxruntime-float32")], (1, 2), 4)
    assert {seat: len(row.readings_ms) for seat, row in found.items()} == {
        ("onnxruntime-float32", 1): 4,
        ("onnxruntime-float32", 2): 4,
    }


def test_an_engine_that_differs_from_the_reference_is_called_wrong(model):
    judge = Contender(REFERENCE, reference, slow=True)
    good = rows(model, [contender(OURS, note="avx2"), judge])
    bad = rows(model, [contender(OURS, ANSWER * 2), judge])
    assert good[OURS, 1].note == "avx2"
    assert bad[OURS, 1].note == "WRONG: its answer is not the reference's"


def test_an_answer_is_compared_with_float32(model):
    found = rows(
        model,
        [
            contender("onnxruntime-float32"),
            contender("openvino-int8", ANSWER * 0.9),
        ],
    )
    assert found["openvino-int8", 1].snr_db == pytest.approx(20)
    assert found["onnxruntime-float32", 1].snr_db is None


def test_who_cannot_run_says_why_and_costs_the_others_nothing(model):
    def absent(model, threads):
        raise Unavailable("not installed")

    def broken(model, threads):
        def call():
            raise ValueError("bad graph\nmore")

        return Ready(call, np.asarray)

    found = rows(
        model,
        [
            Contender("openvino-int8", absent),
            Contender("onnxruntime-int8", broken),
            contender(OURS),
        ],
    )
    assert found["openvino-int8", 1].note == "not installed"
    assert found["onnxruntime-int8", 1].note == "fails: ValueError: bad graph"
    assert not found["onnxruntime-int8", 1].readings_ms
    assert len(found[OURS, 1].readings_ms) == 2


def test_the_peak_is_read_in_the_same_rounds(model, monkeypatch):
    monkeypatch.setattr(bench, "peak", lambda threads: lambda: 100.0 * threads)
    outcome = bench.run_model(model, [contender(OURS)], [1, 2], 3)
    assert [part.peak_readings for part in outcome.measured] == [
        (100.0,) * 3,
        (200.0,) * 3,
    ]
    assert outcome.peak_gain(2) == 2


def test_a_fresh_process_says_what_loading_and_running_takes(model):
    needs = bench.run_model(model, [contender(OURS)], [1], 1).footprint
    assert 0 < needs.load_s < needs.load_and_run_s
    assert (
        10e6 < needs.peak_bytes < 1e9
    )  # Python and numpy alone are in between
