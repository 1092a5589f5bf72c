"""What follows a convolution in registers: rescales in each of their forms, shortcuts, clamps. Engine == reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cvm.errors import Invalid
from cvm.proof.validate import validate
from cvm.runtime import native
from tests.support.epilogue_programs import (
    GREATEST,
    Draft,
    assert_agrees,
    factors,
    of_channels,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

OWN_SHIFTS = {"left": (24, 32), "right": (33, 40), "both": (29, 36)}
SHORTCUT_SHIFTS = (15, 16, 17, 31, 47, 48)


def stored_bytes(
    d: Draft, channels: int, outputs: int, zero_point: int
) -> tuple[str, int]:
    """A value of the program's own with so many channels: a convolution's, in 8 bits."""
    sums = d.conv(("input", 0), channels, outputs, 1, -128)
    one, shift = np.array([2**30]), np.array([44])
    return d.rescale(sums, one, shift, (0, zero_point), "i8")


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (5, 7, 3), (64, 24, 1)],
)
@pytest.mark.parametrize("own", OWN_SHIFTS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_rescaled_shortcut_of_bytes(
    own: str, channels: int, outputs: int, kernel: int, per_channel: bool
) -> None:
    tried = 0
    for shift, zero_point in itertools.product(SHORTCUT_SHIFTS, (-128, 5, 127)):
        seed = shift * 1000 + zero_point + channels
        d = Draft(channels, 5, seed)
        stored = stored_bytes(d, channels, outputs, zero_point)
        sums = d.conv(
            stored, outputs, outputs, kernel, zero_point
        )  # a second reader: it is stored as bytes
        mine = d.rescale(
            sums, *factors(d.random, outputs, OWN_SHIFTS[own]), (0, 0), "i32"
        )
        multiplier = (
            GREATEST if shift == 31 else 2**30 + seed
        )  # the greatest does not split into two halves of 16 bits
        other = d.rescale(
            stored,
            *of_channels(
                d.random, multiplier, shift, outputs if per_channel else 1
            ),
            (zero_point, 0),
            "i32",
        )
        total = (
            d.add("add", mine, other) if seed % 2 else d.add("add", other, mine)
        )
        last = d.rescale(
            total,
            *of_channels(
                d.random,
                2**30 + 12345,
                33 + seed % 21,
                outputs if per_channel else 1,
            ),
            (0, seed % 256 - 128),
            "i8",
        )
        last = d.add("clamp", last, min=-100, max=90) if seed % 3 == 0 else last
        d.add(
            "reverse", last, axis=1
        )  # so that the fused step's result is stored, not an output
        suits = 16 <= shift < 48 and multiplier != GREATEST
        try:
            assert_agrees(d.finish(), seed, path="registers" if suits else None)
            tried += 1
        except Invalid:
            continue  # the sum could leave 32 bits
    assert tried >= 6


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (5, 7, 3), (40, 50, 1)],
)
@pytest.mark.parametrize("own", OWN_SHIFTS)
def test_a_shortcut_of_32_bits(
    own: str, channels: int, outputs: int, kernel: int
) -> None:
    d = Draft(channels, 6, outputs)
    sides = []
    for size in (1, kernel):
        sums = d.conv(("input", 0), channels, outputs, size, -7)
        sides.append(
            d.rescale(
                sums,
                *factors(d.random, outputs, OWN_SHIFTS[own]),
                (0, 0),
                "i32",
            )
        )
    last = d.rescale(
        d.add("add", *sides),
        np.array([GREATEST]),
        np.array([39]),
        (0, -128),
        "i8",
    )
    d.add("reverse", last, axis=2)
    assert_agrees(d.finish(), channels, path="registers")


def whole(
    random: np.random.Generator, count: int, greatest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers and shifts of factors 1..greatest, in canonical form, with both ends and a zero among them."""
    numbers = random.integers(1, greatest, count, endpoint=True)
    numbers[:2] = (1, greatest)[: len(numbers[:2])]
    _, bits = np.frexp(numbers.astype(float))
    multiplier, shift = numbers << (31 - bits), 31 - bits
    multiplier[2:3], shift[2:3] = 0, 62
    return multiplier, shift


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (5, 7, 3), (64, 24, 1), (12, 2, 1)],
)
@pytest.mark.parametrize("greatest", [1, 300, 32767, 32768, 2**20])
@pytest.mark.parametrize("shifts", ["none", "left", "both"])
def test_a_shortcut_times_integers_on_shifted_sums(
    channels: int, outputs: int, kernel: int, greatest: int, shifts: str
) -> None:
    """So residual sums are written; the engine needs no product of 64 bits for factors below 2^15 and shifts to the left."""
    for seed, zero_point in enumerate((-128, 5, 127)):
        d = Draft(channels, 5, seed + channels)
        stored = stored_bytes(d, channels, outputs, zero_point)
        sums = d.conv(stored, outputs, outputs, kernel, zero_point)
        if shifts != "none":
            most = 33 if shifts == "both" else 30
            amounts = d.random.integers(24, most, outputs, endpoint=True)
            ones = np.full(outputs, 2**30)
            sums = d.rescale(sums, ones, amounts, (0, 0), "i32")
        factors_ = whole(d.random, outputs, greatest)
        other = d.rescale(stored, *factors_, (zero_point, 0), "i32")
        total = d.add("add", *((sums, other) if seed else (other, sums)))
        multiplier, shift = of_channels(
            d.random, 2**30 + 12345, 40 + seed, outputs
        )
        last = d.rescale(total, multiplier, shift, (0, seed - 20), "i8")
        d.add("reverse", last, axis=1)
        assert_agrees(d.finish(), seed, path=None)


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (5, 7, 3), (64, 24, 1), (9, 40, 1)],
)
@pytest.mark.parametrize("greatest", [300, 32767, 32768])
@pytest.mark.parametrize("is_wide", [False, True])
def test_such_a_sum_may_become_bytes_by_products_of_32_bits(
    channels: int, outputs: int, kernel: int, greatest: int, is_wide: bool
) -> None:
    """A multiplier of 3 bits; also where factors or shifts suit no vectors, so that only the last rescale is short."""
    for seed, amounts in enumerate(((28, 30), (30, 30), (30, 32))):
        d = Draft(channels, 5, seed + channels)
        stored = stored_bytes(d, channels, outputs, 5)
        sums = d.conv(stored, outputs, outputs, kernel, 5)
        ones = np.full(outputs, 2**30)
        shifts = d.random.integers(*amounts, outputs, endpoint=True)
        sums = d.rescale(sums, ones, shifts, (0, 0), "i32")
        if is_wide:
            other = d.conv(stored, outputs, outputs, 1, 5)
        else:
            factors_ = whole(d.random, outputs, greatest)
            other = d.rescale(stored, *factors_, (5, 0), "i32")
        total = d.add("add", sums, other)
        multiplier = d.random.integers(4, 8, outputs) << 28
        shift = d.random.integers(38, 44, outputs)
        last = d.rescale(total, multiplier, shift, (0, seed - 20), "i8")
        d.add("reverse", last, axis=1)
        program = d.finish()
        facts = validate(program).rescales.values()
        assert any(fact.fits32 for fact in facts)
        assert_agrees(program, seed)


