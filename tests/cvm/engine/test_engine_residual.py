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
            stride=one,
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


def assert_agrees(program: Program, seed: int) -> None:
    form = validate(program)
    shape = program.inputs[0].type.shape
    samples = [np.full(shape, end, np.int8) for end in (-128, 127)]
    samples.append(
        np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    )
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        for threads, sample in enumerate(samples, 1):
            expected = run(form, {"x": sample})["y"]
            np.testing.assert_array_equal(
                engine.run({"x": sample}, threads=threads)["y"], expected, isa
            )


OWN_SHIFTS = {"left": (24, 32), "right": (33, 40), "both": (29, 36)}
SHORTCUT_SHIFTS = (15, 16, 17, 31, 47, 48)


@pytest.mark.parametrize(
    "channels, outputs, kernel",
    [(8, 16, 1), (16, 33, 3), (5, 7, 3), (64, 24, 1)],
)
@pytest.mark.parametrize("own", OWN_SHIFTS)
def test_a_rescaled_shortcut_of_bytes(
    own: str, channels: int, outputs: int, kernel: int
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
            np.array([multiplier]),
            np.array([shift]),
            (zero_point, 0),
            "i32",
        )
        total = (
            d.add("add", mine, other) if seed % 2 else d.add("add", other, mine)
        )
        last = d.rescale(
            total,
            np.array([2**30 + 12345]),
            np.array([32 + seed % 22]),
            (0, seed % 256 - 128),
            "i8",
        )
        last = d.add("clamp", last, min=-100, max=90) if seed % 3 == 0 else last
        d.add(
            "reverse", last, axis=1
        )  # so that the fused step's result is stored, not an output
        try:
            assert_agrees(d.finish(), seed)
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
    assert_agrees(d.finish(), channels)


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
