import numpy as np
import onnx_ir as ir

from mrt.refine.channels import BINS_PER_OCTAVE, Channels, watch_channels
from tests.float_models import FloatModel


def test_ranges_means_and_variances_are_those_of_all_samples():
    rng = np.random.default_rng(4)
    samples = [{"x": rng.normal(size=(1, 3, 5, 4)).astype(np.float32)} for _ in range(4)]
    model = FloatModel(x=(1, 3, 5, 4))
    y = model.add("Relu", "x")
    heard: list[int] = []
    found = watch_channels(ir.from_proto(model.proto(y)), samples, {y: 5.0}, heard.append)[y]
    seen = np.maximum(np.stack([sample["x"][0] for sample in samples]), 0).transpose(1, 0, 2, 3).reshape(3, -1)
    assert heard == [1, 2, 3, 4]
    assert np.allclose(found.high, seen.max(axis=1)) and np.allclose(found.low, seen.min(axis=1))
    assert np.allclose(found.mean, seen.mean(axis=1)) and np.allclose(found.variance, seen.var(axis=1))
    assert found.counts.sum(axis=1).tolist() == [80, 80, 80]


def test_a_magnitude_is_counted_between_the_edges_of_its_bin():
    values = np.float32([[[0.0, 1.0, -1.0624, 1.0626, 7.99]]])
    item = Channels.of(1, 8.0)
    item.add(values)
    edges = item.edges()
    for number in (1.0, 1.0624, 1.0626, 7.99):
        place = int(np.searchsorted(edges, number, side="right"))
        assert item.counts[0, place] >= 1
    assert item.counts[0, 0] == 1  # zero is among the smallest
    assert np.allclose(edges[BINS_PER_OCTAVE:] / edges[:-BINS_PER_OCTAVE], 2)
    assert np.all(item.centres() < edges)
