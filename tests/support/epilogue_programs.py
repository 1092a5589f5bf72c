"""Programs of a few instructions around a convolution, to compare what follows its sums in the engine with the reference."""

from __future__ import annotations

import numpy as np

from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
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

GREATEST = 2**31 - 1


class Draft:
    """A program of one image input `x`, written instruction by instruction; constants are numbered at the end."""

    def __init__(
        self, channels: int, size: int, seed: int, dtype: str = "i8"
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.input = Input(
            "x",
            TensorType(dtype, (1, size, size, channels)),
            *DTYPE_RANGES[dtype],
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
        groups: int = 1,
    ) -> tuple[str, int]:
        weights = self.random.integers(
            -127, 128, (outputs, kernel, kernel, channels // groups)
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
            groups=groups,
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
        m = self.constant(multiplier.astype(np.int32))
        s = self.constant(shift.astype(np.int8))
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
    program: Program, seed: int, *, path: str | None = None
) -> None:
    """The engine gives the reference's integers by every instruction set, and sums become results there (or in registers)."""
    form = validate(program)
    kind = program.inputs[0].type
    low, high = DTYPE_RANGES[kind.dtype]
    samples = [np.full(kind.shape, end) for end in (low, high)]
    random = np.random.default_rng(seed)
    samples.append(random.integers(low, high, kind.shape, endpoint=True))
    inputs = [{"x": sample.astype(DTYPES[kind.dtype])} for sample in samples]
    expected = [run(form, x)["y"] for x in inputs]
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        if path is not None:
            wanted = PATHS.get((isa, path), path)
            assert paths(engine) <= {"registers", wanted}, isa
        pairs = zip(inputs, expected, strict=True)
        for threads, (x, y) in enumerate(pairs, 1):
            found = engine.run(x, threads=threads)["y"]
            np.testing.assert_array_equal(found, y, isa)


# Plain C++ has no kernels for tiles, and those of bytes on AVX2 nothing else.
PATHS = {
    ("portable", "tile"): "chain",
    ("avx2", "registers"): "tile",
}


def paths(engine: Engine) -> set[str]:
    """The epilogues of all steps but those within the next, and those by Winograd's method, whose sums always lie in a tile."""
    core = engine.core
    steps = zip(core.products(), core.epilogues(), strict=True)
    found = {path for kind, path in steps if kind != "winograd"}
    return found - {"", "next"}


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
