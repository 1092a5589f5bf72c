"""Which options are advised: those with which no figure of the verdict is worse."""

from dataclasses import replace
from typing import Any

import pytest

from mrt import advice
from mrt.evaluate.verdict import DOUBTFUL, GOOD, USELESS, Verdict
from mrt.quantize import QuantizeOptions
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions, CalibrationTable


def verdict(word: str, agreement: float | None, snr: float | None) -> Verdict:
    return Verdict(word, 32, False, agreement, snr, None)


NOW = verdict(DOUBTFUL, 28 / 32, 43.6)


@pytest.mark.parametrize(
    ("word", "agreement", "snr", "better"),
    [
        (DOUBTFUL, 29 / 32, 36.6, False),  # more agree, with more noise
        (GOOD, 30 / 32, 36.6, False),
        (DOUBTFUL, 27 / 32, 60.0, False),
        (USELESS, 28 / 32, 60.0, False),
        (DOUBTFUL, 28 / 32, 46.5, False),  # no more than half a bit
        (DOUBTFUL, 28 / 32, 46.7, True),
        (DOUBTFUL, 29 / 32, 43.6, True),
        (GOOD, 30 / 32, 43.6, True),
        (GOOD, 30 / 32, None, True),  # nothing differs
    ],
)
def test_what_is_worse_in_a_figure_is_no_remedy(word, agreement, snr, better):
    assert advice.is_better(verdict(word, agreement, snr), NOW) == better


def test_scores_count_before_the_sure_probabilities_that_hide_them():
    before = replace(verdict(DOUBTFUL, 1.0, 90.3), scores_db=14.0)
    after = replace(verdict(GOOD, 1.0, 75.0), scores_db=33.0)
    assert advice.is_better(after, before)
    assert not advice.is_better(before, after)


def test_fewer_equal_integers_are_no_remedy():
    before = replace(verdict(DOUBTFUL, None, 12.0), equal=0.9)
    after = replace(verdict(GOOD, None, 22.0), equal=0.85)
    assert not advice.is_better(after, before)


def advised(
    monkeypatch, unrefined: Verdict, wider: Verdict | str
) -> tuple[list[str], list[str]]:
    """What is advised of a program of 18.8 dB, whose layers are refined, and what else was tried."""
    options = QuantizeOptions()
    layers: Any = {"layer": None}
    table = CalibrationTable(
        model_sha256="",
        options=CalibrationOptions(),
        samples=32,
        data_sha256="",
        ranges={},
        decisions=Decisions(options.key(), layers=layers),
    )

    def measured(tried, subject):
        plain = tried == options and not subject.table.decisions.layers
        return unrefined if plain else wider

    monkeypatch.setattr(advice, "_verdict_with", measured)
    monkeypatch.setattr(
        advice,
        "_with_more_bits",
        lambda model, options: iter([replace(options, activation_bits=16)]),
    )
    nothing: Any = None
    subject = advice.AdviceSubject(
        nothing,
        nothing,
        table,
        options,
        nothing,
        nothing,
        verdict(DOUBTFUL, None, 18.8),
        nothing,
    )
    found = advice._remedies(subject)
    return list(map(str, found.remedies)), list(found.tried)


def test_leaving_out_refined_layers_is_a_remedy_where_it_helps(monkeypatch):
    found, others = advised(
        monkeypatch, verdict(GOOD, None, 20.1), verdict(GOOD, None, 21.2)
    )
    assert found == [
        "--refine duplicates,scales,centres (SNR 20.1 dB, on 32 samples)"
    ]
    assert others == [
        "--activation-bits 16 (about SNR 21.2 dB, on 32 samples, before refinement)"
    ]


def test_more_bits_are_measured_although_less_refinement_may_be_good(
    monkeypatch,
):
    """Converted without the stages, a program is not always as good as the draft."""
    remedies, others = advised(
        monkeypatch, verdict(GOOD, None, 20.1), verdict(GOOD, None, 38.0)
    )
    assert remedies == [
        "--refine duplicates,scales,centres (SNR 20.1 dB, on 32 samples)",
        "--activation-bits 16 (about SNR 38.0 dB, on 32 samples, before refinement)",
    ]
    assert others == []


def test_more_bits_that_gain_what_refinement_lost_are_no_remedy(monkeypatch):
    """Refined, they would lose it again."""
    found, others = advised(
        monkeypatch,
        verdict(DOUBTFUL, None, 19.9),
        verdict(DOUBTFUL, None, 22.0),
    )
    assert found == []
    assert others == [
        "--refine duplicates,scales,centres (SNR 19.9 dB, on 32 samples)",
        "--activation-bits 16 (about SNR 22.0 dB, on 32 samples, before refinement)",
    ]


