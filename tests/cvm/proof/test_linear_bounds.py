"""The interval of a sum of products is exact: some input reaches both ends, and none goes beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvm.errors import Unproven
from cvm.program import DTYPE_RANGES, DTYPES, Instruction, IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.proof.validate import infer_bounds, infer_type
from cvm.reference.registry import RULES

Case = tuple[
    Instruction, TensorType, IntArray, IntArray
]  # instruction, type of x, weights, bias


def one(lo: int, hi: int) -> Bounds:
    return Bounds(np.array([lo]), np.array([hi]))


def bounds_of(case: Case, x: Bounds) -> Bounds:
    instruction, x_type, w, b = case
    types = (x_type, TensorType("i8", w.shape), TensorType("i32", b.shape))
    result = infer_type(instruction, types, (None, w, b))
    never_read = one(0, 0)
    return infer_bounds(
        instruction, types, (None, w, b), (x, never_read, never_read), result
    )


def run(case: Case, x: IntArray) -> IntArray:
    instruction, x_type, w, b = case
    return (
        RULES[instruction.name]
        .run(x.astype(DTYPES[x_type.dtype]), w, b, **instruction.attributes)
        .astype(np.int64)
    )


def coefficients(case: Case) -> IntArray:
    """How every element of the result depends on every element of x: [elements of x, *shape of one result]."""
    instruction, x_type, _, _ = case
    zero_point = instruction.attributes["input_zp"]
    step = -1 if zero_point == DTYPE_RANGES[x_type.dtype][1] else 1
    shape = x_type.shape[1:]
    places = int(np.prod(shape))
    basis = np.full((places, places), zero_point) + step * np.eye(
        places, dtype=np.int64
    )
    zero = run(case, np.full((1, *shape), zero_point))
    return (run(case, basis.reshape(places, *shape)) - zero) * step


def reached(
    case: Case, x: Bounds, pick: Callable[[IntArray], IntArray]
) -> list[int]:
    """For each channel of the result, the extreme that an input made for it gives; `pick` is np.max or np.min."""
    instruction, x_type, _, _ = case
    shape, zero_point = x_type.shape[1:], instruction.attributes["input_zp"]
    per_place = coefficients(case)
    outputs = per_place.shape[-1]
    per_place = per_place.reshape(per_place.shape[0], -1, outputs)
    lo, hi = (
        np.broadcast_to(end, shape).reshape(-1, 1, 1) for end in (x.lo, x.hi)
    )
    ends = np.stack(
        [per_place * (lo - zero_point), per_place * (hi - zero_point)]
    )
    gains = pick(ends, axis=0).sum(axis=0)
    found = []
    for channel in range(outputs):
        place = int(
            np.flatnonzero(gains[:, channel] == pick(gains[:, channel]))[0]
        )
        chosen = np.where(ends[0] == pick(ends, axis=0), lo, hi)[
            :, place, channel
        ]
        result = run(case, chosen.reshape(1, *shape)).reshape(-1, outputs)
        found.append(int(pick(result[:, channel])))
    return found


@st.composite
def weighted(
    draw: st.DrawFn, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    w = random.integers(-128, 128, shape).astype(np.int8)
    return w, random.integers(-(2**20), 2**20, shape[0]).astype(np.int32)


@st.composite
def zero_points(draw: st.DrawFn) -> tuple[str, int]:
    dtype = draw(st.sampled_from(["i8", "i16"]))
    return dtype, draw(st.integers(-128, 127)) if dtype == "i8" else 0


@st.composite
def dense_cases(draw: st.DrawFn) -> Case:
    dtype, zero_point = draw(zero_points())
    columns, rows = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    w, b = draw(weighted((rows, columns)))
    return (
        Instruction("dense", (0, 1, 2), {"input_zp": zero_point}),
        TensorType(dtype, (1, columns)),
        w,
        b,
    )


@st.composite
def conv2d_cases(draw: st.DrawFn) -> Case:
    """Large enough that some window lies wholly inside x, whatever the padding."""
    dtype, zero_point = draw(zero_points())
    groups = draw(st.integers(1, 2))
    per_group = draw(st.integers(1, 2))
    outputs = draw(st.integers(1, 2))
    kernel, stride, dilation, pad, size = [], [], [], [], []
    for _ in range(2):
        k = draw(st.integers(1, 3))
        s = draw(st.integers(1, 2))
        d = draw(st.integers(1, 2))
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        windows = 1 + -(-before // s) + -(-after // s)
        kernel = [*kernel, k]
        stride = [*stride, s]
        dilation = [*dilation, d]
        pad = [*pad, before, after]
        size.append((windows - 1) * s + (k - 1) * d + 1 - before - after)
    w, b = draw(weighted((outputs * groups, *kernel, per_group)))
    attributes = {
        "pad": tuple(pad),
        "stride": tuple(stride),
        "dilation": tuple(dilation),
        "groups": groups,
        "input_zp": zero_point,
    }
    return (
        Instruction("conv2d", (0, 1, 2), attributes),
        TensorType(dtype, (1, *size, groups * per_group)),
        w,
        b,
    )


@st.composite
def conv2d_transpose_cases(draw: st.DrawFn) -> Case:
    """Large enough that, of every residue, some place left by out_pad sees all taps."""
    dtype, zero_point = draw(zero_points())
    groups = draw(st.integers(1, 2))
    per_group = draw(st.integers(1, 2))
    outputs = draw(st.integers(1, 2))
    kernel, stride, out_pad, size = [], [], [], []
    for _ in range(2):
        k, s = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        out_pad += [draw(st.integers(1 - k, 2)), draw(st.integers(1 - k, 2))]
        kernel = [*kernel, k]
        stride = [*stride, s]
        size = [*size, 3 * -(-k // s)]
    w, b = draw(weighted((outputs * groups, *kernel, per_group)))
    attributes = {
        "out_pad": tuple(out_pad),
        "stride": tuple(stride),
        "groups": groups,
        "input_zp": zero_point,
    }
    x_type = TensorType(dtype, (1, *size, groups * per_group))
    return Instruction("conv2d_transpose", (0, 1, 2), attributes), x_type, w, b


CASES = st.one_of(dense_cases(), conv2d_cases(), conv2d_transpose_cases())


def intervals(
    draw: st.DrawFn, case: Case, *, around_zero_point: bool
) -> Bounds:
    """One interval for each channel of x."""
    instruction, x_type, _, _ = case
    low, high = DTYPE_RANGES[x_type.dtype]
    zero_point: Any = instruction.attributes["input_zp"]
    ends = []
    for _ in range(x_type.shape[-1]):
        if around_zero_point:
            ends.append(
                (
                    draw(st.integers(low, zero_point)),
                    draw(st.integers(zero_point, high)),
                )
            )
        else:
            ends.append(
                tuple(
                    sorted(
                        (
                            draw(st.integers(low, high)),
                            draw(st.integers(low, high)),
                        )
                    )
                )
            )
    return Bounds(*(np.array(end, np.int64) for end in zip(*ends, strict=True)))


@settings(max_examples=150, deadline=None)
@given(CASES, st.data())
def test_some_input_reaches_both_ends_of_every_channel(
    case: Case, data: st.DataObject
) -> None:
    x = intervals(data.draw, case, around_zero_point=True)
    found = bounds_of(case, x)
    assert found.hi.tolist() == reached(case, x, np.max)
    assert found.lo.tolist() == reached(case, x, np.min)


@settings(max_examples=150, deadline=None)
@given(CASES, st.data(), st.integers(0, 2**32 - 1))
def test_no_input_leaves_the_interval(
    case: Case, data: st.DataObject, seed: int
) -> None:
    x = intervals(data.draw, case, around_zero_point=data.draw(st.booleans()))
    found, shape = bounds_of(case, x), case[1].shape
    inputs = np.random.default_rng(seed).integers(
        x.lo, x.hi, (20, *shape[1:]), endpoint=True
    )
    result = run(case, inputs)
    assert (found.lo <= result).all() and (result <= found.hi).all()


def matmul_bounds(
    a: Bounds,
    b: Bounds,
    zero_points: tuple[int, int],
    sizes: tuple[int, int],
    dtype: str,
) -> Bounds:
    (inner, columns), (a_zp, b_zp) = sizes, zero_points
    types = (
        TensorType(dtype, (1, 1, inner)),
        TensorType(dtype, (1, inner, columns)),
    )
    instruction = Instruction("matmul", (0, 1), {"a_zp": a_zp, "b_zp": b_zp})
    return infer_bounds(
        instruction,
        types,
        (None, None),
        (a, b),
        infer_type(instruction, types, (None, None)),
    )


PAIRS = st.tuples(st.integers(-128, 127), st.integers(-128, 127)).map(
    lambda pair: tuple(sorted(pair))
)


@given(
    st.lists(PAIRS, min_size=1, max_size=6),
    st.lists(PAIRS, min_size=1, max_size=4),
    st.data(),
)
def test_matmul_sums_the_hulls_of_all_products(
    a: list[Any], b: list[Any], data: st.DataObject
) -> None:
    a_zp = data.draw(st.integers(-128, 127))
    b_zp = data.draw(st.integers(-128, 127))
    lo, hi = [0] * len(b), [0] * len(b)
    for n, b_interval in enumerate(b):
        for a_interval in a:
            corners = [
                (x - a_zp) * (y - b_zp) for x in a_interval for y in b_interval
            ]
            lo[n], hi[n] = lo[n] + min(0, *corners), hi[n] + max(0, *corners)
    a_bounds, b_bounds = (
        Bounds(*np.array(pairs, np.int64).T) for pairs in (a, b)
    )
    found = matmul_bounds(
        a_bounds, b_bounds, (a_zp, b_zp), (len(a), len(b)), "i8"
    )
    assert (found.lo.tolist(), found.hi.tolist()) == (lo, hi)


def test_matmul_with_one_interval_for_70000_places() -> None:
    found = matmul_bounds(one(-1, 2), one(-3, 1), (0, 0), (70000, 1), "i8")
    assert (found.lo.tolist(), found.hi.tolist()) == ([-420000], [210000])


def test_matmul_orders_nearly_equal_ratios_of_i16() -> None:
    # 32767/32766 and 32766/32765 differ by less than 2^-29, and 32766 * 32766 exceeds 32767 * 32765 by one.
    found = matmul_bounds(
        one(-32766, 32767), one(-32766, 32765), (0, 0), (1, 1), "i16"
    )
    assert (found.lo.tolist(), found.hi.tolist()) == (
        [-1073643522],
        [1073610756],
    )


def test_dense_with_one_interval_for_70000_places() -> None:
    w, b = np.ones((1, 70000), np.int8), np.array([5], np.int32)
    case = (
        Instruction("dense", (0, 1, 2), {"input_zp": 0}),
        TensorType("i8", (1, 70000)),
        w,
        b,
    )
    found = bounds_of(case, one(-1, 2))
    assert (found.lo.tolist(), found.hi.tolist()) == ([-69995], [140005])


def test_dense_with_70000_results_keeps_one_interval() -> None:
    w, b = np.full((70000, 1), 3, np.int8), np.zeros(70000, np.int32)
    w[7], b[9] = -4, 1000
    case = (
        Instruction("dense", (0, 1, 2), {"input_zp": 0}),
        TensorType("i8", (1, 1)),
        w,
        b,
    )
    found = bounds_of(case, one(-1, 2))
    assert (found.lo.tolist(), found.hi.tolist()) == ([-8], [1006])


def test_a_residue_beyond_i32_is_refused_though_others_fit() -> None:
    w = np.zeros((1, 1, 2, 520), np.int8)
    w[0, 0, 1] = 127
    attributes = {
        "out_pad": (0, 0, 0, 0),
        "stride": (1, 2),
        "groups": 1,
        "input_zp": 0,
    }
    case = (
        Instruction("conv2d_transpose", (0, 1, 2), attributes),
        TensorType("i16", (1, 1, 1, 520)),
        w,
        np.zeros(1, np.int32),
    )
    with pytest.raises(Unproven, match=r"conv2d_transpose\.C8"):
        bounds_of(case, Bounds(np.full(520, -32768), np.full(520, 32767)))
