"""Convolutions deep enough for kernels that take blocks of 16 rows and 64 bytes (AMX). Engine == reference.

A build with -DCVM_EMULATE_AMX=ON takes blocks for every depth, on any processor with AVX-512.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cvm.runtime import native
from cvm.runtime.native import Engine
from tests.support.engine_cases import Case

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

ALONE = ((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))
WINDOWS = [
    ALONE,
    ((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((3, 3), (2, 2), (1, 1), (1, 0, 0, 1)),
    ((1, 5), (1, 1), (1, 2), (0, 0, 4, 4)),
]


def convolution(
    case: Case,
    size: tuple[int, int, int],
    channels: int,
    outputs: int,
    window: tuple[tuple[int, ...], ...],
    zero_point: int,
) -> int:
    """Sums whose products have all signs; `size` is batch, height, width."""
    kernel, stride, dilation, pad = window
    rng = np.random.default_rng(channels)
    case.draft.most_elements = 2**18
    x = case.input(rng.integers(-128, 128, (*size, channels)), "i8")
    weights = rng.integers(-127, 128, (outputs, *kernel, channels))
    bias = rng.integers(-999, 999, outputs)
    return case.conv2d(x, weights, bias, (stride, dilation, pad), zero_point)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("channels", [32, 63, 64, 65, 192, 256])
def test_depths_of_every_kind(
    window: tuple[tuple[int, ...], ...], channels: int
) -> None:
    """Runs that fill blocks, runs that do not, and lines of a window as one run."""
    for zero_point, outputs in itertools.product((-128, 9), (3, 16, 33)):
        case = Case()
        sums = convolution(
            case, (1, 8, 10), channels, outputs, window, zero_point
        )
        case.rescale(sums, [2**30 + 7], [42], "i8")
        case.assert_equal_everywhere()


@pytest.mark.parametrize("width", [15, 16, 17, 31, 32, 33, 48, 49])
def test_rows_of_every_number(width: int) -> None:
    """Whole blocks and what is left of them; more tiles than stay prepared."""
    for height, window in itertools.product((1, 12), WINDOWS[:2]):
        case = Case()
        sums = convolution(case, (2, height, width), 192, 40, window, -128)
        case.rescale(sums, [2**30], [42], "i8")
        case.assert_equal_everywhere()


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32"])
@pytest.mark.parametrize("multiplier", [2**30, 2**31 - 1])
def test_results_of_every_dtype(dtype: str, multiplier: int) -> None:
    for shift, outputs in itertools.product((24, 33, 44), (5, 16, 64)):
        case = Case()
        sums = convolution(case, (1, 5, 5), 192, outputs, ALONE, 3)
        case.rescale(sums, [multiplier], [shift], dtype)
        case.assert_equal_everywhere()


def test_greatest_sums_do_not_saturate() -> None:
    """65,000 products of 255 and 127 reach 2^31 where zero points are not taken off yet."""
    case = Case()
    channels = 65_000
    x = case.input(np.full((1, 4, 4, channels), 127), "i8")
    weights = np.full((1, 1, 1, channels), 127, np.int8)
    sums = case.conv2d(x, weights, np.zeros(1, np.int32), ALONE[1:], 0)
    case.rescale(sums, [2**30], [40], "i32")
    case.assert_equal_everywhere()


def word_sums(
    case: Case,
    size: tuple[int, int, int],
    layer: tuple[int, int],
    window: tuple[tuple[int, ...], ...],
    low_bits: int = 0,
) -> int:
    """Sums of 16-bit integers by bytes or, with `low_bits`, by weights in two halves; `layer` is channels, outputs.

    The integers have all signs and both ends, among them the least, whose high byte is the least byte.
    """
    kernel, stride, dilation, pad = window
    channels, outputs = layer
    rng = np.random.default_rng(channels)
    case.draft.most_elements = 2**18
    depth = channels * kernel[0] * kernel[1]
    most = min(2**15, 2**31 // (2 ** (9 + low_bits) * depth))
    x = rng.integers(-most, most, (*size, channels))
    x.flat[:2] = -most, most - 1
    value = case.input(x, "i16")
    halves = []
    for _ in range(2 if low_bits else 1):
        weights = rng.integers(-128, 128, (outputs, *kernel, channels))
        bias = rng.integers(-999, 999, outputs)
        halves.append(
            case.conv2d(value, weights, bias, (stride, dilation, pad), 0)
        )
    if not low_bits:
        return halves[0]
    amount = case.draft.array(np.full((1, 1, 1, 1), low_bits, np.int32), "i32")
    high = case.draft.apply("shift_left", halves[1], amount)
    return case.draft.apply("add", high, halves[0])


@pytest.mark.parametrize("low_bits", [0, 1, 7])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("channels", [21, 64, 65, 127, 192])
def test_words_are_bytes_in_two_planes(
    window: tuple[tuple[int, ...], ...], channels: int, low_bits: int
) -> None:
    """Lines of a window as one run, runs that fill blocks and runs that do not; what lies behind x is not read."""
    for outputs, dtype in itertools.product((3, 16, 33), ("i8", "i16")):
        case = Case()
        layer = (channels, outputs)
        sums = word_sums(case, (1, 8, 10), layer, window, low_bits)
        case.rescale(sums, [2**30 + 7], [46], dtype)
        case.assert_equal_everywhere()


@pytest.mark.parametrize("low_bits", [0, 4])
@pytest.mark.parametrize("width", [15, 16, 17, 31, 32, 33, 49])
def test_words_of_rows_of_every_number(width: int, low_bits: int) -> None:
    for height, window in itertools.product((1, 6), WINDOWS[:2]):
        case = Case()
        size = (2, height, width)
        sums = word_sums(case, size, (64, 40), window, low_bits)
        case.rescale(sums, [2**30], [46], "i16")
        case.assert_equal_everywhere()


@pytest.mark.parametrize("low_bits", [0, 7])
def test_sums_of_words_that_no_epilogue_takes(low_bits: int) -> None:
    case = Case()
    word_sums(case, (1, 5, 5), (64, 24), ALONE, low_bits)
    case.assert_equal_everywhere()


@pytest.mark.skipif("amx" not in native.isas(), reason="needs AMX")
@pytest.mark.parametrize("low_bits", [0, 4])
def test_words_are_taken_in_blocks(low_bits: int) -> None:
    case = Case()
    sums = word_sums(case, (1, 4, 4), (64, 8), ALONE, low_bits)
    case.rescale(sums, [2**30], [46], "i16")
    engine = Engine(case.proven(), isa="amx")
    assert "blocks" in engine.core.products()


@pytest.mark.skipif("amx" not in native.isas(), reason="needs AMX")
@pytest.mark.parametrize(
    ("size", "kind"), [((1, 4, 4), "blocks"), ((1, 3, 5), "bytes")]
)
def test_blocks_are_taken_from_16_rows_on(
    size: tuple[int, int, int], kind: str
) -> None:
    case = Case()
    sums = convolution(case, size, 192, 8, ALONE, 0)
    case.rescale(sums, [2**30], [40], "i8")
    engine = Engine(case.proven(), isa="amx")
    assert kind in engine.core.products()
