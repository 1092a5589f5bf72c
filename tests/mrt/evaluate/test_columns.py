"""A column of an output that greater ones hide: found where it means something, and judged."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mrt
from mrt.advice import is_better
from mrt.evaluate.class_output import ClassOutput
from mrt.evaluate.columns import Columns, SmallColumn
from mrt.evaluate.evaluation import Accuracy, ClassFacts, Evaluation
from mrt.evaluate.verdict import Verdict
from mrt.page.answers import Answers
from mrt.page.verdict import verdict as page_verdict

GENERATOR = np.random.default_rng(5)
GREAT = 200 + 20 * GENERATOR.normal(size=32)
SMALL = 4 + GENERATOR.normal(size=32)
ERROR = 3 * GENERATOR.normal(size=32)


def lost(*columns, error=ERROR, samples=32, no_classes=False):
    """What is found of an output, of which every column has the same error."""
    rows = np.stack(columns, axis=1)[:samples]
    counts = Columns.of(rows[:1])
    assert counts is not None
    for row, wrong in zip(rows, error, strict=False):
        counts.add(row[np.newaxis], row[np.newaxis] + wrong)
    found = counts.noisiest(
        "y", holds_no_classes=no_classes, is_class_output=True
    )
    return found if found is not None and found.is_lost else None


def test_the_small_column_is_lost():
    found = lost(GREAT, SMALL)
    expected = 10 * np.log10((SMALL**2).sum() / (ERROR**2).sum())
    assert found is not None
    assert (found.output, found.column) == ("y", 1)
    assert found.decibels == pytest.approx(expected)
    assert found.name == "column [:,1] of 'y'"


def test_a_small_column_of_sequences_is_lost():
    rows = np.stack([GREAT, SMALL], axis=1).reshape(8, 1, 4, 2)
    wrong = rows + ERROR.reshape(8, 1, 4, 1)
    counts = Columns.of(rows[0])
    assert counts is not None
    for real, integer in zip(rows, wrong, strict=True):
        counts.add(real, integer)
    found = counts.noisiest("y", holds_no_classes=False, is_class_output=False)
    assert found is not None
    assert found.decibels == lost(GREAT, SMALL).decibels
    assert found.name == "column [:,:,1] of 'y'"


def test_the_steps_of_a_sequence_are_no_columns():
    """[N,C,T], as convolutions give it; [N,T,C] has more steps than columns."""
    assert Columns.of(np.ones((1, 2, 4))) is None
    assert Columns.of(np.ones((1, 4, 4))) is None
    assert Columns.of(np.ones((1, 4, 2))) is not None


def test_of_two_the_worse_is_named():
    assert lost(SMALL, GREAT, SMALL / 2).column == 2


@pytest.mark.parametrize("factor", [1, -1])
def test_signs_do_not_matter(factor):
    assert lost(GREAT * factor, SMALL * factor).column == 1


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ((GREAT, np.full(32, 4.0)), "it is constant"),
        ((GREAT, 4 + 1e-6 * SMALL), "it is constant up to rounding"),
        ((GREAT, 1e-5 * SMALL), "it is what rounding leaves of zero"),
        ((GREAT, np.where(np.arange(32) < 8, SMALL, 0)), "it is mostly dead"),
        ((GREAT, 5 * SMALL), "it is no smaller than a score may be"),
        ((GREAT / 300, SMALL / 300), "both are within -1 and 1"),
        ((GREAT, *[SMALL] * 32), "there are many columns"),
        ((GREAT,), "there is no other column"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_columns_that_mean_little_do_not_count(columns, why):
    rows = np.stack(columns, axis=1)
    if Columns.of(rows[:1]) is not None:
        assert lost(*columns, error=ERROR / 100) is None, why
        assert lost(*columns) is None, why


def test_logarithms_of_shares_do_not_count():
    scores = np.stack([5 + SMALL / 10, 0 * SMALL], axis=1)
    shares = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert lost(*shares.T, error=ERROR / 20) is None


def test_few_samples_do_not_tell():
    assert lost(GREAT, SMALL, samples=8) is not None
    assert lost(GREAT, SMALL, samples=7) is None


def test_a_column_as_noisy_as_the_whole_is_not_hidden():
    assert lost(GREAT, SMALL, error=0.1 * ERROR) is None  # 22 dB


def test_a_column_that_wins_at_times_may_be_the_score_of_a_class():
    signed = np.where(np.arange(32) % 2, GREAT, -GREAT)
    assert lost(signed, SMALL) is None
    assert lost(signed, SMALL, no_classes=True).column == 1


def test_a_lost_column_that_wins_at_times_is_noted(tmp_path):
    """Positions and speeds, as a filter gives them, pass for scores of four classes."""
    generator = np.random.default_rng(3)
    sizes = np.array([100, 100, 2, 2])
    mixing = np.eye(4)
    mixing[2:, :2] = 0.2
    constants = {"w": np.diag(sizes), "last": mixing}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["moved"]),
            helper.make_node("Tanh", ["x"], ["bent"]),
            helper.make_node("Add", ["moved", "bent"], ["state"]),
            helper.make_node("MatMul", ["state", "last"], ["y"]),
        ],
        "g",
        [info("x", TensorProto.FLOAT, [1, 4])],
        [info("y", TensorProto.FLOAT, [1, 4])],
        [
            numpy_helper.from_array(np.float32(array), name)
            for name, array in constants.items()
        ],
    )
    opset = helper.make_opsetid("", 17)
    path = tmp_path / "filter.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[opset], ir_version=9), path
    )
    x = generator.normal(size=(128, 4)).astype(np.float32)
    quality = mrt.convert(path, {"x": x}, bits=8).conversion.quality
    assert quality.verdict.is_good
    (note,) = quality.notes()
    assert "may be the score of a class" in note
    assert note.endswith(
        "If it is a number by itself, try --activation-bits 16"
    )
    more = mrt.convert(path, {"x": x}, bits=8, activation_bits=16)
    assert not more.conversion.quality.notes()


def test_classes_that_change_excuse_a_column():
    signed = np.where(np.arange(32) % 2, GREAT, -GREAT)
    assert lost(signed, -signed, SMALL).agreement_may_excuse
    assert not lost(GREAT, SMALL).agreement_may_excuse


NONE = Accuracy(None, None, 1.0)


def report(decibels=None, *, agreement=None, excused=False, snr=38.0):
    columns = []
    if decibels is not None:
        columns = [SmallColumn("y", 1, decibels, snr, excused)]
    classes = ClassOutput("y") if agreement is not None else None
    return Evaluation(
        32,
        NONE,
        NONE,
        agreement,
        {"y": snr},
        classes=ClassFacts(classes),
        small_columns=columns,
    )


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (report(), "good"),
        (report(12.0), "look at it"),
        (report(3.0), "useless"),
        (report(3.0, agreement=1.0), "useless"),
        (report(3.0, agreement=1.0, excused=True), "look at it"),
        (
            replace(report(3.0, agreement=1.0), classes=ClassFacts()),
            "look at it",
        ),
    ],
)
def test_the_verdict_is_that_of_the_column(found, word):
    assert Verdict.of(found, fresh=True).word == word


def test_the_column_is_named_wherever_the_verdict_is():
    found = report(3.14, agreement=1.0)
    assert Verdict.of(found, fresh=True).sentence == (
        "agreement 32 of 32 held-back samples, SNR 38.0 dB, but 3.1 dB in column [:,1] of 'y': useless"
    )
    assert "\n  signal to noise of column [:,1] of 'y': 3.1 dB\n" in repr(found)
    judged = page_verdict(found, Answers(0, 0, 0, 0))
    assert judged.word == "useless"
    assert judged.sentence.endswith("In column [:,1] of 'y' it is 3.1 dB.")


def test_a_better_program_may_show_a_column_that_the_noise_of_a_worse_one_covered():
    before = Verdict.of(report(5.0, snr=12.0), fresh=True)
    after = Verdict.of(report(15.0, snr=32.0), fresh=True)
    assert before.lost_column is None
    assert after.lost_column is not None
    assert is_better(after, before)


def test_a_remedy_that_loses_a_column_is_none():
    before = Verdict.of(report(15.0, snr=16.0), fresh=True)
    after = Verdict.of(report(12.0, snr=40.0), fresh=True)
    assert before.word == after.word
    assert not is_better(after, before)


def test_a_remedy_for_a_column_is_one():
    before, after = (
        Verdict.of(report(decibels, agreement=1.0), fresh=True)
        for decibels in (3.0, 6.5)
    )
    assert is_better(after, before)
    assert not is_better(before, after)


@pytest.fixture(scope="module", name="regressor")
def _regressor(tmp_path_factory):
    """Numbers of about 200 and 1, which have one scale of 8 bits in front of the last product."""
    path = tmp_path_factory.mktemp("regressor") / "regressor.onnx"
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(8, 2)) * [20, 0.5]
    constants = {
        "w": weights,
        "b": np.array([200, 0.5]),
        "last": np.array([[1, 0.01], [0.3, 1]]),
    }
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["sums"]),
            helper.make_node("Softplus", ["sums"], ["counts"]),
            helper.make_node("MatMul", ["counts", "last"], ["y"]),
        ],
        "g",
        [info("x", TensorProto.FLOAT, ["N", 8])],
        [info("y", TensorProto.FLOAT, ["N", 2])],
        [
            numpy_helper.from_array(np.float32(array), name)
            for name, array in constants.items()
        ],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(
        helper.make_model(graph, opset_imports=[opset], ir_version=9), path
    )
    return path


def test_a_regressor_that_loses_a_column_is_not_called_good(regressor):
    x = np.random.default_rng(1).normal(size=(128, 8)).astype(np.float32)
    eight = mrt.convert(regressor, {"x": x}, bits=8).conversion.quality
    assert eight.verdict is not None and eight.report is not None
    assert eight.report.worst_snr_db > 30
    assert eight.verdict.word != "good"
    assert "in column [:,1] of 'y'" in eight.sentence
    chosen = mrt.convert(regressor, {"x": x}).conversion
    assert chosen.chosen
    assert chosen.quality.verdict.is_good


def test_labels_say_that_columns_are_scores_of_classes(regressor):
    x = np.random.default_rng(1).normal(size=(128, 8)).astype(np.float32)
    converted = mrt.convert(regressor, {"x": x}, bits=8)
    assert converted.evaluate({"x": x}).lost_column.column == 1
    of_classes = converted.evaluate({"x": x}, np.zeros(128, np.int64))
    assert not of_classes.small_columns