@pytest.mark.parametrize("outputs", [2, 16, 33])
@pytest.mark.parametrize("shifted", [False, True])
def test_a_shortcut_of_32_bits_on_shifted_sums(
    outputs: int, shifted: bool
) -> None:
    d = Draft(9, 6, outputs)
    other = d.conv(("input", 0), 9, outputs, 3, -7)
    scales = factors(d.random, outputs, (28, 36))
    added = d.rescale(other, *scales, (0, 0), "i32")
    sums = d.conv(("input", 0), 9, outputs, 1, -7)
    if shifted:
        amounts = d.random.integers(22, 30, outputs, endpoint=True)
        ones = np.full(outputs, 2**30)
        sums = d.rescale(sums, ones, amounts, (0, 0), "i32")
    last = d.rescale(
        d.add("add", sums, added),
        np.array([GREATEST]),
        np.array([39]),
        (0, -128),
        "i8",
    )
    d.add("reverse", last, axis=2)
    assert_agrees(d.finish(), outputs, path="registers")


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (3, 7, 3), (40, 50, 1)],
)
@pytest.mark.parametrize("own", OWN_SHIFTS)
def test_a_result_of_32_bits(
    own: str, channels: int, outputs: int, kernel: int
) -> None:
    d = Draft(channels, 6, outputs)
    sums = d.conv(("input", 0), channels, outputs, kernel, 9)
    scales = factors(d.random, outputs, OWN_SHIFTS[own])
    found = d.rescale(sums, *scales, (0, 0), "i32")
    d.add("reverse", found, axis=1)
    assert_agrees(d.finish(), channels, path="registers")


