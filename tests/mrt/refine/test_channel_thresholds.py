import numpy as np
import pytest

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.refine.channel_thresholds import (
    LEAST_THRESHOLD,
    _best_thresholds,
    channel_centres,
    clipping_thresholds,
)

EVERY = (0.0, np.inf)


def halves(samples: np.ndarray) -> tuple[ChannelStatistics, ChannelStatistics]:
    """[samples, C, numbers] as seen, one half and the other."""
    both = (
        ChannelStatistics.empty(samples.shape[1]),
        ChannelStatistics.empty(samples.shape[1]),
    )
    for index, sample in enumerate(samples.astype(np.float32)):
        both[index % 2].add(
            ObservedTensor(sample[np.newaxis], sample[np.newaxis])
        )
    return both


def thresholds(
    samples: np.ndarray,
    importance: object = None,
    bounds: tuple[float, float] = EVERY,
) -> np.ndarray:
    weights = (
        np.ones(samples.shape[1])
        if importance is None
        else np.asarray(importance, float)
    )
    both = halves(samples)
    return clipping_thresholds(
        ChannelStatistics.merged(*both),
        both,
        centres=np.zeros(samples.shape[1]),
        steps=255,
        importance=weights,
        bounds=bounds,
    )


def loss(values: np.ndarray, tops: np.ndarray) -> float:
    """Squared error of [samples, C, numbers] rounded to 255 steps, by hand."""
    steps = (tops / 255)[None, :, None]
    return float(
        (
            (np.clip(np.floor(values / steps + 0.5), 0, 255) * steps - values)
            ** 2
        ).sum()
    )


def sparse(seed: int, samples: int) -> np.ndarray:
    """Sixty channels that are seldom not 0, and then of random size."""
    rng = np.random.default_rng(seed)
    size = np.exp(
        rng.normal(size=(samples, 60, 1)) * 1.5
    )  # of the whole sample
    return (
        size
        * rng.exponential(size=(samples, 60, 40))
        * (rng.random((samples, 60, 40)) < 0.2)
    )


def test_where_little_was_seen_channels_are_clipped_beyond_what_was_seen_and_lose_less_on_other_samples():
    seen, other = sparse(1, 12), sparse(2, 400)
    largest = seen.max(axis=(0, 2))
    found = thresholds(seen)
    assert np.median(found / largest) > 1.3
    assert loss(other, found) < 0.7 * loss(other, largest)


