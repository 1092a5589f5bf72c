import numpy as np
import pytest

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.refine import channel_statistics
from mrt.refine.channel_statistics import BINS_PER_OCTAVE, ChannelStatistics


def seen(*samples: np.ndarray) -> ChannelStatistics:
    item = ChannelStatistics.empty(samples[0].shape[1])
    for sample in samples:
        item.add(ObservedTensor(sample, sample))
    return item


def test_ranges_means_and_variances_are_those_of_all_samples():
    samples = (
        np.random.default_rng(4).normal(size=(4, 1, 3, 5, 4)).astype(np.float32)
    )
    samples[:, :, 0] = np.maximum(samples[:, :, 0], 0)
    found = seen(*samples)
    every = samples[:, 0].transpose(1, 0, 2, 3).reshape(3, -1)
    assert np.allclose(found.maximum, every.max(axis=1)) and np.allclose(
        found.minimum, every.min(axis=1)
    )
    assert np.allclose(found.mean, every.mean(axis=1)) and np.allclose(
        found.variance, every.var(axis=1)
    )
    assert found.counts.sum(axis=(1, 2)).tolist() == [80, 80, 80]


def test_the_range_is_that_of_all_numbers_and_the_rest_of_few():
    values = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
    found = ChannelStatistics.empty(2)
    found.add(ObservedTensor(values, values[:, :, 1::2]))
    assert (found.minimum.tolist(), found.maximum.tolist()) == (
        [0, 12],
        [11, 23],
    )
    assert (found.mean.tolist(), found.elements) == (
        [7, 19],
        6,
    )  # of 3, 4, 5, 9, 10, 11
    assert found.counts.sum(axis=(1, 2)).tolist() == [6, 6]


def test_no_order_of_samples_leaves_a_trace_in_the_counts():
    samples = [
        np.float32([[[size, size / 3, size * 1e-5, 0]]])
        for size in (1e-20, 2.0, 7e-3, 900.0)
    ]
    one, two = seen(*samples), seen(*reversed(samples))
    assert one.last_bin == two.last_bin and np.array_equal(
        one.counts, two.counts
    )
    assert one.counts[0, 0, -1] == 1 and one.counts.sum() == 16


def test_halves_together_are_what_one_would_have_seen():
    rng = np.random.default_rng(7)
    samples = [
        rng.normal(size=(1, 3, 6)).astype(np.float32) * size
        for size in (1, 300, 1e-3, 5)
    ]
    one = ChannelStatistics.merged(seen(*samples[::2]), seen(*samples[1::2]))
    two = seen(*samples)
    for name in (
        "minimum",
        "maximum",
        "counts",
        "last_bin",
        "samples",
        "elements",
    ):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert np.allclose(one.mean, two.mean) and np.allclose(
        one.variance, two.variance
    )


def test_a_magnitude_is_counted_in_the_bin_with_the_middle_next_to_it():
    item = seen(np.float32([[[0.0, 1.02, -1.05, 1.09, 7.9]]]))
    midpoints = item.magnitudes_from(np.zeros(1)).midpoints
    for number, sign in ((1.02, 0), (1.05, 1), (1.09, 0), (7.9, 0)):
        assert item.counts[0, sign, np.abs(midpoints - number).argmin()] >= 1
    assert item.counts[0, 0, 0] == 1  # zero is among the smallest
    assert np.allclose(
        midpoints[1 + BINS_PER_OCTAVE :] / midpoints[1:-BINS_PER_OCTAVE], 2
    )


def test_magnitudes_about_0_are_of_both_signs():
    item = seen(np.float32([[[1.0, -1.0, 1.0, -8.0]]]))
    found = item.magnitudes_from(np.zeros(1))
    assert found.largest.tolist() == [8]
    assert item.counts.sum(axis=2).tolist() == [[2, 2]]
    assert found.counts[0, np.abs(found.midpoints - 1.03).argmin()] == 3


def test_magnitudes_about_a_centre_are_distances_from_it():
    """Distances 0 (5), 1 (4 and 6), 9 (-4) and 5 (10) of the first channel; of the second all are 1 or 3."""
    item = seen(np.float32([[[5, 4, 6, -4, 10], [-2, -4, -4, -2, 0]]]))
    found = item.magnitudes_from(np.array([5.0, -3.0]))
    assert found.largest.tolist() == [9, 3]
    assert found.counts.sum(axis=1).tolist() == [5, 5]
    widths = 2.0 ** (1 / BINS_PER_OCTAVE + 0.01)

    def near(channel: int, distance: float, error: float) -> int:
        return int(
            found.counts[
                channel, np.abs(found.midpoints - distance) <= error * widths
            ].sum()
        )

    # a middle is within 1/32 of the number that was counted there, or so
    assert (
        near(0, 0.0, 5 / 16) == 1
        and near(0, 1.0, 6 / 16) == 2
        and near(0, 9.0, 0.6) == 1
        and near(0, 5.0, 0.6) == 1
    )
    assert near(1, 1.0, 4 / 16) == 4 and near(1, 3.0, 0.3) == 1


def test_counts_grow_wider_before_they_can_overflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each channel sees 3 numbers a sample; 10 might be too many for int32."""
    monkeypatch.setattr(channel_statistics, "MOST_IN_INT32", 10)
    item, dtypes = ChannelStatistics.empty(2), []
    for _ in range(5):
        item.add(ObservedTensor(*[np.float32([[[1, 1, 1], [2, 2, -2]]])] * 2))
        dtypes.append(item.counts.dtype)
    assert dtypes == [np.int32] * 3 + [np.int64] * 2
    assert item.counts[0, 0, -1 - BINS_PER_OCTAVE] == 15
    assert item.counts[1, :, -1].tolist() == [10, 5]
    assert (
        ChannelStatistics.merged(
            seen(np.float32([[[4], [4]]])), item
        ).counts.dtype
        == np.int64
    )


def test_the_smallest_magnitudes_have_bins_of_their_own():
    values = 2.0 ** -np.arange(20, 24, dtype=np.float32).reshape(1, 1, 4)
    found = seen(values)
    assert found.counts[0, 0, -1] == 1
    assert np.flatnonzero(found.counts[0, 0]).size == 4
