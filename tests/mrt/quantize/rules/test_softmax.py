"""Softmax and its logarithm over many entries, against float64: those that all but vanish add up."""

import numpy as np
import pytest

from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel, convert, run_real

OPTIONS = QuantizeOptions(8, 16)


def rows(entries: int, depth: float) -> np.ndarray:
    """One logit of 0, and all others `depth` below it, more or less."""
    logits = -depth + np.random.default_rng(3).uniform(-0.5, 0.5, (1, entries))
    logits[0, entries // 3] = 0
    return logits.astype(np.float32)


def computed(operator: str, logits: np.ndarray) -> np.ndarray:
    """In integers, of these logits and what is added to all of them."""
    model = FloatModel(x=(1, 1))
    program = convert(
        model,
        model.add(operator, model.add("Add", "x", logits), axis=-1, name="y"),
        options=OPTIONS,
    )
    return run_real(program, {"x": np.full((1, 1), 0.5, np.float32)})["y"]


def answers(operator: str, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, and exactly."""
    exact = np.exp(logits.astype(np.float64))
    exact /= exact.sum()
    if operator == "LogSoftmax":
        exact = np.log(exact)
    return computed(operator, logits), exact


@pytest.mark.parametrize(
    ("entries", "depth"),
    [(1000, 7), (3000, 10), (3000, 12), (20_000, 12), (65_000, 11)],
)
def test_the_sum_of_many_small_exponentials(entries, depth):
    logits = rows(entries, depth)
    for operator in ("Softmax", "LogSoftmax"):
        found, exact = answers(operator, logits)
        top = entries // 3
        assert exact[0, top] < (
            0.99 if operator == "Softmax" else -0.01
        )  # the others count
        assert found[0, top] == pytest.approx(exact[0, top], abs=0.004), (
            operator
        )


def test_equal_logits_fill_the_sum_to_its_end():
    found, exact = answers("LogSoftmax", np.zeros((1, 65_538), np.float32))
    assert (
        np.abs(found - exact).max() < 0.009
    )  # 2^-7: the room that the proof of the sum needs


def test_what_has_no_share_gets_none():
    found, _ = answers("Softmax", rows(100, 14))
    assert np.count_nonzero(found) == 1


@pytest.mark.parametrize(
    ("logits", "integers"),
    [
        ([0, 0], [16384, 16384]),  # 32767^2 / 65534 = 16383.5, half up
        ([0, 0, 0], [10922, 10922, 10922]),  # 32767 / 3 = 10922.33
        ([0, 0, 0, 0], [8192, 8192, 8192, 8192]),  # 32767 / 4 = 8191.75
        ([0, -30, 0], [16384, 0, 16384]),  # 32767 * e^-30 rounds to 0
    ],
)
def test_probabilities_are_rounded_half_up_to_steps_of_one_32767th(
    logits, integers
):
    """exp(0) is 32767, so that equal logits have the probability 32767^2 / sum."""
    reals, _ = answers("Softmax", np.array([logits], np.float32))
    assert np.rint(reals * 32767).astype(int).tolist() == [integers]
    assert reals.ravel().tolist() == [
        number * (1.0 / 32767) for number in integers
    ]


def test_every_softmax_reads_the_same_points():
    """Two rows of other ranges, one after the other: one table of 513 entries."""
    model = FloatModel(x=(1, 8))
    first = model.add("Softmax", "x", axis=-1)
    wider = model.add("Mul", first, np.float32(23))
    program = convert(model, model.add("Softmax", wider, axis=-1, name="y"))
    names = [item.name for item in program.instructions]
    assert names.count("interpolate") == 2
    points = [item for item in program.constants if item.shape == (513,)]
    assert len(points) == 1
    # exp(-0.00017 * 128) * 32767 = 32061.7; the last but one is exp(0)
    assert points[0][-3:].tolist() == [32062, 32767, 32767]


@pytest.mark.parametrize("size", [1e8, 1e12, 1e15, 1e17, 1e19])
def test_logits_far_apart_leave_the_greatest(size):
    """Their scale equals a multiple of the step by chance, since floats are far apart there."""
    logits = np.float32([[0, 1, -1, 0.5]]) * np.float32(size)
    found = computed("Softmax", logits)
    assert found.round(3).tolist() == [[0, 1, 0, 0]]
