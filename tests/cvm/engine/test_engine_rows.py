"""Epilogues of dense and matmul behind reshapes, and what stages read and write where it lies. Engine == reference."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program import DTYPES
from cvm.runtime import native
from tests.support.engine_cases import Case

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

NEAR, FAR = 2**20, 2**20 + 1  # of zero points that become part of a rescale
LENGTHS = [(1, 1, 1), (2, 7, 5), (3, 33, 31), (9, 40, 70), (34, 64, 96)]


def channels(case: Case, x: int, count: int, shift: int, dtype: str) -> int:
    """Return x rescaled by another multiplier and shift in each channel."""
    rng = np.random.default_rng(count + shift)
    multipliers = rng.integers(2**30, 2**31, count).tolist()
    shifts = rng.integers(shift - 3, shift + 3, count).tolist()
    return case.rescale(x, multipliers, shifts, dtype)


def dense(case: Case, rows: int, depth: int, outputs: int) -> int:
    rng = np.random.default_rng(rows)
    x = case.input(rng.integers(-128, 128, (rows, depth)), "i8")
    weights = case.draft.array(
        rng.integers(-127, 128, (outputs, depth)).astype(np.int8), "i8"
    )
    bias = case.draft.array(
        rng.integers(-9, 9, outputs).astype(np.int32), "i32"
    )
    return case.draft.apply("dense", x, weights, bias, input_zp=3)


def less_constants(case: Case, x: int, shape: tuple[int, ...], far: int) -> int:
    """Return x as i32, less another constant in each channel, up to `far` from 0."""
    row = (1,) * (len(shape) - 1) + shape[-1:]
    constants = np.random.default_rng(far).integers(-far, far + 1, row)
    constants[..., 0] = -far
    wide = case.draft.apply("cast", x, dtype="i32")
    return case.draft.apply(
        "sub", wide, case.draft.array(constants.astype(np.int32), "i32")
    )


@pytest.mark.parametrize("far", [3000, NEAR, FAR])
@pytest.mark.parametrize(("rows", "depth", "outputs"), LENGTHS)
def test_a_dense_goes_on_behind_reshapes_that_keep_its_rows(
    rows: int, depth: int, outputs: int, far: int
) -> None:
    """As an encoder's: 16 bits, a function of them, zero points of channels, and 8 bits."""
    case = Case()
    narrow = channels(
        case, dense(case, rows, depth, outputs), outputs, 36, "i16"
    )
    seen = case.draft.apply("reshape", narrow, shape=(1, rows, outputs))
    squares = np.arange(-(2**15), 2**15) ** 2 >> 16
    table = case.draft.array(squares.astype(np.int16), "i16")
    curved = case.draft.apply("table", seen, table)
    flat = case.draft.apply("reshape", curved, shape=(rows, outputs))
    less = less_constants(case, flat, (rows, outputs), far)
    channels(case, less, outputs, 38, "i8")
    case.assert_equal_everywhere()


@pytest.mark.parametrize("bits", ["i8", "i16"])
@pytest.mark.parametrize(("rows", "depth", "outputs"), LENGTHS)
def test_a_dense_adds_a_tensor_of_another_shape_with_the_same_rows(
    rows: int, depth: int, outputs: int, bits: str
) -> None:
    case = Case()
    narrow = channels(
        case, dense(case, rows, depth, outputs), outputs, 36, bits
    )
    shape = (1, rows, 1, outputs)
    seen = case.draft.apply("reshape", narrow, shape=shape)
    rng = np.random.default_rng(5)
    other = case.input(rng.integers(-(2**15), 2**15, shape), "i16")
    both = case.draft.apply(
        "add",
        case.rescale(seen, [2**30], [28], "i32"),
        case.rescale(other, [2**30 + 5], [29], "i32"),
    )
    case.rescale(case.rescale(both, [2**30], [33], "i16"), [2**30], [30], "i32")
    case.assert_equal_everywhere()


