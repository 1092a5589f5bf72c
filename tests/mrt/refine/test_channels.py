import numpy as np

from mrt.refine.channels import BINS_PER_OCTAVE, Channels


def seen(*samples: np.ndarray) -> Channels:
    item = Channels.of(samples[0].shape[1])
    for sample in samples:
        item.add(sample, sample)
    return item


def test_ranges_means_and_variances_are_those_of_all_samples():
    samples = np.random.default_rng(4).normal(size=(4, 1, 3, 5, 4)).astype(np.float32)
    samples[:, :, 0] = np.maximum(samples[:, :, 0], 0)
    found, every = seen(*samples), samples[:, 0].transpose(1, 0, 2, 3).reshape(3, -1)
    assert np.allclose(found.high, np.maximum(every.max(axis=1), 0))
    assert np.allclose(found.low, np.minimum(every.min(axis=1), 0))
    assert np.allclose(found.mean, every.mean(axis=1)) and np.allclose(found.variance, every.var(axis=1))
    assert found.counts.sum(axis=1).tolist() == [80, 80, 80]


def test_the_range_is_that_of_all_numbers_and_the_rest_of_few():
    values = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
    found = Channels.of(2)
    found.add(values, values[:, :, 1::2])
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0], [11, 23])
    assert (found.mean.tolist(), found.elements) == ([7, 19], 6)  # of 3, 4, 5, 9, 10, 11
    assert found.counts.sum(axis=1).tolist() == [6, 6]


def test_no_order_of_samples_leaves_a_trace_in_the_counts():
    samples = [np.float32([[[size, size / 3, size * 1e-5, 0]]]) for size in (1e-20, 2.0, 7e-3, 900.0)]
    one, two = seen(*samples), seen(*reversed(samples))
    assert one.highest == two.highest and np.array_equal(one.counts, two.counts)
    assert one.counts[0, -1] == 1 and one.counts.sum() == 16


def test_halves_together_are_what_one_would_have_seen():
    rng = np.random.default_rng(7)
    samples = [rng.normal(size=(1, 3, 6)).astype(np.float32) * size for size in (1, 300, 1e-3, 5)]
    one, two = Channels.together(seen(*samples[::2]), seen(*samples[1::2])), seen(*samples)
    for name in ("low", "high", "counts", "highest", "samples", "elements"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert np.allclose(one.mean, two.mean) and np.allclose(one.variance, two.variance)


def test_a_magnitude_is_counted_between_the_edges_of_its_bin():
    values = np.float32([[[0.0, 1.0, -1.0624, 1.0626, 7.99]]])
    item = seen(values)
    edges = item.edges()
    for number in (1.0, 1.0624, 1.0626, 7.99):
        place = int(np.searchsorted(edges, number, side="right"))
        assert item.counts[0, place] >= 1
    assert item.counts[0, 0] == 1  # zero is among the smallest
    assert np.allclose(edges[BINS_PER_OCTAVE:] / edges[:-BINS_PER_OCTAVE], 2)
    assert np.all(item.centres() < edges)