def test_channels_that_answer_to_few_samples_are_not_clipped_at_what_was_seen():
    """Each sample raises four of sixty channels to the same height, and the others hardly."""

    def answering(seed: int, samples: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        heights = np.full((samples, 60), 0.02)
        for row in heights:
            row[rng.choice(60, 4, replace=False)] = 1.0
        return heights[..., None] * rng.uniform(0, 1, size=(samples, 60, 40))

    seen, other = answering(1, 12), answering(2, 200)
    found = thresholds(seen)
    assert found.min() > 0.4 > np.percentile(seen.max(axis=(0, 2)), 20)
    by_factors = seen.max(axis=(0, 2)) * 3.0
    assert loss(other, found) < 0.1 * loss(other, by_factors)


def test_where_much_was_seen_channels_are_clipped_where_the_least_is_lost():
    seen = np.random.default_rng(3).normal(size=(40, 3, 5000)) ** 2 * [
        [[1], [2], [0.1]]
    ]
    found, tried = thresholds(seen), np.geomspace(1, 1 / 12, 64)
    least = [
        min(loss(one, one.max() * share * np.ones(1)) for share in tried)
        for one in np.split(seen, 3, axis=1)
    ]
    assert np.all(found < seen.max(axis=(0, 2)))
    assert loss(seen, found) < 1.02 * sum(least)


def test_what_matters_to_nobody_does_not_decide_how_far_out():
    steady = np.random.default_rng(4).uniform(0, 1, size=(12, 60, 400))
    seen = np.concatenate(
        [np.pad(sparse(1, 12), ((0, 0), (0, 0), (0, 360))), steady], axis=1
    )
    wild, calm = np.repeat([1.0, 0.0], 60), np.repeat([0.0, 1.0], 60)
    assert np.all(thresholds(seen, calm)[60:] < thresholds(seen, wild)[60:])
    assert np.allclose(thresholds(seen, calm)[60:], 1, rtol=0.15)


def test_of_one_sample_alone_channels_are_clipped_where_it_does():
    seen = np.random.default_rng(5).uniform(0, 1, size=(1, 2, 400))
    assert np.allclose(thresholds(seen), seen.max(axis=(0, 2)), rtol=0.05)


def test_a_channel_without_numbers_is_clipped_at_the_share_of_the_largest_that_the_samples_vouch_for():
    seen = np.random.default_rng(6).uniform(0, 1, size=(16, 2, 400))
    seen[:, 1] = 0
    assert np.allclose(
        thresholds(seen)[1], 0.5 * seen.max(), rtol=1e-6
    )  # 8 of 16 samples


def test_thresholds_keep_to_their_bounds():
    assert np.all(
        (found := thresholds(sparse(1, 12), bounds=(2.0, 3.0))) >= 2
    ) and np.all(found <= 3)


def test_a_channel_is_counted_from_the_middle_of_its_range_and_clipped_there():
    seen = np.random.default_rng(8).uniform(
        -1, 1, size=(16, 3, 400)
    ) + np.array([[30], [-7], [0]])
    both = halves(seen)
    item = ChannelStatistics.merged(*both)
    centres = channel_centres(item, 127)
    assert np.allclose(centres, [30, -7, 0], atol=0.05)
    found = clipping_thresholds(
        item,
        both,
        centres=centres,
        steps=127,
        importance=np.ones(3),
        bounds=EVERY,
    )
    assert np.allclose(found, 1, rtol=0.15)


def test_a_channel_with_a_long_tail_is_counted_from_nearer_to_its_mean():
    seen = np.random.default_rng(9).lognormal(0, 1, size=(40, 1, 2000)) - 3
    (centre,) = channel_centres(ChannelStatistics.merged(*halves(seen)), 127)
    assert seen.mean() < centre < (seen.min() + seen.max()) / 2 - 0.5


def test_thresholds_are_tried_at_equal_ratios():
    """47 equal ratios lead from the largest number to the least threshold; one of these is chosen."""
    sizes = np.geomspace(1e-3, 1.0, 4000)
    samples = np.concatenate([sizes[:-40], np.full(40, 0.2)])[None, None]
    both = halves(samples)
    whole = ChannelStatistics.merged(*both)
    magnitudes = whole.magnitudes_from(np.zeros(1))
    (chosen,), _ = _best_thresholds(magnitudes, 7)
    (largest,) = magnitudes.largest
    step = 47 * np.log(chosen / largest) / np.log(LEAST_THRESHOLD)
    assert 0 < round(step) < 47
    assert step == pytest.approx(round(step), abs=1e-6)


def least_loss(values: np.ndarray, steps: int) -> float:
    """Return the least squared error of numbers rounded to steps on both sides of 0, by hand."""
    tops = np.abs(values).max() * np.geomspace(1, LEAST_THRESHOLD, 48)
    integers = [np.rint(values * steps / top) for top in tops]
    kept = [
        np.clip(some, -steps, steps) * top / steps
        for some, top in zip(integers, tops, strict=True)
    ]
    return min(float(((some - values) ** 2).sum()) for some in kept)


@pytest.mark.parametrize(("steps", "share"), [(7, 0.5), (15, 0.75), (255, 1.0)])
def test_a_centre_lies_nearer_to_the_middle_the_more_steps_there_are(
    steps, share
):
    values = np.random.default_rng(0).gamma(3, size=(4, 1, 2000))
    numbers = values.astype(np.float32).astype(np.float64)
    mean, middle = numbers.mean(), (numbers.min() + numbers.max()) / 2
    shares = np.linspace(0, 1, 5)
    centres = mean + shares * (middle - mean)
    losses = [least_loss(numbers - centre, steps) for centre in centres]
    assert shares[np.argmin(losses)] == share
    statistics = ChannelStatistics.merged(*halves(values))
    found = channel_centres(statistics, steps)
    assert np.allclose(found, mean + share * (middle - mean), rtol=1e-5)
