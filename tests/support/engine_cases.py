"""Programs that are written call by call, with an array for each input, and run by every instruction set between guards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from cvm.program import DTYPE_RANGES, DTYPES, Input, IntArray, TensorType
from cvm.program.bounds import full
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from tests.support.cvm_programs import Draft
from tests.support.engine_steps import GUARD, UNTOUCHED

THREADS = cycle([1, 2, 3, 4])


class Case:
    """A program that grows, and an array for each of its inputs. What nothing reads is an output."""

    def __init__(self) -> None:
        self.draft = Draft(np.random.default_rng(0))
        self.sample: dict[str, IntArray] = {}

    def input(self, array: IntArray, dtype: str) -> int:
        type_, name = TensorType(dtype, array.shape), f"input{len(self.sample)}"
        self.sample[name] = np.asarray(array, DTYPES[dtype])
        low, high = int(array.min()), int(array.max())
        self.draft.inputs[len(self.draft.types)] = Input(name, type_, low, high)
        return self.draft._add(type_, full(type_, low, high))

    def clamp(self, x: int, dtype: str) -> int:
        low, high = DTYPE_RANGES[dtype]
        return self.draft.apply("clamp", x, min=low, max=high)

    def conv2d(
        self,
        x: int,
        weights: IntArray,
        bias: IntArray,
        window: tuple[tuple[int, ...], ...],
        zero_point: int,
    ) -> int:
        """A convolution of one group; `window` is its stride, dilation and pad."""
        stride, dilation, pad = window
        return self.draft.apply(
            "conv2d",
            x,
            self.draft.array(weights.astype(np.int8), "i8"),
            self.draft.array(bias.astype(np.int32), "i32"),
            pad=pad,
            stride=stride,
            dilation=dilation,
            groups=1,
            input_zp=zero_point,
        )

    def rescale(
        self,
        x: int,
        multiplier: Sequence[int],
        shift: Sequence[int],
        dtype: str,
        zero_points: tuple[int, int] = (0, 0),
    ) -> int:
        multipliers = self.draft.array(np.array(multiplier, np.int32), "i32")
        shifts = self.draft.array(np.array(shift, np.int8), "i8")
        named = {"input_zp": zero_points[0], "output_zp": zero_points[1]}
        return self.draft.apply(
            "rescale", x, multipliers, shifts, dtype=dtype, **named
        )

    def proven(self) -> Proven:
        return validate(self.draft.finish())

    def assert_equal_everywhere(self) -> None:
        """With every value in a step of its own, too: then they lie in the arena, where i8 is stored as q + 128."""
        form = self.proven()
        expected = run(form, self.sample)
        for isa in native.isas():
            for traceable in (False, True):
                found = run_guarded(
                    native.Engine(form, isa=isa, traceable=traceable),
                    self.sample,
                    next(THREADS),
                )
                for name, array in expected.items():
                    np.testing.assert_array_equal(
                        found[name], array, f"{name} on {isa}"
                    )


def run_guarded(
    engine: native.Engine, sample: dict[str, IntArray], threads: int
) -> dict[str, IntArray]:
    """Each output lies between bytes that must stay as they were."""
    inputs, plain = engine._buffers(sample)
    memory = {
        name: np.full(GUARD + array.nbytes + GUARD, UNTOUCHED, np.uint8)
        for name, array in plain.items()
    }
    found = {
        name: memory[name][GUARD : GUARD + array.nbytes]
        .view(array.dtype)
        .reshape(array.shape)
        for name, array in plain.items()
    }
    engine.core.run(inputs, list(found.values()), threads)
    for name, array in plain.items():
        assert (memory[name][:GUARD] == UNTOUCHED).all() and (
            memory[name][GUARD + array.nbytes :] == UNTOUCHED
        ).all()
    return found
