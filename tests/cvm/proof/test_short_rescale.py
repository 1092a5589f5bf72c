"""Rescales whose products fit 32 bits, against the same arithmetic in Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program.short_rescale import fits_32_bits, short_factors


@pytest.mark.parametrize(
    ("multiplier", "shift", "factor", "left"),
    [
        (2**30, 30, 2, 1),  # a shift keeps one bit, for the half
        (2**30, 40, 1, 10),
        (3 << 29, 45, 3, 16),
        (2**31 - 1, 45, 2**31 - 1, 45),
        (4095 << 19, 20, 4095, 1),
        (4095 << 19, 2, 4095 << 18, 1),
        (0, 62, 0, 1),
    ],
)
def test_a_multiplier_loses_its_trailing_zeros(
    multiplier: int, shift: int, factor: int, left: int
) -> None:
    found = short_factors(np.array([multiplier]), np.array([shift], np.int8))
    assert [array.tolist() for array in found] == [[factor], [left]]


@pytest.mark.parametrize("factor", [1, 3, 4095, 65535])
@pytest.mark.parametrize("shift", [1, 12, 22, 23])
def test_the_ends_of_32_bits_are_found_exactly(factor: int, shift: int) -> None:
    half = 2 ** (shift - 1)
    most = (2**31 - 1 - half - 255 * 2**shift) // factor
    least = -((2**31 + half) // factor)
    for lo, hi, fits in (
        (least, most, True),
        (least - 1, most, False),
        (least, most + 1, False),
    ):
        found = fits_32_bits(*map(as_array, (lo, hi, factor, shift)))
        assert found.tolist() == [fits]


def test_more_bits_and_greater_shifts_are_not_short() -> None:
    one = as_array(0)
    assert not fits_32_bits(one, one, as_array(2**16), as_array(8))[0]
    assert not fits_32_bits(one, one, as_array(1), as_array(24))[0]


def as_array(value: int) -> np.ndarray:
    return np.array([value], np.int64)
