"""The order of channels that the engine finds for kernels that add products of two neighbours in 16 bits."""

import numpy as np
import pytest

from cvm.plan.channel_order import PANEL
from cvm.runtime import native
from tests.support.engine_cases import Case

WINDOW = ((1, 1), (1, 1), (0, 0, 0, 0))  # stride, dilation, pad
RNG = np.random.default_rng(1)
pytestmark = pytest.mark.skipif(
    not native.available(), reason="the engine was not built"
)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def excess(weights: np.ndarray) -> int:
    """How many steps of four channels of a panel have an excess in either pair."""
    pairs = weights.astype(int).reshape(
        -1, 2, 2, weights.shape[1] // PANEL, PANEL
    )
    over = (abs(pairs.sum(2)) > 128).any((1, 3))
    return int(over.sum())


def paired(weights: np.ndarray) -> np.ndarray:
    return np.asarray(native._module().paired_channels(weights))


@pytest.mark.parametrize("channels", [1, 2, 7, 64])
def test_an_order_has_each_channel_once(channels):
    order = paired(integers(channels, 2 * PANEL))
    assert sorted(order) == list(range(channels))


def test_great_weights_of_one_output_become_no_neighbours():
    weights = integers(64, PANEL) // 32
    for channel in range(64):
        weights[channel, channel // 2 % PANEL] = 127
    assert excess(weights) == 16
    assert excess(weights[paired(weights)]) == 0


def test_pairs_with_an_excess_in_the_same_panels_share_a_step():
    """Whatever its partner, each of the first channels has an excess in one panel, its third or its fourth."""
    weights = np.full((16, 4 * PANEL), 2, np.int8)
    for channel in range(8):
        weights[channel, (2 + channel % 2) * PANEL :][:PANEL] = 127
    order = paired(weights)
    assert excess(weights[order]) == 4


@pytest.mark.parametrize(
    ("shape", "reason"),
    [((8, PANEL + 1), "whole panels"), ((0, PANEL), "no channels")],
)
def test_weights_that_make_no_panels_are_refused(shape, reason):
    with pytest.raises(ValueError, match=reason):
        paired(integers(*shape))


def to_bytes(case: Case, sums: int) -> int:
    channels = case.draft.types[sums].shape[-1]
    return case.rescale(sums, [1 << 30] * channels, [39] * channels, "i8")


@pytest.mark.skipif("avx2" not in native.isas(), reason="no AVX2 here")
def test_avx2_multiplies_bytes_where_neighbours_would_exceed():
    weights = integers(32, 1, 1, 64) // 32
    for channel in range(64):
        weights[channel // 2 % PANEL :: PANEL, 0, 0, channel] = 127
    case = Case()
    image = case.input(integers(1, 6, 6, 8), "i8")
    first = case.conv2d(image, integers(64, 1, 1, 8), integers(64), WINDOW, 0)
    no_bias = np.zeros(32, np.int32)
    to_bytes(
        case, case.conv2d(to_bytes(case, first), weights, no_bias, WINDOW, 0)
    )
    made = native.Engine(case.proven(), isa="avx2")
    assert made.core.products()[-1] == "bytes"
    case.assert_equal_everywhere()
