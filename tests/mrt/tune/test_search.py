"""Which candidates a search keeps, where noises simply add up: the expectations are sums done by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from cvm.proof.cost import Work
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.tune import TuningTarget, tune
from mrt.tune.candidates import Candidate
from mrt.tune.evaluator import Score
from mrt.tune.order import in_order
from mrt.tune.programs import Programs
from mrt.tune.search import Trial, gains
from mrt.tune.sensitivity import Measured, measure
from mrt.tune.target import SNR_ROOM_DB
from tests.support.float_models import FloatModel, calibrated

RNG = np.random.default_rng(9)


@dataclass
class Sums:
    """In place of programs: noise left is the sum over the candidates that are not raised."""

    noises: dict[str, float]

    def refined(self, options: QuantizeOptions) -> QuantizeOptions:
        return options

    def score(self, options: QuantizeOptions) -> Score:
        left = sum(
            noise
            for name, noise in self.noises.items()
            if name not in options.layers
        )
        return Score(-10 * math.log10(left) if left else math.inf, None)


def found(name: str, noise: float, cost: int) -> Measured:
    return Measured(Candidate(True, (name,), 8, 15), noise, Work(), cost)


def kept(rows: list[Measured], allowed: float) -> set[str]:
    """What is raised so that at most `allowed` noise is left."""
    sums = Sums({item.candidate.names[0]: item.noise for item in rows})
    target = TuningTarget("snr", -10 * math.log10(allowed) - SNR_ROOM_DB)
    trial = Trial(
        sums,
        sums,
        QuantizeOptions(),
        target,
        lambda what, done, total: None,
    )  # type: ignore[arg-type]
    return {item.candidate.names[0] for item in trial.fewest(in_order(rows))}


ROWS = [
    found("a", 0.05, 1),
    found("b", 0.03, 2),
    found("c", 0.01, 5),
    found("d", 0.004, 6),
]


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        (0.045, {"a"}),
        (0.0145, {"a", "b"}),
        (0.0045, {"a", "b", "c"}),
        (0.001, set("abcd")),
    ],
)
def test_the_best_worth_is_raised_first_and_no_more_than_needed(allowed, names):
    assert kept(ROWS, allowed) == names


def test_what_a_dear_one_makes_needless_is_lowered_again():
    # by worth: a, b, then c, which alone would do; b is the dearest that can go, a is too little to do without c
    rows = [
        found("a", 0.010, 10),
        found("b", 0.010, 20),
        found("c", 0.090, 1000),
    ]
    assert kept(rows, 0.0201) == {"c"}


def read(
    value: Measured, name: str, noise: float, cost: int, beside: int
) -> Measured:
    """Weights that multiply a value."""
    weights = Candidate(True, (name,), 8, 11)
    return Measured(weights, noise, Work(), cost, value.candidate, beside)


def names_of(rows: list[Measured]) -> list[str]:
    return [item.candidate.names[0] for item in rows]


def test_weights_come_with_the_value_that_makes_them_cheap():
    """By itself w is worth 3 / 60, x 1 / 10; both together are worth 4 / 12, more than y, which is worth 3 / 10."""
    x, y = found("x", 1, 10), found("y", 3, 10)
    w = read(x, "w", 3, 60, beside=2)
    assert names_of(in_order([x, y, w])) == ["x", "w", "y"]
    dear = read(x, "w", 3, 60, beside=30)
    assert names_of(in_order([x, y, dear])) == ["y", "x", "w"]
    alone = read(x, "w", 30, 60, beside=59)
    assert names_of(in_order([alone, x, y]))[0] == "w"


def test_a_value_is_lowered_with_the_weights_that_it_makes_cheap():
    """All three but c are as good as needed without x and w; w by itself would have to be multiplied twice."""
    x, c = found("x", 0.010, 10), found("c", 0.090, 100)
    w = read(x, "w", 0.010, 60, beside=0)
    assert kept([x, w, c], 0.0201) == {"c"}


class Lucky:
    """A target of 20 dB that 14.7 dB meet by chance: with a and c raised."""

    def met(self, score: Score) -> bool:
        return score.worst_snr_db > 20 or round(score.worst_snr_db, 1) == 14.7


def test_a_program_that_meets_the_target_by_luck_does_not_count():
    """With a and b raised there are 18.5 dB, which are too few; b goes only where that was not tried."""
    sums = Sums({item.candidate.names[0]: item.noise for item in ROWS})
    trial = Trial(
        sums, sums, QuantizeOptions(), Lucky(), lambda what, done, total: None
    )  # type: ignore[arg-type]
    assert names_of(trial.fewest(in_order(ROWS))) == ["a", "b", "c"]
    trial.missed_db = -math.inf
    assert trial.meets([ROWS[0], ROWS[2]])


class NoiseInZeros(Sums):
    """Programs of which one output has noise where float gives 0 always; `a` decides on the classes of another."""

    def score(self, options: QuantizeOptions) -> Score:
        return Score(-math.inf, "a" in options.layers)  # type: ignore[arg-type]


class Classes:
    """A target of classes alone."""

    def met(self, score: Score) -> bool:
        return bool(score.classes)


def test_a_target_of_classes_is_met_though_an_output_that_is_0_in_float_has_noise():
    sums = NoiseInZeros({})
    trial = Trial(
        sums, sums, QuantizeOptions(), Classes(), lambda what, done, total: None
    )  # type: ignore[arg-type]
    assert not trial.meets([ROWS[1]])
    assert trial.meets([ROWS[0]])
    assert names_of(trial.fewest(in_order(ROWS))) == ["a"]


def test_the_measured_gain_is_shared_out_by_noise():
    rows = gains(ROWS[:2], Score(20.0, None), Score(28.0, None))
    assert [row.gain_db for row in rows] == pytest.approx([5.0, 3.0])
    assert [
        row.gain_db
        for row in gains(ROWS[:1], Score(20.0, None), Score(math.inf, None))
    ] == [0.0]


def test_a_target_has_room_beyond_what_is_counted():
    assert TuningTarget("snr", 30).met(Score(30 + SNR_ROOM_DB, None))
    assert not TuningTarget("snr", 30).met(Score(30 + SNR_ROOM_DB - 0.01, None))


class Recorder:
    """A judge whose outputs are the programs themselves, and whose distance is their difference in constants' bytes."""

    def start(self, program, count):
        del count
        self.program = program
        return self

    def outputs(self):
        return [self.program]

    def distance(self, left, right) -> float:
        sizes = [
            sum(array.nbytes for array in item.program.constants)
            for item in (left[0], right[0])
        ]
        return float(abs(sizes[0] - sizes[1]))


