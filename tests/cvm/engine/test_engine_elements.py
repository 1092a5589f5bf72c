"""The element-wise kernels of every instruction set: rescale, clamp, add, loads and stores, at every width of a row."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program import DTYPE_RANGES, DTYPES, IntArray, TensorType
from cvm.proof.validate import validate
from cvm.runtime import native
from tests.support.engine_cases import Case
from tests.support.engine_steps import extreme

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

SHIFTS = range(2, 63)
MULTIPLIERS = (
    2**30,
    2**31 - 1,
    1518500250,
)  # the least, the greatest, about 2^30.5


CASTS = [
    ("i32", "i8", (0, 5)),
    ("i32", "i8", (0, -128)),
    ("i32", "i16", (0, 0)),
    ("i32", "i32", (0, 0)),
    ("i16", "i32", (0, 0)),
    ("i16", "i8", (0, 127)),
    ("i8", "i8", (-128, 127)),
    ("i8", "i32", (127, 0)),
    ("u8", "i8", (128, 0)),
    ("u8", "i16", (255, 0)),
]


@pytest.mark.parametrize(("source", "result", "zero_points"), CASTS)
def test_rescale_by_every_shift(
    source: str, result: str, zero_points: tuple[int, int]
) -> None:
    """Below some shift results leave 32 bits before they saturate, from there on they do not."""
    case = Case()
    x = case.input(extreme(TensorType(source, (2, 21)), 1), source)
    for shift in SHIFTS:
        for multiplier in MULTIPLIERS:
            case.rescale(x, [multiplier], [shift], result, zero_points)
    for multiplier in (0, 1, 5, 2**30 - 1):
        case.rescale(x, [multiplier], [62], result, zero_points)
    case.assert_equal_everywhere()


@pytest.mark.parametrize(("source", "result", "zero_points"), CASTS)
@pytest.mark.parametrize(
    "shifts",
    [range(2, 63), range(31, 63), range(9, 63), range(32, 63), range(16, 33)],
)
def test_rescale_by_another_shift_in_every_channel(
    source: str, result: str, zero_points: tuple[int, int], shifts: range
) -> None:
    case = Case()
    x = case.input(extreme(TensorType(source, (9, len(shifts))), 2), source)
    for start in range(3):
        multipliers = [
            MULTIPLIERS[(start + channel) % 3] for channel in range(len(shifts))
        ]
        case.rescale(x, multipliers, list(shifts), result, zero_points)
    case.assert_equal_everywhere()


@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_lines_between_points_in_every_segment(dtype: str) -> None:
    case = Case()
    every = np.arange(-(2**15), 2**15, 37, dtype=np.int16).reshape(4, -1)
    low, high = DTYPE_RANGES[dtype][0], DTYPE_RANGES["i8"][1]
    points = np.random.default_rng(8).integers(low, low // 2, 513)
    points[[0, 2, 511]], points[[1, 3, 512]] = low, min(low + 32767, high)
    values = case.draft.array(points.astype(DTYPES[dtype]), dtype)
    for array in (every, every[:, 5:42], every[:, :7]):
        case.draft.apply("interpolate", case.input(array, "i16"), values)
    case.assert_equal_everywhere()


def test_what_a_cast_leaves_as_it_is_may_be_read_again() -> None:
    """Such a cast moves nothing, so its source must stay until all that read either are done."""
    case = Case()
    x = case.input(extreme(TensorType("i16", (3, 37)), 9), "i16")
    wide = case.draft.apply("cast", x, dtype="i32")
    other = case.draft.apply("add", wide, wide)
    more = case.draft.apply("sub", other, wide)
    case.draft.apply("maximum", more, wide)
    byte = case.input(extreme(TensorType("i8", (3, 37)), 10), "i8")
    case.draft.apply("cast", byte, dtype="i16")
    case.assert_equal_everywhere()


@pytest.mark.parametrize("width", [1, 7, 8, 16, 37])
def test_products_by_every_shift(width: int) -> None:
    """Operands are as large as a product that fits after the shift allows."""
    case = Case()
    type_ = TensorType("i32", (3, width))
    x, y = (case.input(extreme(type_, seed), "i32") for seed in (4, 5))
    for shift in range(64):
        bits = min(31, (30 + shift) // 2)
        most = 2**bits - 1
        least = -most - 1 if shift > 31 else -most
        operands = [
            case.draft.apply("clamp", value, min=least, max=most)
            for value in (x, y)
        ]
        case.draft.apply("mul", *operands, shift=shift)
    case.assert_equal_everywhere()


@pytest.mark.parametrize("width", [1, 7, 8, 16, 37])
def test_arithmetic_of_two_operands(width: int) -> None:
    case = Case()
    type_ = TensorType("i32", (3, width))
    x, y = (case.input(extreme(type_, seed), "i32") for seed in (6, 7))
    for name in ("maximum", "minimum"):
        case.draft.apply(name, x, y)
    halves = [
        case.draft.apply("clamp", value, min=-(2**30), max=2**30 - 1)
        for value in (x, y)
    ]
    case.draft.apply("sub", *halves)
    case.draft.apply("abs", halves[0])
    shift = case.draft.apply("clamp", y, min=0, max=31)
    for rounds in (False, True):
        case.draft.apply("shift_right", x, shift, round=rounds)
    few = case.draft.apply("clamp", x, min=-5, max=5)
    less = case.draft.apply("clamp", y, min=0, max=28)
    case.draft.apply("shift_left", few, less)
    case.assert_equal_everywhere()


def test_rescale_rounds_half_up() -> None:
    """SPEC.md: one half of 3, -3, 1, -1, 300 is 2, -1, 1, 0, 127."""
    case = Case()
    x = case.input(np.array([3, -3, 1, -1, 300]), "i32")
    case.rescale(x, [2**30], [31], "i8")
    form = validate(case.draft.finish())
    for isa in native.isas():
        found = native.Engine(form, isa=isa).run(case.sample)["output0"]
        assert found.tolist() == [2, -1, 1, 0, 127]


@pytest.mark.parametrize("first", range(1, 71, 7))
def test_every_width_of_a_row(first: int) -> None:
    for width in range(first, first + 7):
        case = Case()
        x = case.input(extreme(TensorType("i32", (3, width)), width), "i32")
        channels = np.random.default_rng(width)
        multipliers = channels.integers(2**30, 2**31, width).tolist()
        case.rescale(x, [2**30 + 1], [44], "i8", (0, 3))
        case.rescale(
            x,
            multipliers,
            channels.integers(31, 63, width).tolist(),
            "i8",
            (0, -3),
        )
        case.rescale(
            x, multipliers, channels.integers(2, 63, width).tolist(), "i16"
        )
        for dtype in ("i8", "u8", "i16"):
            narrow = case.draft.apply("cast", case.clamp(x, dtype), dtype=dtype)
            if dtype != "u8":
                case.draft.apply("cast", case.clamp(narrow, dtype), dtype="i32")
            y = case.input(extreme(TensorType(dtype, (3, width)), width), dtype)
            case.draft.apply("cast", y, dtype="i32")
        half = case.draft.apply("clamp", x, min=-(2**30), max=2**30 - 1)
        case.draft.apply("add", half, half)
        case.assert_equal_everywhere()


@pytest.mark.parametrize(
    "shape", [(2, 1500), (700, 3), (1, 1024), (1, 1025), (3, 5, 3, 64)]
)
def test_tiles_larger_and_smaller_than_the_tensor(
    shape: tuple[int, ...],
) -> None:
    case = Case()
    x = case.input(extreme(TensorType("i32", shape), 3), "i32")
    channels = np.random.default_rng(1)
    multipliers = channels.integers(2**30, 2**31, shape[-1]).tolist()
    case.rescale(
        x,
        multipliers,
        channels.integers(31, 63, shape[-1]).tolist(),
        "i8",
        (0, -3),
    )
    case.rescale(
        x, multipliers, channels.integers(2, 63, shape[-1]).tolist(), "i32"
    )
    case.draft.apply("cast", case.clamp(x, "i16"), dtype="i16")
    case.assert_equal_everywhere()


def numerators(divisor: int, width: int) -> IntArray:
    """Return integers whose quotients are close to changing, of both signs, and the ends of 32 bits."""
    rng = np.random.default_rng(divisor)
    quotients = rng.integers(0, 2**31 // divisor + 1, width)
    quotients[:2] = 1, 2**31 // divisor
    near = quotients * divisor + rng.integers(-1, 2, width)
    found = np.clip(near * rng.choice([-1, 1], width), -(2**31), 2**31 - 1)
    found[-3:] = -(2**31), 2**31 - 1, 0
    return np.asarray(found, np.int32)


@pytest.mark.parametrize("width", [3, 8, 40])
def test_quotients_by_one_divisor_of_a_row(width: int) -> None:
    powers = [2**k + more for k in range(1, 31) for more in (-1, 0, 1)]
    divisors = [*powers, 6, 641, 10**9 + 7, 2**31 - 2, 2**31 - 1]
    case = Case()
    x = case.input(np.stack([numerators(d, width) for d in divisors]), "i32")
    y = case.input(np.array(divisors, np.int32)[:, None], "i32")
    case.draft.apply("intdiv", x, y)
    case.assert_equal_everywhere()


@pytest.mark.parametrize("low", [1, -5])
def test_quotients_by_divisors_of_their_own(low: int) -> None:
    rng = np.random.default_rng(low + 10)
    divisors = rng.integers(abs(low), 9, (20, 33)) * np.sign(low)
    divisors[::2] = divisors[::2, :1]
    case = Case()
    x = case.input(rng.integers(-(2**30), 2**30, (20, 33)), "i32")
    y = case.input(divisors, "i32")
    case.draft.apply("intdiv", x, y)
    case.assert_equal_everywhere()