def test_bits_that_make_no_program_are_named_with_the_reason(monkeypatch):
    found, others = advised(
        monkeypatch, verdict(GOOD, None, 25.0), "the sum leaves i32"
    )
    assert len(found) == 1
    assert others == ["--activation-bits 16 (no program: the sum leaves i32)"]
    found, others = advised(
        monkeypatch, verdict(DOUBTFUL, None, 18.0), "the sum leaves i32"
    )
    assert found == []
    assert others[1] == "--activation-bits 16 (no program: the sum leaves i32)"


def test_a_draft_promises_about_what_it_measured(monkeypatch):
    found, _ = advised(
        monkeypatch, verdict(DOUBTFUL, None, 18.0), verdict(GOOD, None, 31.0)
    )
    assert found == [
        "--activation-bits 16 (about SNR 31.0 dB, on 32 samples, before refinement)"
    ]


def test_without_a_remedy_it_says_what_was_tried():
    found = advice.Advice(tried=["--weight-bits 15 (no program: why)", "b"])
    assert found.sentences()[0] == (
        "these were tried and help little or not: --weight-bits 15 (no program: why); b"
    )
    assert advice.Advice().sentences()[0] == (
        "there are no more bits to be tried"
    )


def test_a_layer_of_several_instructions_is_named_once():
    said = [("b", "its weights"), ("a", "its values"), ("b", "its weights")]
    found = advice.Advice(advice.each_once(said))
    assert found.sentences()[0] == (
        "most noise arises in 'b' (its weights), 'a' (its values)"
    )


def test_causes_that_are_of_no_layer_are_said_behind_the_layers():
    found = advice.Advice(["'a' (its values)"], causes=["'c' has one scale"])
    assert found.sentences()[:2] == [
        "most noise arises in 'a' (its values)",
        "'c' has one scale",
    ]


@pytest.mark.parametrize(
    "decibels, remedies, dearer",
    [
        ((21.0, 30.0, 40.0), [9], [10, 11]),  # those that were not measured
        ((15.0, 16.0, 19.0), [9, 11], []),
        ((15.0, 19.0, 19.5), [9, 10], [11]),  # good, if 10 is refused
        ((15.0, 14.0, 4.0), [9], [10]),  # 11 is worse than the program
        ((6.0, 7.0, 8.0), [], []),
    ],
)
def test_dearer_bits_are_kept_for_when_a_remedy_proves_to_be_none(
    monkeypatch, decibels, remedies, dearer
):
    nothing: Any = None
    measured = {
        9 + place: verdict(GOOD if snr >= 20 else DOUBTFUL, None, snr)
        for place, snr in enumerate(decibels)
    }
    monkeypatch.setattr(
        advice,
        "_verdict_with",
        lambda options, subject: measured[options.weight_bits],
    )
    monkeypatch.setattr(
        advice,
        "_with_more_bits",
        lambda model, options: (
            replace(options, weight_bits=bits) for bits in measured
        ),
    )
    options = QuantizeOptions()
    table = CalibrationTable(
        model_sha256="",
        options=CalibrationOptions(),
        samples=32,
        data_sha256="",
        ranges={},
        decisions=Decisions(options.key()),
    )
    now = verdict(DOUBTFUL, None, 10.0)
    subject = advice.AdviceSubject(
        nothing, nothing, table, options, nothing, nothing, now, nothing
    )
    found = advice._remedies(subject)
    of_remedies = [remedy.options for remedy in found.remedies]
    assert [it["weight_bits"] for it in of_remedies] == remedies
    assert [it["weight_bits"] for it in found.dearer] == dearer


def test_bits_beyond_the_last_conversion_are_said():
    dearer = [{"weight_bits": 15}]
    found = advice.Advice(tried=["--activation-bits 16"], dearer=dearer)
    assert found.sentences()[:2] == [
        "these were tried and help little or not: --activation-bits 16",
        "dearer, and not tried: --weight-bits 15",
    ]


def test_dearer_bits_go_beside_what_was_chosen():
    found = advice.Advice(dearer=[{"weight_bits": 15}])
    (options,) = found.beside({"activation_bits": 16}).dearer
    assert options == {"activation_bits": 16, "weight_bits": 15}
