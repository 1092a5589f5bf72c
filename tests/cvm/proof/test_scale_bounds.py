"""The interval of rescale: every channel through its own multiplier, or one hull where channels are too many."""

from __future__ import annotations

import numpy as np

from cvm.program import Instruction, TensorType
from cvm.program.bounds import Bounds
from cvm.proof.validate import infer_bounds

HALF, ONE = (2**30, 31), (2**30, 30)


def rescale_bounds(
    x: Bounds, channels: int, factors: list[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    multiplier = np.array([factor[0] for factor in factors], np.int32)
    shift = np.array([factor[1] for factor in factors], np.int8)
    types = (
        TensorType("i32", (2, channels)),
        TensorType("i32", multiplier.shape),
        TensorType("i8", shift.shape),
    )
    instruction = Instruction(
        "rescale", (0, 1, 2), {"input_zp": 0, "output_zp": 0, "dtype": "i16"}
    )
    never_read = Bounds(np.array([0]), np.array([0]))
    found = infer_bounds(
        instruction,
        types,
        (None, multiplier, shift),
        (x, never_read, never_read),
        TensorType("i16", types[0].shape),
    )
    return found.lo.tolist(), found.hi.tolist()


def test_each_channel_has_its_own_interval_and_multiplier() -> None:
    x = Bounds(np.array([-10, -20]), np.array([30, 40]))
    assert rescale_bounds(x, 2, [HALF, ONE]) == ([-5, -20], [15, 40])


def test_one_multiplier_serves_every_channel() -> None:
    x = Bounds(np.array([-10, -20]), np.array([30, 40]))
    assert rescale_bounds(x, 2, [HALF]) == ([-5, -10], [15, 20])


def test_too_many_channels_share_the_hull_over_all_multipliers() -> None:
    x = Bounds(np.array([-10]), np.array([30]))
    assert rescale_bounds(x, 65537, [HALF] * 65536 + [ONE]) == ([-10], [30])
    assert rescale_bounds(
        Bounds(np.array([10]), np.array([30])), 65537, [HALF] * 65536 + [ONE]
    ) == ([5], [30])
