"""Epilogues that vectors finish tile by tile: values of 16 bits, weights in two parts, depthwise sums. Engine == reference."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cvm.errors import Invalid
from cvm.runtime import native
from tests.support.epilogue_programs import (
    Draft,
    assert_agrees,
    factors,
    of_channels,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

Value = tuple[str, int]
SHAPES = [(8, 16, 1), (16, 33, 3), (5, 7, 3), (3, 24, 3), (40, 50, 1)]
SHIFTS = {"high": (36, 50), "both": (31, 40), "left": (31, 32)}


def stored(d: Draft) -> Value:
    """The input as a value of the program's own, which kernels may read a little beyond its end."""
    return d.add("reverse", ("input", 0), axis=1)


def scaled(
    d: Draft, x: Value, count: int, shifts: tuple[int, int], to: str
) -> Value:
    zero_point = -3 if to == "i8" else 0
    return d.rescale(x, *factors(d.random, count, shifts), (0, zero_point), to)


@pytest.mark.parametrize("channels, outputs, kernel", SHAPES)
@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("result", ["i8", "i16", "i32"])
def test_products_of_16_bits(
    channels: int,
    outputs: int,
    kernel: int,
    shifts: tuple[int, int],
    result: str,
) -> None:
    for number in range(4):
        d = Draft(channels, 6, outputs, "i16")
        x = stored(d) if number % 2 == 0 else ("input", 0)
        y = scaled(
            d, d.conv(x, channels, outputs, kernel, 0), outputs, shifts, result
        )
        y = d.add("clamp", y, min=-90, max=77) if number >= 2 else y
        d.add("reverse", y, axis=1)
        assert_agrees(d.finish(), channels, path="tile")


@pytest.mark.parametrize("result", ["i8", "i16"])
def test_results_that_are_widened_to_32_bits(result: str) -> None:
    for clamped in (False, True):
        d = Draft(12, 6, 3, "i16")
        zero_point = -3 if result == "i8" else 0
        y = scaled(d, d.conv(stored(d), 12, 21, 3, 0), 21, (36, 44), result)
        y = d.add("clamp", y, min=-90, max=77) if clamped else y
        one = np.array([2**30]), np.array([30])
        d.add("reverse", d.rescale(y, *one, (zero_point, 0), "i32"), axis=1)
        assert_agrees(d.finish(), 1, path="tile")


def test_two_rescales_without_a_shortcut_are_no_such_epilogue() -> None:
    d = Draft(12, 6, 3, "i16")
    sums = d.conv(("input", 0), 12, 21, 3, 0)
    y = scaled(d, scaled(d, sums, 21, (33, 36), "i32"), 21, (33, 36), "i16")
    d.add("reverse", y, axis=1)
    assert_agrees(d.finish(), 1)


@pytest.mark.parametrize("x", ["i8", "i16"])
@pytest.mark.parametrize("shortcut", ["i8", "i16", "i32"])
@pytest.mark.parametrize("result", ["i8", "i16", "i32", ""])
@pytest.mark.parametrize("outputs", [5, 16, 40])
def test_a_shortcut_of_any_width(
    x: str, shortcut: str, result: str, outputs: int
) -> None:
    """The sum is rescaled to 8, 16 or 32 bits, or is the result itself."""
    tried = 0
    for seed, own in product(range(3), ((30, 32), (33, 38))):
        d = Draft(8, 5, seed, x)
        other = d.conv(("input", 0), 8, outputs, 1, 0)
        other = scaled(d, other, outputs, (40, 46), shortcut)
        other = d.add("reverse", other, axis=2)  # so that it is stored
        if shortcut != "i32":
            other = d.rescale(
                other,
                *of_channels(d.random, 2**30 + seed, 28, outputs),
                (-3 if shortcut == "i8" else 0, 0),
                "i32",
            )
        mine = d.conv(("input", 0), 8, outputs, 3, 0)
        mine = scaled(d, mine, outputs, own, "i32")
        y = d.add("add", *((mine, other) if seed % 2 else (other, mine)))
        y = scaled(d, y, outputs, (33, 48), result) if result else y
        y = d.add("clamp", y, min=-100, max=77) if seed == 2 else y
        d.add("reverse", y, axis=1)
        try:
            form = d.finish()
            assert_agrees(form, seed, path="tile")
            tried += 1
        except Invalid:
            continue  # the sum could leave 32 bits
    assert tried >= 3


@pytest.mark.parametrize("x", ["i8", "i16"])
@pytest.mark.parametrize("result", ["i8", "i16"])
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("shifted", [0, 3])
def test_weights_in_two_parts(
    x: str, result: str, groups: int, shifted: int
) -> None:
    """Weights of 15 bits: the high part is shifted to the left, and where room is short, the low one to the right before."""
    d = Draft(8, 6, shifted, x)
    high = d.conv(("input", 0), 8, 8, 3, 0, groups=groups)
    up = d.constant(np.full((1, 1, 1, 1), 6 if x == "i8" else 2, np.int32))
    high = d.add("shift_left", high, up)
    low = d.conv(("input", 0), 8, 8, 3, 0, groups=groups)
    if shifted:
        down = d.constant(np.full((1, 1, 1, 1), shifted, np.int32))
        low = d.add("shift_right", low, down, round=True)
    y = scaled(d, d.add("add", high, low), 8, (36, 44), result)
    d.add("reverse", d.add("clamp", y, min=-100, max=77), axis=1)
    assert_agrees(d.finish(), shifted, path="tile")


@pytest.mark.parametrize(
    "x, result", [("i8", "i16"), ("i16", "i8"), ("i16", "i16"), ("i16", "i32")]
)
@pytest.mark.parametrize("channels", [2, 8, 19, 32, 150])
@pytest.mark.parametrize("kernel, stride", [(3, 1), (3, 2), (5, 1)])
def test_depthwise_sums(
    x: str, result: str, channels: int, kernel: int, stride: int
) -> None:
    for shifts in SHIFTS.values():
        d = Draft(channels, 9, channels, x)
        sums = d.conv(
            ("input", 0), channels, channels, kernel, 0, stride, channels
        )
        y = scaled(d, sums, channels, shifts, result)
        d.add("reverse", d.add("clamp", y, min=-100, max=77), axis=1)
        assert_agrees(d.finish(), channels, path="tile")