@pytest.mark.parametrize(
    ("shifts", "in_registers"),
    [
        ((32, 36), True),
        ((40, 53), True),
        ((30, 32), True),
        ((31, 54), True),
        ((15, 40), False),
    ],
)
@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (5, 7, 3), (64, 24, 1)],
)
def test_a_result_of_16_bits(
    channels: int,
    outputs: int,
    kernel: int,
    shifts: tuple[int, int],
    in_registers: bool,
) -> None:
    """Small shifts saturate at both ends."""
    d = Draft(channels, 6, outputs)
    sums = d.conv(("input", 0), channels, outputs, kernel, 9)
    found = d.rescale(sums, *factors(d.random, outputs, shifts), (0, 0), "i16")
    d.add("reverse", found, axis=1)
    assert_agrees(
        d.finish(), channels, path="registers" if in_registers else None
    )


@pytest.mark.parametrize("zero_points", [(0, 0), (-128, 0), (5, 0)])
@pytest.mark.parametrize(
    "channels, outputs, kernel", [(8, 16, 1), (3, 21, 3), (24, 40, 1)]
)
def test_bytes_that_are_widened_to_32_bits(
    channels: int, outputs: int, kernel: int, zero_points: tuple[int, int]
) -> None:
    d = Draft(channels, 6, outputs)
    sums = d.conv(("input", 0), channels, outputs, kernel, -128)
    scales = factors(d.random, outputs, (36, 48))
    found = d.rescale(sums, *scales, (0, zero_points[0]), "i8")
    one = np.array([2**30]), np.array([30])
    wide = d.rescale(found, *one, zero_points, "i32")
    d.add("reverse", wide, axis=1)
    assert_agrees(d.finish(), channels, path="registers")


@pytest.mark.parametrize("outputs", [5, 16, 40])
@pytest.mark.parametrize(
    "channels, kernel, stride, size",
    [(3, 3, 2, 9), (3, 7, 2, 11), (1, 5, 1, 8), (5, 3, 1, 4), (2, 3, 3, 7)],
)
def test_windows_of_few_channels(
    channels: int, kernel: int, stride: int, size: int, outputs: int
) -> None:
    """Lines of a window side by side in memory are read as they lie, but at borders."""
    d = Draft(channels, size, outputs)
    sums = d.conv(("input", 0), channels, outputs, kernel, -128, stride=stride)
    scales = factors(d.random, outputs, (40, 48))
    d.add("reverse", d.rescale(sums, *scales, (0, 3), "i8"), axis=1)
    assert_agrees(d.finish(), outputs)


@pytest.mark.parametrize(
    "shifts", [(20, 31), (32, 32), (32, 53), (33, 45), (50, 62)]
)
@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_a_rescale_to_bytes(shifts: tuple[int, int], zero_point: int) -> None:
    for channels, outputs, kernel, clamped in (
        (4, 40, 1, True),
        (17, 16, 3, False),
        (32, 19, 3, True),
    ):
        d = Draft(channels, 7, outputs)
        sums = d.conv(("input", 0), channels, outputs, kernel, zero_point)
        found = d.rescale(
            sums, *factors(d.random, outputs, shifts), (0, zero_point), "i8"
        )
        found = d.add("clamp", found, min=-1, max=0) if clamped else found
        d.add("reverse", found, axis=1)
        assert_agrees(d.finish(), channels)
