"""Real scales as multipliers and shifts, in literals."""

import numpy as np
import pytest

from mrt.exact.fixed_point import (
    multipliers_and_shifts,
    power_of_two_at_least,
    quantize_array,
)


@pytest.mark.parametrize(
    ("ratio", "multiplier", "shift"),
    [
        (1.0, 2**30, 30),
        (0.5, 2**30, 31),
        (0.75, 3 * 2**29, 31),
        (1 / 3, 1431655765, 32),  # 2^32 / 3 = 1431655765.33
        (2.0**28, 2**30, 2),
        (
            1 - 2.0**-40,
            2**30,
            30,
        ),  # rounds up to one: the multiplier halves, the shift with it
        (2.0**-32, 2**30, 62),
        (2.0**-33, 2**29, 62),  # below 2^30 only at shift 62
        (2.0**-70, 0, 62),
        (0.0, 0, 62),
    ],
)
def test_the_canonical_pair_of_a_ratio(ratio, multiplier, shift):
    found = multipliers_and_shifts([1.0, ratio])
    assert [operand.tolist() for operand in found] == [
        [2**30, multiplier],
        [30, shift],
    ]


@pytest.mark.parametrize("ratio", [2.0**29, -1.0, float("inf"), float("nan")])
def test_a_ratio_that_rescale_cannot_express(ratio):
    with pytest.raises(ValueError, match="outside"):
        multipliers_and_shifts([1.0, ratio])


@pytest.mark.parametrize(
    ("scale", "power"),
    [(1.0, 1.0), (1.0000001, 2.0), (0.3, 0.5), (0.25, 0.25), (5.0, 8.0)],
)
def test_the_least_power_of_two_not_below(scale, power):
    assert power_of_two_at_least(scale) == power


def test_quantizing_rounds_half_up_and_saturates():
    assert quantize_array(
        [0.25, -0.25, 0.75, 99.0, -99.0], 0.5, -10, 10
    ).tolist() == [
        1,
        0,
        2,
        10,
        -10,
    ]
    assert quantize_array(np.float32(0.1), 0.1, -10, 10) == 1
