"""Checks decomposed reductions against the same sum in Python's own exact integers.

It also checks how far the program may be from that sum.
"""

from dataclasses import dataclass

import numpy as np

from cvm.program import Instruction, Program
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run

PRODUCTS = ("dense", "conv2d")


@dataclass
class Accumulators:
    """The parts of one long reduction, and the shift at which they were added."""

    program: Program
    pieces: list[Instruction]
    shift: int

    @property
    def parts(self) -> int:
        return len(self.pieces)

    def check(self, proven: Proven, x: np.ndarray) -> bool:
        """Whether every decomposed sum * 2^shift is within parts/2 * 2^shift of the exact sum."""
        seen: dict[int, np.ndarray] = {}
        run(proven, {self.program.inputs[0].name: x}, observe=seen.__setitem__)
        found = seen[self._total()].astype(object) * 2**self.shift
        exact = self._exact(x)
        allowed = 0 if self.shift == 0 else self.parts * 2 ** (self.shift - 1)
        return bool((abs(found.reshape(exact.shape) - exact) <= allowed).all())

    def _total(self) -> int:
        """Return the value with the whole sum: the last add, or the only product."""
        numbers = range(
            self.program.first_instruction,
            self.program.first_instruction + len(self.program.instructions),
        )
        named = dict(zip(numbers, self.program.instructions, strict=True))
        return max(
            n for n, item in named.items() if item.name in ("add", *PRODUCTS)
        )

    def _exact(self, x: np.ndarray) -> np.ndarray:
        constants = self.program.constants
        weights = [
            constants[item.operands[1] - self.program.first_constant]
            for item in self.pieces
        ]
        bias = sum(
            constants[item.operands[2] - self.program.first_constant].astype(
                np.int64
            )
            for item in self.pieces
        )
        if self.pieces[0].name == "dense":
            whole = np.concatenate(weights, axis=1).astype(np.int64)
            return (x.astype(np.int64) @ whole.T + bias).astype(object)
        return self._convolution(
            x.astype(np.int64).transpose(0, 2, 3, 1), weights, bias
        )

    def _convolution(
        self, x: np.ndarray, weights: list[np.ndarray], bias: np.ndarray
    ) -> np.ndarray:
        """Convolve with stride 1, tap by tap in int64: at most 2^12 * 9 * 2^15 * 2^7 < 2^63."""
        attributes = self.pieces[0].attributes
        top, bottom, left, right = attributes["pad"]
        x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
        grouped = attributes["groups"] > 1
        whole = (
            sum(w.astype(np.int64) for w in weights)
            if grouped
            else np.concatenate(weights, axis=3)
        ).astype(np.int64)
        height = x.shape[1] - whole.shape[1] + 1
        width = x.shape[2] - whole.shape[2] + 1
        total = np.zeros((1, height, width, whole.shape[0]), np.int64) + bias
        for i in range(whole.shape[1]):
            for j in range(whole.shape[2]):
                window = x[:, i : i + height, j : j + width]
                total += (
                    window * whole[:, i, j, 0]
                    if grouped
                    else np.einsum("nhwc,oc->nhwo", window, whole[:, i, j])
                )
        return total.astype(object)


def accumulators(program: Program) -> Accumulators:
    """Return the products of a program that contains one decomposed reduction."""
    pieces = [item for item in program.instructions if item.name in PRODUCTS]
    shifts = [
        item for item in program.instructions if item.name == "shift_right"
    ]
    shift = (
        int(
            program.constants[
                shifts[0].operands[1] - program.first_constant
            ].ravel()[0]
        )
        if shifts
        else 0
    )
    return Accumulators(program, pieces, shift)
