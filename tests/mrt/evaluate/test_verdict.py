"""The word of a verdict, at its limits, and its sentence."""

from dataclasses import replace

import pytest

from mrt.evaluate.class_output import ClassOutput
from mrt.evaluate.evaluation import (
    Accuracy,
    ClassFacts,
    Evaluation,
    NoiseFacts,
    ScoreFacts,
)
from mrt.evaluate.verdict import Verdict, notes_on_change

NONE = Accuracy(None, None, 1.0)


def report(
    *,
    agreement=None,
    snr=(),
    equal=(),
    samples=32,
    zeros_differ=False,
    change=None,
    unreachable=None,
    scores=None,
) -> Evaluation:
    return Evaluation(
        samples,
        NONE,
        NONE,
        agreement,
        {f"r{place}": item for place, item in enumerate(snr)},
        {f"i{place}": item for place, item in enumerate(equal)},
        noise=NoiseFacts(zeros_differ=zeros_differ, change_db={"r0": change}),
        scores=ScoreFacts(
            unreachable=unreachable or {},
            snr_db={} if scores is None else {"r0": scores},
        ),
    )


def with_scores(found: Evaluation, decibels: float | None) -> Evaluation:
    """With scores behind the probabilities of the output."""
    return replace(found, scores=replace(found.scores, snr_db={"r0": decibels}))


@pytest.mark.parametrize(
    ("figures", "word"),
    [
        ({"snr": [20.0]}, "good"),
        ({"snr": [19.9]}, "look at it"),
        ({"snr": [10.0]}, "look at it"),
        ({"snr": [9.9]}, "useless"),
        ({"snr": [0.3]}, "useless"),
        ({"snr": [-5.0]}, "useless"),
        ({"snr": [40.0, 9.0]}, "useless"),
        ({"snr": [None]}, "good"),
        ({"snr": [None], "zeros_differ": True}, "look at it"),
        ({"snr": [32.0], "unreachable": {"r0": 0.05}}, "look at it"),
        ({"snr": [0.3], "unreachable": {"r0": 0.05}}, "useless"),
        ({"snr": [32.0], "change": 10.0}, "good"),
        ({"snr": [32.0], "change": 9.9}, "look at it"),
        ({"snr": [32.0], "change": -5.0}, "look at it"),
        ({"snr": [32.0], "change": 9.9, "samples": 8}, "look at it"),
        ({"snr": [32.0], "change": 9.9, "samples": 7}, "good"),
        ({"snr": [9.0], "change": -5.0}, "useless"),
        ({"snr": [32.0], "change": 1.0, "agreement": 1.0}, "good"),
        ({"equal": [0.9]}, "good"),
        ({"equal": [0.89]}, "look at it"),
        ({"equal": [0.74]}, "useless"),
        ({"equal": [1.0], "snr": [5.0]}, "useless"),
        ({"agreement": 1.0, "snr": [30.0]}, "good"),
        ({"agreement": 1.0, "snr": [0.3]}, "look at it"),
        ({"agreement": 0.5, "snr": [30.0]}, "look at it"),
        ({"agreement": 0.5, "snr": [9.0]}, "useless"),
        ({"agreement": 0.8, "snr": [30.0]}, "look at it"),
        ({"agreement": 7 / 8, "snr": [30.0]}, "good"),
        ({"agreement": 0.5, "equal": [0.5]}, "useless"),
        ({"agreement": 1.0, "equal": [1.0]}, "good"),
        ({"snr": [90.0], "scores": 20.0}, "good"),
        ({"snr": [90.0], "scores": 19.9}, "look at it"),
        ({"snr": [90.0], "scores": 9.9}, "useless"),
        ({"snr": [15.0], "scores": 30.0}, "look at it"),
        ({"agreement": 1.0, "snr": [90.0], "scores": 9.9}, "look at it"),
    ],
)
def test_the_worst_figure_decides_but_classes_and_noise_excuse_each_other(
    figures, word
):
    assert Verdict.of(report(**figures), fresh=True).word == word


