"""The extension gives the bits of numpy, and errors are those of a reading from number to number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mrt import compiled
from mrt.refine.clipping_errors import clipping_errors, power_sums
from mrt.refine.second_order import BLOCK, _round

pytestmark = pytest.mark.skipif(
    compiled.extension() is None, reason="the extension is not built here"
)


def by_numpy_too(
    monkeypatch: pytest.MonkeyPatch, compute: Callable[[], np.ndarray]
) -> np.ndarray:
    """What the extension computes, which must be what numpy does."""
    found = compute()
    with monkeypatch.context() as without:
        without.setattr(compiled, "extension", lambda: None)
        assert compute().tobytes() == found.tobytes()
    return found


def magnitudes(
    channels: int, bins: int, dtype: type
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(channels + bins)
    counts = rng.integers(0, 50, (channels, bins)) * rng.integers(
        0, 2, (channels, bins)
    )
    midpoints = np.cumsum(rng.uniform(0.01, 0.3, bins))
    return counts.astype(dtype) / (2 if dtype is float else 1), midpoints


def squared_error(
    counts: np.ndarray, midpoints: np.ndarray, threshold: float, steps: int
) -> float:
    """Of one channel: numbers below half a step become 0, those beyond the threshold the threshold."""
    step, total = threshold / steps, 0.0
    for count, number in zip(counts, midpoints, strict=True):
        if number < step / 2:
            total += count * number**2
        elif number <= threshold:
            total += count * step**2 / 12
        else:
            total += count * (number - threshold) ** 2
    return total


@pytest.mark.parametrize("steps", [7, 127, 255])
@pytest.mark.parametrize("dtype", [np.int64, float])
@pytest.mark.parametrize("channels, bins", [(1, 1), (3, 40), (5, 192)])
def test_clipping_errors_are_the_same_by_all(
    steps: int,
    dtype: type,
    channels: int,
    bins: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, midpoints = magnitudes(channels, bins, dtype)
    rng = np.random.default_rng(steps)
    thresholds = rng.uniform(0.0, 1.2 * midpoints[-1], (channels, 60))
    thresholds[:, 3] = 0.0
    thresholds[:, 4] = midpoints[bins // 2]  # just not clipped
    thresholds[:, 5] = 2 * steps * midpoints[0]  # just not rounded to 0
    sums = by_numpy_too(monkeypatch, lambda: power_sums(counts, midpoints))
    errors = by_numpy_too(
        monkeypatch,
        lambda: clipping_errors(sums, midpoints, thresholds.T.copy().T, steps),
    )
    for channel in range(channels):
        expected = [
            squared_error(counts[channel], midpoints, threshold, steps)
            for threshold in thresholds[channel]
        ]
        assert np.allclose(errors[channel], expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("most", [1, 7, 127])
@pytest.mark.parametrize(
    "groups, length, outputs",
    [(1, 1, 1), (1, 3 * BLOCK + 5, 17), (6, 9, 12), (5, BLOCK, 1)],
)
def test_weights_are_rounded_the_same_by_both(
    most: int,
    groups: int,
    length: int,
    outputs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(length)
    real = rng.normal(size=(groups, length, outputs)) * most
    real[:, 0, 0] = 0.5  # a tie
    factors = np.triu(rng.normal(size=(groups, length, length)), 1) + np.eye(
        length
    )
    rounded = by_numpy_too(
        monkeypatch, lambda: _round(real[:, ::-1][:, ::-1], factors, most)
    )
    assert np.abs(rounded).max() <= most
    assert (rounded == np.floor(rounded)).all()
    assert rounded[:, 0].tolist() == (
        np.clip(np.floor(real[:, 0] + 0.5), -most, most).tolist()
    )


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    extension = compiled.extension()
    assert extension is not None
    columns = np.zeros((2, 3, 4))
    factors = np.zeros((2, 3, 3))
    sums, midpoints, thresholds = (
        np.zeros((3, 2, 6)),
        np.ones(5),
        np.ones((2, 4)),
    )
    rounding = (columns, columns.copy(), columns.copy(), columns, factors)
    calls = [
        lambda: extension.power_sums(np.ones((2, 5)), np.ones(4), sums),
        lambda: extension.power_sums(np.ones((2, 5)), midpoints, sums[:2]),
        lambda: extension.clipping_errors(
            sums, np.ones(6), thresholds, 255, 1 / 12, thresholds.copy()
        ),
        lambda: extension.clipping_errors(
            sums, midpoints, thresholds, 255, 1 / 12, np.ones((2, 3))
        ),
        lambda: extension.round_each(*rounding, 0, 4, 127),
        lambda: extension.round_each(*rounding, 2, 1, 127),
        lambda: extension.round_each(columns[:1], *rounding[1:], 0, 3, 127),
        lambda: extension.round_each(
            *rounding[:4], np.zeros((2, 4, 4)), 0, 3, 127
        ),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match="arrays that do not fit each other"
        ):
            call()
