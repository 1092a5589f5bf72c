"""What a program is worth on held-back samples, against numbers counted here from its own outputs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cvm.proof.validate import validate
from mrt.errors import BadData
from mrt.quantize import QuantizeOptions, quantize
from mrt.tune import TuningTarget
from mrt.tune.evaluator import ClassScore, Evaluator, Score
from mrt.tune.target import describe
from tests.support.float_models import FloatModel, calibrated, run_real

RNG = np.random.default_rng(21)
SAMPLES = [
    {"x": RNG.normal(size=(1, 12)).astype(np.float32)} for _ in range(20)
]
LABELS = [int(label) for label in RNG.integers(0, 6, 20)]
WEIGHTS = RNG.normal(size=(6, 12))


def dense(softmax: bool = False) -> FloatModel:
    model = FloatModel(x=(1, 12))
    model.gemm("x", WEIGHTS, np.zeros(6))
    if softmax:
        model.add("Softmax", "v0", axis=-1)
    return model


def judged(model: FloatModel, output: str, options: QuantizeOptions, **words):
    graph, table = calibrated(model.proto(output), model.inputs)
    program = quantize(graph, table, options)
    with ThreadPoolExecutor(2) as pool:
        evaluator = Evaluator(graph, SAMPLES, pool, **words)
        return program, evaluator.score(validate(program))


def test_agreement_drop_and_noise_are_those_of_the_programs_outputs():
    program, score = judged(
        dense(), "v0", QuantizeOptions(2, 8), labels=LABELS, classes=True
    )
    real = [
        (sample["x"].astype(np.float64) @ WEIGHTS.T.astype(np.float32)).ravel()
        for sample in SAMPLES
    ]
    found = [run_real(program, sample)["v0"].ravel() for sample in SAMPLES]
    same = np.mean(
        [a.argmax() == b.argmax() for a, b in zip(real, found, strict=True)]
    )
    right, kept = (
        sum(
            int(item.argmax()) == label
            for item, label in zip(outputs, LABELS, strict=True)
        )
        for outputs in (real, found)
    )
    noise = sum(((a - b) ** 2).sum() for a, b in zip(real, found, strict=True))
    assert score.classes is not None
    assert score.classes.agreement == same < 1
    assert score.classes.drop == pytest.approx(100 * (right - kept) / 20)
    assert score.worst_snr_db == pytest.approx(
        10 * np.log10(sum((a**2).sum() for a in real) / noise), abs=1e-3
    )
    assert 0.02 < score.classes.expected_disagreement < 0.5
    assert score.classes.samples == 20
    assert score.classes.relative_error == pytest.approx(8**-0.5)


def test_probabilities_are_judged_too():
    _, score = judged(
        dense(softmax=True), "v1", QuantizeOptions(15, 16), classes=True
    )
    assert score.classes is not None
    assert score.classes.agreement == 1
    assert score.classes.expected_disagreement < 0.01


def test_an_output_that_is_no_vector_of_classes_cannot_be_judged_by_agreement():
    model = FloatModel(x=(2, 12))
    model.gemm("x", WEIGHTS, np.zeros(6))
    graph, _ = calibrated(model.proto("v0"), model.inputs)
    pair = [{"x": np.zeros((2, 12), np.float32)}]
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(
            BadData, match=r"\[2, 6\] is no vector of classes: use --target-snr"
        ),
    ):
        Evaluator(graph, pair, pool, classes=True)


def test_what_is_common_to_all_classes_is_no_distance():
    graph, _ = calibrated(dense().proto("v0"), {"x": (1, 12)})
    with ThreadPoolExecutor(1) as pool:
        evaluator = Evaluator(graph, SAMPLES[:1], pool, classes=True)
    left, right = (
        [{"v0": np.array([[5.0, 1, 1, 1, 1, 1]]) + shift}] for shift in (0, 3)
    )
    assert evaluator.distance(left, right) == 0
    right[0]["v0"][0, 0] += (
        6  # differences 3, .., 9: variance 5 around the mean 4, times 6 classes
    )
    assert evaluator.distance(left, right) == pytest.approx(30)


def test_padding_is_neither_noise_nor_distance():
    model = FloatModel(x=(1, 2, 3), attention_mask=(1, 2))
    model.add("Add", "x", "x")
    graph, table = calibrated(model.proto("v0"), model.inputs)
    program = quantize(graph, table, QuantizeOptions(8, 8))
    sample = {
        "x": np.array([[[0.7, 0.31, 0.2], [900.0] * 3]], np.float32),
        "attention_mask": np.array([[1, 0]], np.float32),
    }
    with ThreadPoolExecutor(1) as pool:
        evaluator = Evaluator(graph, [sample], pool)
        score = evaluator.score(validate(program))
    real = 2 * sample["x"][:, :1].astype(np.float64)
    error = real - run_real(program, sample)["v0"][:, :1]
    assert score.worst_snr_db == pytest.approx(
        10 * np.log10((real**2).sum() / (error**2).sum()), abs=1e-3
    )
    left = [{"v0": np.full((1, 2, 3), 2.0)}]
    right = [{"v0": np.array([[[2.0, 2.0, 3.0], [9.0, 9.0, 9.0]]])}]
    distance = evaluator.distance(left, right)
    assert distance == pytest.approx(1 / (real**2).sum())


def zeros() -> FloatModel:
    """A model with the interface of `dense` whose output is 0."""
    model = FloatModel(x=(1, 12))
    model.gemm("x", np.zeros((6, 12)), np.zeros(6))
    return model


@pytest.mark.parametrize("programs_model", [dense(), zeros()])
def test_an_output_that_is_0_in_float_is_exact_where_the_program_gives_0(
    programs_model,
):
    graph, _ = calibrated(zeros().proto("v0"), {"x": (1, 12)})
    integers, table = calibrated(programs_model.proto("v0"), {"x": (1, 12)})
    program = validate(quantize(integers, table, QuantizeOptions(8, 8)))
    with ThreadPoolExecutor(1) as pool:
        worth = Evaluator(graph, SAMPLES[:4], pool).score(program)
    differs = run_real(program.program, SAMPLES[0])["v0"].any()
    target = TuningTarget("snr", 1.0)
    assert worth.worst_snr_db == (-np.inf if differs else np.inf)
    assert target.met(worth) is not differs
    assert describe(worth) == (
        "noise in an output that is 0 in float" if differs else "no difference"
    )


def score(
    agreement: float,
    expected: float,
    drop: float = 0.0,
    expected_drop: float = 0.0,
) -> Score:
    classes = ClassScore(
        agreement, expected, True, drop, expected_drop, 40, 0.3
    )
    return Score(40.0, classes)


@pytest.mark.parametrize(
    ("target", "found", "met"),
    [
        (TuningTarget("agreement", 0.98), score(1.0, 0.0199), True),
        (TuningTarget("agreement", 0.98), score(1.0, 0.0201), False),
        # of 40 samples 2 or more are misses in 19 of 100 draws, 3 or more in 5
        (TuningTarget("agreement", 0.98), score(0.95, 0.001), True),
        (TuningTarget("agreement", 0.98), score(0.925, 0.001), False),
        (TuningTarget("drop", 1.0), score(0.9, 0.1, 2.5, 0.99), True),
        (TuningTarget("drop", 1.0), score(0.9, 0.1, 2.5, 1.01), False),
        (TuningTarget("drop", 1.0), score(0.9, 0.1, 5.0, 0.1), False),
    ],
)
def test_the_expectation_meets_a_target_unless_the_count_speaks_against_it(
    target, found, met
):
    assert target.met(found) is met
