"""What follows a convolution in registers: rescales in each of their forms, shortcuts, clamps. Engine == reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cvm.errors import Invalid
from cvm.program import (
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from cvm.runtime.native import Engine

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

GREATEST = 2**31 - 1


class Draft:
    """A program of one image input `x`, written instruction by instruction; constants are numbered at the end."""

    def __init__(self, channels: int, size: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.input = Input(
            "x", TensorType("i8", (1, size, size, channels)), -128, 127
        )
        self.constants: list[IntArray] = []
        self.steps: list[
            tuple[str, tuple[tuple[str, int], ...], dict[str, Attribute]]
        ] = []

    def constant(self, array: IntArray) -> tuple[str, int]:
        self.constants.append(array)
        return ("constant", len(self.constants) - 1)

    def add(
        self, name: str, *operands: tuple[str, int], **attributes: Attribute
    ) -> tuple[str, int]:
        self.steps.append((name, operands, attributes))
        return ("step", len(self.steps) - 1)

    def conv(
        self,
        x: tuple[str, int],
        channels: int,
        outputs: int,
        kernel: int,
        zero_point: int,
        stride: int = 1,
    ) -> tuple[str, int]:
        weights = self.random.integers(
            -127, 128, (outputs, kernel, kernel, channels)
        ).astype(np.int8)
        bias = self.random.integers(-5000, 5000, outputs).astype(np.int32)
        pad = (kernel // 2,) * 4
        w, b = self.constant(weights), self.constant(bias)
        one = (1, 1)
        return self.add(
            "conv2d",
            x,
            w,
            b,
            pad=pad,
            stride=(stride, stride),
            dilation=one,
            groups=1,
            input_zp=zero_point,
        )

    def rescale(
        self,
        x: tuple[str, int],
        multiplier: IntArray,
        shift: IntArray,
        zero_points: tuple[int, int],
        dtype: str,
    ) -> tuple[str, int]:
        m, s = (
            self.constant(multiplier.astype(np.int32)),
            self.constant(shift.astype(np.int8)),
        )
        return self.add(
            "rescale",
            x,
            m,
            s,
            input_zp=zero_points[0],
            output_zp=zero_points[1],
            dtype=dtype,
        )

    def finish(self) -> Program:
        first = {"input": 0, "constant": 1, "step": 1 + len(self.constants)}
        steps = [
            Instruction(name, tuple(first[k] + n for k, n in ops), more)
            for name, ops, more in self.steps
        ]
        result = Output("y", first["step"] + len(steps) - 1)
        return Program(
            (self.input,), tuple(self.constants), tuple(steps), (result,)
        )


def factors(
    random: np.random.Generator, count: int, shifts: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """Multipliers with the ends of their range and a zero among them, and shifts from a range."""
    multiplier = random.integers(2**30, GREATEST, count, endpoint=True)
    shift = random.integers(shifts[0], shifts[1], count, endpoint=True)
    if count > 3:
        multiplier[:2] = 2**30, GREATEST
        multiplier[2], shift[2] = 0, 62
    return multiplier, shift


def assert_agrees(
    program: Program, seed: int, *, in_registers: bool = False
) -> None:
    """The engine gives the reference's integers by every instruction set, and with `in_registers` no sums leave these."""
    form = validate(program)
    shape = program.inputs[0].type.shape
    samples = [np.full(shape, end, np.int8) for end in (-128, 127)]
    samples.append(
        np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    )
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        if in_registers:
            assert "chain" not in engine.core.epilogues(), isa
        for threads, sample in enumerate(samples, 1):
            expected = run(form, {"x": sample})["y"]
            np.testing.assert_array_equal(
                engine.run({"x": sample}, threads=threads)["y"], expected, isa
            )


def of_channels(
    random: np.random.Generator, multiplier: int, shift: int, count: int
) -> tuple[IntArray, IntArray]:
    """A multiplier and a shift; of several channels others near them, and a zero among these."""
    if count == 1:
        return np.array([multiplier]), np.array([shift])
    multipliers = np.minimum(
        multiplier + random.integers(0, 2**20, count), GREATEST
    )
    shifts = shift - random.integers(0, 2 if shift > 16 else 1, count)
    if shift > 47:
        shifts[:] = shift
    multipliers[count // 2], shifts[count // 2] = 0, 62
    return multipliers, shifts


OWN_SHIFTS = {"left": (24, 32), "right": (33, 40), "both": (29, 36)}
SHORTCUT_SHIFTS = (15, 16, 17, 31, 47, 48)


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
        stored = d.rescale(
            d.conv(("input", 0), channels, outputs, 1, -128),
            np.array([2**30]),
            np.array([44]),
            (0, zero_point),
            "i8",
        )
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
            assert_agrees(d.finish(), seed, in_registers=suits)
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
    assert_agrees(d.finish(), channels, in_registers=True)


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
    assert_agrees(d.finish(), channels, in_registers=True)


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
    assert_agrees(d.finish(), channels, in_registers=in_registers)


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
    assert_agrees(d.finish(), channels, in_registers=True)


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
