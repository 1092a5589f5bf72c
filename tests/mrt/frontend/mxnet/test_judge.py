"""The cases that real mxnet is asked: all operators and attributes are among them, and a wrong answer is seen."""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from mrt.frontend.mxnet.operators.aliases import OTHER_NAMES, known_name
from tests.mxnet_judge import convert, generate
from tests.mxnet_judge.ask import ask
from tests.mxnet_judge.case import Answer, case_from_json, case_to_json
from tests.mxnet_judge.compare import Outcome, difference, judge
from tests.mxnet_judge.makers import MAKERS
from tests.mxnet_judge.report import untested

CASES = generate.cases()


def test_every_operator_has_a_maker():
    assert [name for name in OPERATORS if name not in MAKERS] == []


def test_every_maker_has_an_operator():
    assert [name for name in MAKERS if name not in OPERATORS] == []


def test_every_operator_is_drawn():
    drawn = {operator for case in CASES for operator in case.operators}
    assert sorted({*OPERATORS, *OTHER_NAMES} - drawn) == []


def test_there_are_2000_cases_and_chains_among_them():
    assert len(CASES) >= 2000
    assert sum(len(case.operators) >= 3 for case in CASES) >= 200


def test_every_attribute_is_written_and_left_out():
    """Over all names of one meaning, or (left out) of one set of attributes; a required one is always written."""
    written, left_out = defaultdict(set), defaultdict(set)
    for case in CASES:
        for row in case.symbol["nodes"]:
            if row["op"] != "null":
                operator = OPERATORS[known_name(row["op"])]
                written[operator.handler] |= set(row["attrs"])
                left_out[frozenset(operator.attributes)] |= set(
                    operator.attributes
                ) - set(row["attrs"])
    missing = set()
    for name, operator in OPERATORS.items():
        optional = {
            attribute
            for attribute, declared in operator.attributes.items()
            if not declared.required
        }
        never = set(operator.attributes) - written[operator.handler]
        always = optional - left_out[frozenset(operator.attributes)]
        missing |= {(name, attribute, "never written") for attribute in never}
        missing |= {(name, attribute, "never left out") for attribute in always}
    assert missing == set()


def test_a_case_is_the_same_whatever_others_there_are():
    for index in range(0, len(CASES), 50):
        assert case_to_json(generate.one(CASES[index].id)) == case_to_json(
            CASES[index]
        )


def test_a_case_survives_its_file():
    case = generate.one("Convolution:3")
    again = case_from_json(case_to_json(case))
    assert again.symbol == case.symbol
    for name, array in case.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], array)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (np.array([1, 2.0001], np.float32), ""),
        (
            np.array([1, 2.001], np.float32),
            "output 0: 1 of 2 numbers, first at (1,): 2.001; mxnet 2",
        ),
        (
            np.array([1, np.nan], np.float32),
            "output 0: 1 of 2 numbers, first at (1,): nan; mxnet 2",
        ),
        (
            np.array([[1, 2]], np.float32),
            "output 0: shape (1, 2); mxnet gives (2,)",
        ),
        (
            np.array([1, 2], np.int64),
            "output 0: dtype int64; mxnet gives float32",
        ),
    ],
)
def test_outputs_must_agree_in_numbers_shape_and_dtype(found, problem):
    assert difference([found], [np.array([1, 2], np.float32)], 1.0) == problem


def test_a_refusal_that_mxnet_does_not_share_is_wrong():
    case, numbers = generate.one("relu:0"), Answer((np.ones(2, np.float32),))
    refusal = Answer(refusal="relu: no")
    assert judge(case, numbers, refusal).outcome == Outcome.MRT_REFUSES
    assert judge(case, numbers, refusal).wrong
    assert judge(case, refusal, numbers).wrong
    assert not judge(case, refusal, refusal).wrong


def test_an_operator_of_which_nothing_was_compared_is_named():
    refusal = Answer(refusal="no")
    both = [
        judge(generate.one(identity), refusal, refusal)
        for identity in ("relu:0", "relu:1")
    ]
    assert untested(both) == ["relu"]


JUDGE_THAT_DIES = """
import json, os, sys
answers = open(sys.argv[2], "a")
for number, line in enumerate(open(sys.argv[1])):
    if number >= int(sys.argv[3]):
        answers.write('{"started": %d}\\n' % number)
        answers.flush()
        case = json.loads(line)["id"]
        if case in ("relu:1", "relu:3") or (case == "relu:4" and number):
            os.abort()
        answers.write('{"number": %d, "refusal": "no"}\\n' % number)
        answers.flush()
"""


def test_the_judge_is_started_again_after_a_case_that_kills_it_and_asked_it_once_more_alone(
    tmp_path, monkeypatch
):
    script = tmp_path / "dies.py"
    script.write_text(JUDGE_THAT_DIES)
    monkeypatch.setattr("tests.mxnet_judge.ask.JUDGE", script)
    cases = [generate.one(f"relu:{number}") for number in range(5)]
    answers = ask(cases, Path(sys.executable), tmp_path, lambda _: None)
    died = "the process of mxnet died or hung"
    assert [answer.refusal for answer in answers] == [
        "no",
        died,
        "no",
        died,
        "no",
    ]


def test_what_was_read_is_what_is_run(tmp_path):
    case = generate.one("_plus_scalar:0")
    (name,) = case.inputs
    scalar = float(case.symbol["nodes"][-1]["attrs"]["scalar"])
    (output,) = convert.run(case, tmp_path).outputs
    np.testing.assert_allclose(output, case.inputs[name] + scalar, rtol=1e-6)
