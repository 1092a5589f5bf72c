"""What `make tosa` counts: a difference of one, a graph that must be rejected and is not, and a refusal that nothing explains."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cvm.tosa.graph import TosaOperator, TosaTensor, to_bytes
from tests.cvm.tosa.test_importing import adding, graph
from tests.support.tosa_programs import TosaAnswer
from tests.tosa_judge import report
from tests.tosa_judge.generate import FAILED, folders_of
from tests.tosa_judge.verdict import (
    Verdict,
    judge_negative,
    judge_positive,
)

X = np.array([5, -6], np.int32)
RIGHT = TosaAnswer("TOSA_VALID", (np.array([10, -12], np.int32),))


def folder(tmp_path, of, x=X, kind="positive"):
    """Write a test as Arm's generator does."""
    place = tmp_path / kind / "op" / "test"
    place.mkdir(parents=True)
    (place / "test.tosa").write_bytes(to_bytes(of))
    (place / "desc.json").write_text(json.dumps({"ifm_file": ["x.npy"]}))
    np.save(place / "x.npy", x)
    return place


def test_the_same_numbers_are_exact(tmp_path):
    verdict = judge_positive(folder(tmp_path, adding()), RIGHT)
    assert (verdict.outcome, verdict.wrong) == ("exact", False)


@pytest.mark.parametrize(
    "answer",
    [
        replace(RIGHT, outputs=(np.array([10, -11], np.int32),)),
        replace(RIGHT, outputs=(np.array([10, -12], np.int16),)),
        replace(RIGHT, status="TOSA_UNPREDICTABLE"),
    ],
)
def test_another_number_dtype_or_status_is_a_difference(tmp_path, answer):
    verdict = judge_positive(folder(tmp_path, adding()), answer)
    assert (verdict.outcome, verdict.wrong) == ("different", True)


def test_what_is_not_proven_runs_checked(tmp_path):
    tensors = [TosaTensor("x", "INT32", (2,)), TosaTensor("y", "INT32", (1,))]
    total = TosaOperator("REDUCE_SUM", ("x",), ("y",), {"axis": 0})
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    answer = TosaAnswer("TOSA_VALID", (np.array([-1], np.int32),))
    place = folder(tmp_path, graph([total], tensors), x)
    assert judge_positive(place, answer).outcome == "exact, checked"


def test_an_operator_without_an_instruction_is_left_out(tmp_path):
    of = adding()
    step = replace(of.operators[0], name="BITWISE_AND")
    place = folder(tmp_path, replace(of, operators=(step,)))
    verdict = judge_positive(place, RIGHT)
    assert (verdict.outcome, verdict.wrong) == ("left out", False)


def test_a_refusal_that_nothing_explains_is_wrong(tmp_path):
    of = adding()
    step = replace(of.operators[0], inputs=("x",))
    place = folder(tmp_path, replace(of, operators=(step,)))
    verdict = judge_positive(place, RIGHT)
    assert (verdict.outcome, verdict.wrong) == ("refused", True)


def test_what_must_be_rejected_and_is_imported_is_wrong(tmp_path):
    place = folder(tmp_path, adding(), kind="negative")
    assert judge_negative(place).wrong
    assert list(folders_of(tmp_path, "negative", "test")) == [place]
    assert list(folders_of(tmp_path, "negative", "other")) == []


def test_the_counts_of_a_run():
    positive = [
        Verdict("add", "a", "exact"),
        Verdict("add", "b", "different", "native"),
        Verdict(
            "sin", "c", "left out", "of an operator without an instruction"
        ),
    ]
    negative = [Verdict("add", "d", "rejected"), Verdict("add", "e", "accepted")]  # fmt: skip
    assert report.sentence(positive, negative) == (
        "3 that must run: 1 exact, 0 exact in a checked run, 1 of an operator without an instruction, "
        "0 left out for other reasons; 2 that must be rejected: 1 are, 0 of them of an operator without an instruction; "
        "2 wrong"
    )


def test_the_generators_own_failures_are_counted():
    match = FAILED.search("Exception: Failed to create 1 tests\n")
    assert match is not None and match[1] == "1"