@pytest.mark.parametrize(
    ("figures", "fresh", "sentence"),
    [
        (
            {"agreement": 31 / 32, "snr": [27.44]},
            True,
            "agreement 31 of 32 held-back samples, SNR 27.4 dB: good",
        ),
        (
            {"agreement": 1.0, "snr": [27.44]},
            False,
            "agreement 32 of 32 samples that were calibrated on, SNR 27.4 dB: good",
        ),
        (
            {"snr": [0.3], "samples": 1},
            True,
            "SNR 0.3 dB, on 1 held-back sample: useless",
        ),
        (
            {"agreement": 1.0, "snr": [90.3], "scores": 14.04},
            True,
            "agreement 32 of 32 held-back samples, SNR 90.3 dB, scores 14.0 dB: look at it",
        ),
        (
            {"snr": [None], "scores": 14.04},
            True,
            "no difference, scores 14.0 dB, on 32 held-back samples: look at it",
        ),
        (
            {"snr": [32.04], "change": 1.26},
            True,
            "SNR 32.0 dB (1.3 dB counted from the outputs' means), on 32 held-back samples: look at it",
        ),
        (
            {"snr": [32.04], "change": 12.0},
            True,
            "SNR 32.0 dB, on 32 held-back samples: good",
        ),
        (
            {"snr": [None]},
            True,
            "no difference, on 32 held-back samples: good",
        ),
        (
            {"agreement": 1.0, "snr": [None]},
            True,
            "agreement 32 of 32 held-back samples, no difference: good",
        ),
        (
            {"snr": [None], "zeros_differ": True},
            True,
            "float's outputs are all 0, the program's are not, on 32 held-back samples: look at it",
        ),
        (
            {"equal": [0.5], "snr": [30.0]},
            True,
            "50.0 % of integers equal, SNR 30.0 dB, on 32 held-back samples: useless",
        ),
        (
            {"equal": [0.625]},
            True,
            "62.5 % of integers equal, on 32 held-back samples: useless",
        ),
        (
            {"equal": [1.0], "samples": 1},
            False,
            "no difference, on 1 sample that was calibrated on: good",
        ),
        (
            {"equal": [1.0], "snr": [30.0]},
            True,
            "SNR 30.0 dB, on 32 held-back samples: good",
        ),
        (
            {"agreement": 0.5, "equal": [0.5]},
            True,
            "agreement 16 of 32 held-back samples, 50.0 % of integers equal: useless",
        ),
        (
            {"agreement": 1.0, "equal": [1.0]},
            True,
            "agreement 32 of 32 held-back samples: good",
        ),
    ],
)
def test_the_sentence_has_the_figures_that_there_are(figures, fresh, sentence):
    assert Verdict.of(report(**figures), fresh=fresh).sentence == sentence


@pytest.mark.parametrize(
    ("figures", "is_noted"),
    [
        ({"snr": [65.0], "change": 11.0}, True),
        ({"snr": [65.0], "change": 5.0, "agreement": 1.0}, True),
        ({"snr": [39.9], "change": 19.9}, True),
        ({"snr": [29.9], "change": 19.9}, True),
        ({"snr": [29.8], "change": 19.9}, False),
        ({"snr": [26.6], "change": 10.2}, True),
        ({"snr": [65.0], "change": 11.0, "samples": 4}, True),
        ({"snr": [65.0], "change": 20.0}, False),
        ({"snr": [25.7], "change": 16.5}, False),
        ({"snr": [65.0], "change": None}, False),
        ({"snr": [65.0], "change": 5.0}, False),
        ({"equal": [1.0]}, False),
    ],
    ids=str,
)
def test_outputs_that_differ_little_between_samples_are_noted(
    figures, is_noted
):
    """Far less is left than the figure says, and less than is good; what is no longer good says so itself."""
    assert bool(notes_on_change(report(**figures))) == is_noted


def test_a_note_on_little_change_speaks_of_classes_only_where_there_are_some():
    found = report(agreement=1.0, snr=[54.0], change=12.0)
    of_classes = replace(found, classes=ClassFacts(ClassOutput("r0")))
    (note,) = notes_on_change(of_classes)
    assert "as where one class is almost always the answer" in note
    assert "SNR 54.0 dB, but 12.0 dB counted from its means. Measure" in note
    of_another = replace(found, classes=ClassFacts(ClassOutput("r1")))
    for others in (found, of_another):
        (note,) = notes_on_change(others)
        assert "as a forecast" in note
        assert note.endswith("try --activation-bits 16")


@pytest.mark.parametrize(
    ("has_most", "end"),
    [
        ([], "or try --activation-bits 16"),
        (["activation_bits"], "or try --activation-bits 16 --weight-bits 15"),
        (["activation_bits", "weight_bits"], "answers that matter"),
    ],
)
def test_notes_name_no_bits_that_the_program_has(has_most, end):
    made_so = frozenset(has_most)
    found = replace(report(snr=[54.0], change=12.0), has_most=made_so)
    (note,) = notes_on_change(found)
    assert note.endswith(end)
    noise = NoiseFacts(median_db={"r0": 13.2})
    found = replace(report(snr=[27.4]), noise=noise, has_most=made_so)
    (note,) = notes_on_change(found)
    assert ("activation-bits" in note) == (len(has_most) < 2)


