"""Makes programs around one convolution, to compare the engine with the reference.

The comparison is for every instruction set and thread count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
from cvm.runtime.native import Engine, isas


@dataclass(frozen=True)
class Convolution:
    """A convolution of x [N,H,W,C] and the stages after its sums.

    `stages` is "" for none, "rescale", or "clamp" for a clamp after a rescale.
    """

    name: str
    shape: tuple[int, int, int, int]
    kernel: tuple[int, int]
    outputs: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    groups: int = 0  # 0 means one group for each channel
    dtype: str = "i8"
    input_zp: int = 0
    stages: str = ""
    result: str = "i8"
    per_channel: bool = True
    shifts: tuple[int, int] = (34, 40)
    bits: int = 31  # of multipliers; zeros follow them
    # The value of all of x and w, at the bounds of their interval.
    constant: int | None = None
    beside: bool = False  # whether the result is a part of a concat

    def program(self, seed: int) -> Program:
        """Return the program.

        Its result y is transposed, so that it was bytes in stored form before.
        """
        random = np.random.default_rng(seed)
        channels, groups = self.shape[3], self.groups or self.shape[3]
        w = random.integers(
            -128, 128, (self.outputs, *self.kernel, channels // groups)
        )
        if self.constant is not None:
            w = np.full_like(w, self.constant)
        constants: list[IntArray] = [
            w.astype(np.int8),
            random.integers(-(2**20), 2**20, self.outputs).astype(np.int32),
        ]
        attributes = {
            **self.attributes,
            "groups": groups,
            "input_zp": self.input_zp,
        }
        instructions = [Instruction(self.name, (0, 1, 2), attributes)]
        if self.stages:
            count = self.outputs if self.per_channel else 1
            zeros = 31 - self.bits
            multiplier = random.integers(2**30, 2**31, count) >> zeros << zeros
            constants.append(multiplier.astype(np.int32))
            constants.append(
                random.integers(*self.shifts, count, endpoint=True).astype(
                    np.int8
                )
            )
            zero_point = (
                int(random.integers(-128, 128)) if self.result == "i8" else 0
            )
            rescale: dict[str, Attribute] = {
                "input_zp": 0,
                "output_zp": zero_point,
                "dtype": self.result,
            }
            instructions.append(Instruction("rescale", (5, 3, 4), rescale))
        if self.stages == "clamp":
            instructions.append(
                Instruction("clamp", (6,), {"min": -77, "max": 61})
            )
        last = len(constants) + len(instructions)
        if self.beside:
            instructions.append(
                Instruction("concat", (last, last, last), {"axis": 3})
            )
        last = len(constants) + len(instructions)
        instructions.append(
            Instruction("transpose", (last,), {"perm": (0, 2, 1, 3)})
        )
        x = Input(
            "x", TensorType(self.dtype, self.shape), *DTYPE_RANGES[self.dtype]
        )
        return Program(
            (x,),
            tuple(constants),
            tuple(instructions),
            (Output("y", last + 1),),
        )

    def sample(self, seed: int) -> dict[str, IntArray]:
        """Return an x of the whole range, or of one value."""
        low, high = DTYPE_RANGES[self.dtype]
        if self.constant is not None:
            return {
                "x": np.full(
                    self.shape,
                    low if self.constant < 0 else high,
                    DTYPES[self.dtype],
                )
            }
        return {
            "x": np.random.default_rng(seed)
            .integers(low, high + 1, self.shape)
            .astype(DTYPES[self.dtype])
        }


SQUARE = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}
APART = {**SQUARE, "stride": (2, 2)}
WIDE = {"pad": (2, 2, 2, 2), "stride": (1, 1), "dilation": (1, 1)}
POINTS = {**SQUARE, "pad": (0, 0, 0, 0)}
CONVOLUTIONS = {
    "blocks": Convolution("conv2d", (1, 5, 7, 37), (3, 3), 37, SQUARE),
    "runs": Convolution("conv2d", (1, 5, 9, 144), (3, 3), 144, SQUARE),
    "runs apart": Convolution("conv2d", (2, 7, 9, 64), (3, 3), 64, APART),
    "general": Convolution("conv2d", (1, 6, 9, 20), (5, 5), 20, WIDE),
    "deep": Convolution("conv2d", (1, 6, 8, 8), (3, 3), 40, SQUARE, groups=1),
    "points": Convolution("conv2d", (1, 5, 3, 19), (1, 1), 70, POINTS, groups=1),
}  # fmt: skip
"""One for each way in which kernels take sums to what follows them."""


def assert_engine_agrees(case: Convolution, seed: int = 0) -> None:
    """Compare the engine's bytes with the reference's, fused and with a step for every value."""
    form, sample = validate(case.program(seed)), case.sample(seed + 1)
    expected = run(form, sample)["y"]
    for isa in isas():
        for traceable in (False, True):
            engine = Engine(form, isa=isa, traceable=traceable)
            for threads in (1, 2, 3, 4):
                found = engine.run(sample, threads=threads)["y"]
                np.testing.assert_array_equal(
                    found,
                    expected,
                    f"{case} on {isa}, {threads} threads, alone {traceable}",
                )