def test_a_raised_weight_costs_as_many_products_again():
    model = FloatModel(x=(1, 3, 8, 8))
    first = model.add(
        "Relu",
        model.conv(
            "x", RNG.normal(size=(4, 3, 3, 3)), np.zeros(4), name="first"
        ),
    )
    model.conv(first, RNG.normal(size=(5, 4, 1, 1)), np.zeros(5), name="second")
    graph, table = calibrated(model.proto("second"), model.inputs, 3)
    rows = measure(
        Programs(graph, lambda options: table),
        Recorder(),  # type: ignore[arg-type]
        QuantizeOptions(),
        [
            Candidate(True, ("first",), 8, 15),
            Candidate(True, ("second",), 8, 15),
        ],
        lambda what, done, total: None,
    )
    products = {
        row.candidate.names[0]: row.work.multiply_accumulates for row in rows
    }
    assert products == {"first": 6 * 6 * 4 * 3 * 9, "second": 6 * 6 * 5 * 4}


class Deaf(Recorder):
    """A judge to whom no single candidate makes a difference, though all of them together meet the target."""

    samples = (None,)

    def score(self, proven) -> Score:
        products = sum(
            item.name == "dense" for item in proven.program.instructions
        )
        return Score(40.0 if products > 1 else 20.0, None)

    def distance(self, left, right) -> float:
        return 0.0


def test_where_nothing_shows_on_the_few_samples_everything_is_raised_rather_than_searched_for_ever():
    model = FloatModel(x=(1, 12))
    model.gemm("x", RNG.normal(size=(6, 12)), np.zeros(6))
    graph, table = calibrated(model.proto("v0"), model.inputs, 3)
    outcome = tune(
        graph,
        Programs(graph, lambda options: table),
        Deaf(),  # type: ignore[arg-type]
        QuantizeOptions(),
        TuningTarget("snr", 30),
        lambda what, done, total: None,
    )
    assert outcome.upgrades == ()
    assert outcome.options.layers == {
        "x": LayerBits(None, 16),
        "v0": LayerBits(11, None),
    }