def test_figures_of_probabilities_that_are_nearly_all_0_or_1_are_noted():
    saturated = replace(
        report(agreement=1.0, snr=[90.3], samples=8),
        scores=ScoreFacts(saturated={"r0": 7}),
    )
    assert notes_on_change(saturated) == [
        "output 'r0' is within 0.001 of 0 or 1 in 7 of 8 samples, where noise hardly shows: others, of which float is less "
        "sure, may have much more. Measure on such samples, or on the scores that it is made of, if --outputs can name them"
    ]
    assert not notes_on_change(replace(saturated, snr_db={"r0": 15.0}))
    for decibels, figure in ((37.44, "37.4 dB"), (None, "no difference")):
        assert notes_on_change(with_scores(saturated, decibels)) == [
            "output 'r0' is within 0.001 of 0 or 1 in 7 of 8 samples, where noise hardly shows: the verdict counts the scores "
            f"before its Softmax or Sigmoid as well ({figure})"
        ]
    assert not notes_on_change(with_scores(saturated, 15.0))


@pytest.mark.parametrize("decibels", [40.0, 15.0, 5.0])
def test_an_evaluation_ends_with_the_verdict(decibels):
    found = report(agreement=1.0, snr=[decibels])
    verdict = Verdict.of(found, fresh=None)
    assert repr(found).endswith(f"\n  against float: {verdict.sentence}")
    facts = found.to_json()
    assert (facts["verdict"], facts["sentence"]) == (
        verdict.word,
        verdict.sentence,
    )


def test_json_has_the_figures_and_the_sentence():
    found = Verdict.of(report(agreement=0.5, snr=[12.0]), fresh=False).to_json()
    assert found == {
        "verdict": "look at it",
        "samples": 32,
        "held_back": False,
        "agreement": 0.5,
        "snr_db": 12.0,
        "equal": None,
        "sentence": "agreement 16 of 32 samples that were calibrated on, SNR 12.0 dB: look at it",
    }


@pytest.mark.parametrize(
    ("figures", "word", "figure"),
    [
        ({"agreement": 1.0, "snr": [21.2], "change": 7.2}, "look at it", " (7.2 dB counted from the outputs' means)"),
        ({"agreement": 1.0, "snr": [21.2], "change": 10.0}, "good", ""),
        ({"agreement": 1.0, "snr": [21.2], "change": 7.2, "samples": 7}, "good", ""),
        ({"agreement": 1.0, "snr": [5.0], "change": -3.0}, "look at it", " (-3.0 dB counted from the outputs' means)"),
    ],
)  # fmt: skip
def test_an_agreement_on_one_class_alone_excuses_no_noise_beside_what_changes(
    figures, word, figure
):
    """But it keeps a classifier that was given one class from being called useless."""
    several = report(**figures)
    assert "counted" not in Verdict.of(several, fresh=True).sentence
    alone = Verdict.of(
        replace(several, classes=ClassFacts(has_one_answer=True)), fresh=True
    )
    assert alone.word == word
    assert f"dB{figure}: {word}" in alone.sentence


@pytest.mark.parametrize(
    ("classes", "word"),
    [
        (ClassOutput("r0"), "good"),
        (ClassOutput("r1"), "look at it"),
        (ClassOutput("i0", is_label=True), "good"),
    ],
)
def test_scores_that_agree_speak_for_their_output_alone(classes, word):
    """As a forecast's mean, taken for classes, does not for its spread; a label speaks for all."""
    figures = report(agreement=1.0, snr=[26.6, 40.0], change=2.0)
    found = replace(figures, classes=ClassFacts(classes))
    assert Verdict.of(found, fresh=True).word == word


def test_ties_count_neither_for_nor_against():
    without_ties = report(agreement=0.75, snr=[48.5], samples=10)
    with_ties = replace(without_ties, classes=ClassFacts(ties=6))
    assert with_ties.answers == 4
    sentence = Verdict.of(with_ties, fresh=True).sentence
    assert sentence == (
        "agreement 3 of 4 held-back samples (float's best two scores tie in 6 more), SNR 48.5 dB: look at it"
    )
    wide, narrow = (
        with_ties.confidence_interval(0.75),
        without_ties.confidence_interval(0.75),
    )
    assert wide[0] < narrow[0]
    assert wide[1] > narrow[1]


@pytest.mark.parametrize(
    ("median", "figures", "is_noted"),
    [
        (13.2, {"snr": [27.4]}, True),
        (19.9, {"snr": [25.9]}, True),
        (20.0, {"snr": [40.0]}, False),
        (19.9, {"snr": [25.8]}, False),
        (None, {"snr": [27.4]}, False),
        (5.0, {"snr": [15.0]}, False),
    ],
)
def test_small_samples_that_great_ones_hide_are_noted(
    median, figures, is_noted
):
    found = replace(
        report(**figures), noise=NoiseFacts(median_db={"r0": median})
    )
    notes = notes_on_change(found)
    assert bool(notes) == is_noted
    if is_noted:
        assert f"have less than {median:.1f} dB by themselves" in notes[0]
    of_classes = replace(
        found, agreement=1.0, classes=ClassFacts(ClassOutput("r0"))
    )
    assert not notes_on_change(of_classes)
