"""Short multipliers: near enough to the ratio, in canonical form, and none where 8 bits would show it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cvm.program.bounds import Bounds
from mrt.exact.short_multipliers import (
    half_multipliers,
    narrow_factors,
    short_multipliers,
)


def of(ratio: float, lo: int, hi: int) -> tuple[int, int] | None:
    """The multiplier and shift of one channel."""
    x = Bounds(np.array([lo], np.int64), np.array([hi], np.int64))
    found = short_multipliers(np.array([ratio]), x)
    return found and (int(found[0][0]), int(found[1][0]))


@pytest.mark.parametrize(
    ("ratio", "lo", "hi", "expected"),
    [
        (0.5, -1000, 1000, (2**30, 31)),
        (1.0, -128, 127, (2**30, 30)),
        # 1/3 in 15 bits, since 16 * 30000 * 65535 would leave 32 bits: 21845 / 2^16
        (1 / 3, -60000, 60000, (21845 << 16, 16 + 16)),
        # 3 / 2^10 is exact
        (3 / 1024, -(2**20), 2**20, (3 << 29, 10 + 29)),
        (1e-9, -100, 100, (0, 62)),
    ],
)
def test_factors_are_the_finest_that_fit(
    ratio: float, lo: int, hi: int, expected: tuple[int, int]
) -> None:
    assert of(ratio, lo, hi) == expected


def test_no_result_is_a_quarter_of_a_step_off() -> None:
    random = np.random.default_rng(3)
    some, none = 0, 0
    for _ in range(2000):
        reach = int(2 ** random.uniform(8, 24))
        ratio = float(2 ** random.uniform(-20, 0))
        found = of(ratio, -reach, reach)
        if found is None:
            none += 1
            continue
        some += 1
        multiplier, shift = found
        x = min(reach, int(255 / ratio))
        error = x * (Fraction(multiplier, 2**shift) - Fraction(ratio))
        assert abs(error) < Fraction(1, 4)
        assert multiplier >= 2**30 or (multiplier, shift) == (0, 62)
    assert some > 500
    assert none > 100


def test_one_ratio_serves_all_channels() -> None:
    """By the widest of them: alone, the first would have more bits."""
    x = Bounds(np.array([-10, -(2**17)]), np.array([10, 2**17]))
    multiplier, shift = short_multipliers(np.array([0.001]), x)
    assert (int(multiplier[0]), int(shift[0])) == of(0.001, -(2**17), 2**17)


def test_each_channel_has_its_own_bits() -> None:
    x = Bounds(np.array([-10, -(2**17)]), np.array([10, 2**17]))
    ratios = np.array([0.0123, 0.001])
    multiplier, shift = short_multipliers(ratios, x)
    found = list(zip(multiplier.tolist(), shift.tolist(), strict=True))
    assert found == [of(0.0123, -10, 10), of(0.001, -(2**17), 2**17)]


def test_one_channel_that_errs_refuses_all() -> None:
    x = Bounds(np.array([-10, -(2**30)]), np.array([10, 2**30]))
    assert short_multipliers(np.array([0.1, 0.0037]), x) is None
    assert short_multipliers(np.array([0.1, 2.0**-9]), x) is not None


def test_a_layer_is_refused_by_all_its_channels_together() -> None:
    """One channel in a hundred may be off by half a step; not all of them."""
    ratio, reach = 0.0037, 2**21 + 20 * 2**17
    alone = Bounds(np.array([-reach]), np.array([reach]))
    assert short_multipliers(np.array([ratio]), alone) is None
    reaches = np.array([reach] + [100] * 99)
    among = Bounds(-reaches, reaches)
    assert short_multipliers(np.full(100, ratio), among) is not None


def test_multipliers_of_halves_have_15_bits_and_zeros() -> None:
    """1 - 2^-16 is as near to 1 as to the next multiplier below it, and goes up."""
    ratios = np.array([0.75, 1 / 3, 1 - 2.0**-16, 2.0**-40, 0.0])
    multiplier, shift = half_multipliers(ratios)
    assert multiplier.tolist() == [
        24576 << 16,
        21845 << 16,
        2**30,
        1 << 22,
        0,
    ]
    assert shift.tolist() == [31, 32, 30, 62, 62]


def test_only_8_bits_have_products_of_32() -> None:
    """24577 / 2^20 has 15 bits; sums up to 2^18 leave 13 for a multiplier to 8 bits, those up to 2^30 too few."""
    ratio = np.array([24577 * 2.0**-20])
    whole, short = 24577 << 16, 3 << 29
    for dtype, most, expected in (
        ("i8", 2**18, short),
        ("i8", 2**30, whole),
        ("i16", 2**18, whole),
    ):
        sums = Bounds(np.array([-most]), np.array([most]))
        (multiplier,), _ = narrow_factors(ratio, sums, dtype)
        assert multiplier == expected