def test_a_first_stage_that_others_read_as_a_tile_too() -> None:
    case = Case()
    narrow = channels(case, dense(case, 5, 9, 40), 40, 36, "i16")
    wide = case.draft.apply("cast", narrow, dtype="i32")
    twice = case.draft.apply(
        "add", wide, case.rescale(narrow, [2**30], [31], "i32")
    )
    case.rescale(twice, [2**30], [33], "i8", (0, 7))
    case.assert_equal_everywhere()


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32"])
@pytest.mark.parametrize("shape", [(40, 7), (5, 3, 33), (31, 129), (40, 33, 1)])
@pytest.mark.parametrize("far", [3000, NEAR, FAR])
def test_zero_points_of_channels(
    shape: tuple[int, ...], far: int, dtype: str
) -> None:
    case = Case()
    rng = np.random.default_rng(9)
    x = case.input(rng.integers(-(2**15), 2**15, shape), "i16")
    less = less_constants(case, x, shape, far)
    if far == NEAR:
        case.rescale(less, [2**30 + 1], [37], dtype)
    else:
        channels(case, less, shape[-1], 37, dtype)
    case.assert_equal_everywhere()


@pytest.mark.parametrize("values", ["i8", "i16", "i32"])
@pytest.mark.parametrize("source", ["i8", "u8", "i16"])
def test_tables_of_any_dtype_to_any(source: str, values: str) -> None:
    case = Case()
    low, count = (-(2**15), 2**16) if source == "i16" else (0, 256)
    low = -128 if source == "i8" else low
    rng = np.random.default_rng(3)
    x = case.input(rng.integers(low, low + count, (9, 37)), source)
    bits = {"i8": 7, "i16": 15, "i32": 31}[values]
    entries = rng.integers(-(2**bits), 2**bits, count).astype(DTYPES[values])
    y = case.draft.apply("table", x, case.draft.array(entries, values))
    case.rescale(y, [2**30 + 9], [33], "i8", (0, 0))
    case.assert_equal_everywhere()


@pytest.mark.parametrize("a_zp", [-128, 0, 77])
@pytest.mark.parametrize("b_zp", [0, 1])
@pytest.mark.parametrize(
    ("depth", "columns"), [(1, 3), (5, 32), (32, 40), (39, 140), (1030, 33)]
)
def test_matmul_by_signed_bytes(
    depth: int, columns: int, a_zp: int, b_zp: int
) -> None:
    case = Case()
    rng, rows = np.random.default_rng(depth), 35 if columns < 60 else 11
    a = case.input(rng.integers(-128, 128, (2, rows, depth)), "i8")
    b = case.input(rng.integers(-128, 128, (2, depth, columns)), "i8")
    sums = case.draft.apply("matmul", a, b, a_zp=a_zp, b_zp=b_zp)
    shape = (1, 2, rows, columns)
    seen = case.draft.apply("reshape", sums, shape=shape)
    mask = case.input(rng.integers(-99, 99, (1, 1, 1, columns)), "i32")
    case.draft.apply("add", case.rescale(seen, [2**30], [33], "i32"), mask)
    case.assert_equal_everywhere()


PAIRS: list[tuple[str, dict[str, int | bool]]] = [
    ("add", {}),
    ("sub", {}),
    ("mul", {"shift": 0}),
    ("mul", {"shift": 7}),
    ("mul", {"shift": 40}),
    ("intdiv", {}),
    ("shift_left", {}),
    ("shift_right", {"round": False}),
    ("shift_right", {"round": True}),
    ("maximum", {}),
]


@pytest.mark.parametrize(("name", "attributes"), PAIRS)
@pytest.mark.parametrize("second", [(9, 37), (9, 1), (1, 37), (1, 1)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_second_operand_of_rows_of_columns_or_of_one(
    name: str,
    attributes: dict[str, int | bool],
    second: tuple[int, int],
    turned: bool,
) -> None:
    """Turned: what is repeated comes first, and a tensor without a sign is shifted by another."""
    case = Case()
    rng = np.random.default_rng(4)
    x = case.input(rng.integers(1, 15, (9, 37)), "i32")
    y = case.input(rng.integers(1, 15, second), "i32")
    z = case.draft.apply(name, *((y, x) if turned else (x, y)), **attributes)
    case.draft.apply("add", case.rescale(z, [2**30], [30], "i32"), y)
    case.assert_equal_everywhere()


def test_one_operand_is_read_as_a_tile_as_rows_and_as_a_second() -> None:
    case = Case()
    rng = np.random.default_rng(4)
    x = case.input(rng.integers(-99, 99, (40, 50)), "i32")
    for shape in [(1, 50), (40, 1)]:
        y = case.input(rng.integers(-99, 99, shape), "i32")
        both = case.draft.apply("add", x, y)
        scaled = case.draft.apply(
            "sub", both, case.rescale(y, [2**30], [29], "i32")
        )
        case.draft.apply("maximum", scaled, y)
    case.assert_equal_everywhere()
