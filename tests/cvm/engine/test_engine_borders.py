"""Convolutions whose windows reach outside x, where products with zeros may be skipped. Engine == reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cvm.runtime import native
from tests.support.engine_cases import Case

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

# kernel, stride, dilation, pad: sides of one place, of several, uneven, and wider than x
WINDOWS = [
    ((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
    ((5, 3), (1, 1), (1, 1), (0, 4, 2, 0)),
    ((3, 3), (2, 1), (1, 1), (1, 2, 0, 1)),
    ((1, 7), (1, 1), (1, 1), (0, 0, 6, 6)),
    ((3, 3), (1, 1), (3, 3), (3, 3, 3, 3)),
]
OUTER_ZERO = {"i8": -128, "i16": 0}  # stands for places outside as a 0


def places(size: int, kernel: int, dilation: int, pads: int) -> int:
    return size + pads - (kernel - 1) * dilation


def height_of(kernel: int, stride: int, dilation: int, pads: int) -> int:
    """Return the height of which the result has four lines."""
    return (kernel - 1) * dilation + 1 - pads + stride * 3


def convolution(
    case: Case,
    dtype: str,
    width: int,
    channels: int,
    window: tuple[tuple[int, ...], ...],
    zero_point: int,
) -> int:
    kernel, stride, dilation, pad = window
    rng = np.random.default_rng(width)
    case.draft.most_elements = 2**14
    height = height_of(kernel[0], stride[0], dilation[0], sum(pad[:2]))
    low, high = (-128, 128) if dtype == "i8" else (-(2**12), 2**12)
    x = case.input(rng.integers(low, high, (2, height, width, channels)), dtype)
    weights = rng.integers(-127, 128, (36, *kernel, channels))
    bias = rng.integers(-999, 999, 36)
    return case.conv2d(x, weights, bias, (stride, dilation, pad), zero_point)


@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("channels", [3, 8])
def test_lines_of_every_width(
    dtype: str,
    window: tuple[tuple[int, ...], ...],
    channels: int,
) -> None:
    tried = 0
    (kernel, _, dilation, pad) = window
    for width, behind in itertools.product(
        [*range(1, 20), 31, 32, 33], ["i8", "i32"]
    ):
        if places(width, kernel[1], dilation[1], sum(pad[2:])) < 1:
            continue
        case = Case()
        sums = convolution(
            case, dtype, width, channels, window, OUTER_ZERO[dtype]
        )
        case.rescale(sums, [2**30 + 7], [40], behind)
        case.assert_equal_everywhere()
        tried += 1
    assert tried >= 30


@pytest.mark.parametrize("zero_point", [-127, 0, 127])
def test_places_outside_that_are_no_zeros(zero_point: int) -> None:
    for width in (1, 7, 14):
        case = Case()
        sums = convolution(case, "i8", width, 8, WINDOWS[0], zero_point)
        case.rescale(sums, [2**30], [40], "i8")
        case.assert_equal_everywhere()
