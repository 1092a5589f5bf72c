"""The interval of a table, or of lines between points, is that of the results that each channel's interval picks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cvm.program import Instruction, TensorType
from cvm.program.bounds import Bounds
from cvm.proof.validate import infer_bounds

INTERVALS = st.lists(
    st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    min_size=1,
    max_size=8,
)


def table_bounds(
    dtype: str, values: np.ndarray, lo: list[int], hi: list[int]
) -> tuple[list[int], list[int]]:
    types = (TensorType(dtype, (len(lo),)), TensorType("i16", values.shape))
    x = Bounds(np.array(lo), np.array(hi))
    never_read = Bounds(np.array([0]), np.array([0]))
    found = infer_bounds(
        Instruction("table", (0, 1)),
        types,
        (None, values),
        (x, never_read),
        TensorType("i16", types[0].shape),
    )
    return found.lo.tolist(), found.hi.tolist()


@given(INTERVALS, st.integers(0, 2**32 - 1))
def test_each_channel_takes_the_extremes_of_its_own_interval(
    pairs: list[tuple[int, int]], seed: int
) -> None:
    values = np.random.default_rng(seed).integers(-1000, 1000, 256, np.int16)
    lo, hi = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    picked = [
        values.tolist()[a + 128 : b + 129] for a, b in zip(lo, hi, strict=True)
    ]
    assert table_bounds("i8", values, lo, hi) == (
        [min(part) for part in picked],
        [max(part) for part in picked],
    )


def test_the_whole_range_of_i16() -> None:
    values = np.zeros(65536, np.int16)
    values[[0, 40000, 65535]] = -5, 9, 7
    assert table_bounds(
        "i16", values, [-32768, -32767, 7233], [32767, 7231, 32767]
    ) == ([-5, 0, 0], [9, 0, 7])


WIDE = st.integers(-32768, 32767)
STEEP = st.integers(-16384, 16383)


@given(
    st.lists(st.tuples(WIDE, WIDE), min_size=1, max_size=6),
    st.lists(STEEP, min_size=1, max_size=9),
    st.integers(0, 512),
)
def test_lines_between_points_have_the_extremes_of_each_interval(
    pairs: list[tuple[int, int]], kinds: list[int], turn: int
) -> None:
    """The points repeat a few numbers, from another of them on behind `turn`."""
    points = [kinds[(k + k // (turn + 1)) % len(kinds)] for k in range(513)]
    lo, hi = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    lines = [
        points[k] * (128 - rest) + points[k + 1] * rest
        for k in range(512)
        for rest in range(128)
    ]
    reached = [
        lines[a + 32768 : b + 32769] for a, b in zip(lo, hi, strict=True)
    ]
    types = (TensorType("i16", (len(lo),)), TensorType("i16", (513,)))
    never_read = Bounds(np.array([0]), np.array([0]))
    found = infer_bounds(
        Instruction("interpolate", (0, 1)),
        types,
        (None, np.array(points, np.int16)),
        (Bounds(np.array(lo), np.array(hi)), never_read),
        TensorType("i32", types[0].shape),
    )
    assert found.lo.tolist() == [min(part) for part in reached]
    assert found.hi.tolist() == [max(part) for part in reached]
