"""What the compiled code and numpy count, against a plain second reading that goes from number to number."""

import math
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from mrt import compiled
from mrt.calibrate import counting

DTYPES = [np.float16, np.float32, np.float64]
LENGTHS = [0, 1, 3, 7, 8, 9, 49, 130, 511, 512, 513, 1100, 1536, 2051]
BINS = 192
HIGHEST = 16 * 127 + 15  # the bin of the largest number below 2
needs_extension = pytest.mark.skipif(
    compiled.extension() is None, reason="the extension is not built here"
)


@pytest.fixture(
    params=[pytest.param("extension", marks=needs_extension), "numpy"]
)
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who counts."""
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "extension", lambda: None)
    return str(request.param)


def numbers(
    shape: tuple[int, ...], dtype: type, seed: int = 0, *, below: float = 2.0
) -> np.ndarray:
    """Of many sizes, below a bound, some of them zeros of both signs and some denormal."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-below, below, shape) * 2.0 ** rng.integers(
        -12, 1, shape
    )
    tiny = np.finfo(dtype).smallest_subnormal
    special = np.array([0.0, -0.0, 3 * tiny, -tiny, below / 2, -below / 2])
    values = np.where(
        rng.random(shape) < 0.3, rng.choice(special, shape), values
    )
    return values.astype(dtype)


def rows_in_many_places(
    count: int, length: int, dtype: type
) -> Iterator[np.ndarray]:
    """The same rows as they may lie in memory."""
    rows = numbers((count, length), dtype, length)
    yield rows
    yield np.asfortranarray(rows)
    wide = np.zeros((2 * count, 3 * length), dtype)
    wide[::2, ::3] = rows
    yield wide[::2, ::3]
    shifted = np.zeros(rows.nbytes + 1, np.uint8)
    shifted[1:] = np.frombuffer(rows.tobytes(), np.uint8)
    yield shifted[1:].view(dtype).reshape(rows.shape)


def in_lanes(row: list[float]) -> float:
    lanes = [0.0] * 8
    for place, number in enumerate(row):
        lanes[place % 8] += number
    total = lanes[0]
    for lane in lanes[1:]:
        total += lane
    return total


def bits_of(values: np.ndarray) -> bytes:
    return values.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_ends_of_rows(by: str, length: int, dtype: type) -> None:
    for rows in rows_in_many_places(5, length, dtype):
        low, high = counting.extremes(rows)
        expected = [
            [min(row, default=math.inf), max(row, default=-math.inf)]
            for row in rows.tolist()
        ]
        assert low.dtype == high.dtype == dtype
        assert [
            list(pair) for pair in zip(low.tolist(), high.tolist(), strict=True)
        ] == expected
        assert (
            not np.signbit(low[low == 0]).any()
            and not np.signbit(high[high == 0]).any()
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", range(13))
def test_a_nan_anywhere_is_both_ends_and_infinities_are_ends(
    by: str, bad: int, dtype: type
) -> None:
    rows = numbers((4, 13), dtype)
    rows[0, bad], rows[1, bad], rows[2, bad] = np.nan, np.inf, -np.inf
    low, high = counting.extremes(rows)
    assert (
        np.isnan(low).tolist()
        == np.isnan(high).tolist()
        == [True, False, False, False]
    )
    assert (high[1], low[2]) == (np.inf, -np.inf)
    assert (low[1], high[2]) == (
        np.delete(rows[1], bad).min(),
        np.delete(rows[2], bad).max(),
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_])
def test_ends_of_integers(by: str, dtype: type) -> None:
    rows = np.array([[1, 0, 1], [0, 0, 0]]).astype(dtype)
    assert [item.tolist() for item in counting.extremes(rows)] == [
        [0, 0],
        [1, 0],
    ]


def test_ends_of_no_rows(by: str) -> None:
    assert [
        end.tolist() for end in counting.extremes(np.zeros((0, 4), np.float32))
    ] == [
        [],
        [],
    ]


@pytest.mark.parametrize("block", [1, 20, 2**16])
def test_ends_however_many_numbers_are_gone_through_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_BLOCK", block)
    rows = numbers((9, 7), np.float64)
    low, high = counting.extremes(rows)
    assert (low.tolist(), high.tolist()) == (
        rows.min(axis=1).tolist(),
        rows.max(axis=1).tolist(),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_and_sums_of_squares_are_added_in_lanes(
    by: str, length: int, dtype: type
) -> None:
    for rows in rows_in_many_places(5, length, dtype):
        sums, squares = counting.moments(rows)
        assert bits_of(sums) == bits_of(
            np.array([in_lanes(row) for row in rows.tolist()])
        )
        assert bits_of(squares) == bits_of(
            np.array([in_lanes([x * x for x in row]) for row in rows.tolist()])
        )


def test_the_order_of_a_sum_shows(by: str) -> None:
    """2**60 + 1 - 2**60 is 0, whether in one lane or from lane to lane; with the large ones in one lane, the 1 is kept."""
    rows = np.zeros((3, 17), np.float32)
    rows[0, [0, 8, 16]] = 2.0**60, 1, -(2.0**60)
    rows[1, [0, 1, 2]] = 2.0**60, 1, -(2.0**60)
    rows[2, [0, 1, 8]] = 2.0**60, 1, -(2.0**60)
    assert counting.moments(rows)[0].tolist() == [0.0, 0.0, 1.0]


def test_the_sum_of_negative_zeros_is_zero(by: str) -> None:
    for length in (1, 8, 9):
        assert not np.signbit(
            counting.moments(np.full((2, length), -0.0, np.float32))[0]
        ).any()


def bin_counts(values: list[float], exponent: int, size: int) -> list[int]:
    counts = [0] * size
    for value in values:
        counts[math.trunc(math.ldexp(value, -exponent)) + size // 2] += 1
    return counts


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-10, -6, 0, 5])
@pytest.mark.parametrize(
    "shape",
    [
        (0,),
        (1,),
        (700,),
        (3, 4),
        (2, 3, 5),
        (1, 2, 3, 4, 5),
        (9001,),
        (1, 6, 50, 60),
    ],
)
def test_numbers_fall_toward_zero_into_bins(
    by: str, shape: tuple[int, ...], exponent: int, dtype: type
) -> None:
    values = numbers(shape, dtype)
    counts = np.ones(4097, np.int64)
    for seen in (values, values[..., ::-1], values[..., ::2]):
        expected = [
            before + more
            for before, more in zip(
                counts.tolist(),
                bin_counts(seen.reshape(-1).tolist(), exponent, counts.size),
                strict=True,
            )
        ]
        counting.count_bins(counts, seen, exponent)
        assert counts.tolist() == expected


@pytest.mark.parametrize(
    "exponent", [-140, -135, -128, -127, -120, -119, 0, 116]
)
def test_bins_of_every_width_a_float32_needs(by: str, exponent: int) -> None:
    values = np.ldexp(
        numbers((3000,), np.float64, below=4096.0), exponent
    ).astype(np.float32)
    counts = np.zeros(8191, np.int64)
    counting.count_bins(counts, values, exponent)
    assert counts.tolist() == bin_counts(values.tolist(), exponent, counts.size)


def magnitude_counts(
    rows: list[list[float]], highest: int
) -> list[list[list[int]]]:
    """By the bits of each number: exponent and four bits of the fraction."""
    counts = [[[0] * BINS, [0] * BINS] for _ in rows]
    for of_row, row in zip(counts, rows, strict=True):
        for number in row:
            bits = struct.unpack(
                "<I", struct.pack("<f", abs(np.float32(number)))
            )[0]
            of_row[1 if number < 0 and bits else 0][
                max(bits // 2**19 - highest + BINS - 1, 0)
            ] += 1
    return counts


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_magnitudes_are_counted_by_sign_and_leading_bits(
    by: str, length: int, dtype: type
) -> None:
    for rows in rows_in_many_places(3, length, dtype):
        counts = np.zeros((3, 2, BINS), np.int64)
        counting.count_magnitudes(counts, rows, HIGHEST)
        assert counts.tolist() == magnitude_counts(rows.tolist(), HIGHEST)
        counting.count_magnitudes(counts, rows[::-1], HIGHEST)
        assert counts.sum(axis=(1, 2)).tolist() == [2 * length] * 3
        assert counts.tolist() == (counts[::-1]).tolist()


def test_magnitudes_are_counted_alike_in_narrow_and_in_wide_tables(
    by: str,
) -> None:
    rows = numbers((3, 900), np.float32)
    narrow = np.ones((3, 2, BINS), np.int32)
    wide = np.ones((3, 2, BINS), np.int64)
    for counts in (narrow, wide):
        counting.count_magnitudes(counts, rows, HIGHEST)
    assert (
        (narrow - 1).tolist()
        == (wide - 1).tolist()
        == magnitude_counts(rows.tolist(), HIGHEST)
    )


@pytest.mark.parametrize("highest", [BINS - 1, HIGHEST + 5, 16 * 254 + 15])
def test_magnitudes_below_the_first_bin_are_counted_in_it(
    by: str, highest: int
) -> None:
    rows = numbers(
        (2, 700),
        np.float32,
        below=float(np.float32(2.0**-126)) if highest == BINS - 1 else 2.0,
    )
    counts = np.zeros((2, 2, BINS), np.int64)
    counting.count_magnitudes(counts, rows, highest)
    assert counts.tolist() == magnitude_counts(rows.tolist(), highest)


def test_edges_of_magnitude_are_those_of_the_bins() -> None:
    edges = counting.magnitude_edges(16 * 127, 16 * 127 + 17)
    assert edges.tolist() == [1 + step / 16 for step in range(16)] + [2.0]
    assert counting.magnitude_bins(
        edges.astype(np.float32).view(np.int32)
    ).tolist() == list(range(2032, 2049))


@needs_extension
def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    native, rows = compiled.extension(), np.zeros((3, 4), np.float32)
    calls = [
        lambda: native.extremes(rows, *np.zeros((2, 2), np.float32)),
        lambda: native.moments(rows, *np.zeros((2, 4))),
        lambda: native.count_bins(np.zeros(4, np.int64), rows[0], 0),
        lambda: native.count_magnitudes(
            np.zeros((2, 2, BINS), np.int64), rows, HIGHEST
        ),
        lambda: native.count_magnitudes(
            np.zeros((3, 1, BINS), np.int64), rows, HIGHEST
        ),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match="arrays that do not fit each other"
        ):
            call()
    with pytest.raises(TypeError):
        native.count_bins(np.zeros(5, np.int32), rows[0], 0)


@needs_extension
def test_the_extension_writes_nothing_beyond_its_tables_whatever_the_numbers() -> (
    None
):
    rows = np.array([[np.nan, np.inf, -np.inf, 3e38, -3e38]], np.float32)
    room = np.zeros(3 * BINS * 2, np.int64)
    compiled.extension().count_magnitudes(
        room[2 * BINS : 4 * BINS].reshape(1, 2, BINS), rows, HIGHEST
    )
    compiled.extension().count_bins(room[2 * BINS : 4 * BINS - 1], rows[0], 0)
    assert room.sum() == room[2 * BINS : 4 * BINS].sum() == 10


@needs_extension
def test_other_threads_run_while_the_extension_counts() -> None:
    """With the lock held, the main thread would wake up only after the other's last instruction."""
    values = np.zeros((1, 2**23), np.float32)
    counts = np.zeros(8191, np.int64)
    interval = sys.getswitchinterval()

    def woken_in_between() -> bool:
        started, done = threading.Event(), []

        def count() -> None:
            started.set()
            counting.count_bins(counts, values, 0)
            done.append(True)

        thread = threading.Thread(target=count)
        thread.start()
        started.wait()
        early = not done
        thread.join()
        return early

    sys.setswitchinterval(30)
    try:
        assert any(woken_in_between() for _ in range(20))
    finally:
        sys.setswitchinterval(interval)


PROGRAM = """
import hashlib, numpy as np
from mrt import compiled
from mrt.calibrate import counting
if {plain}:
    compiled.extension = lambda: None
rows = np.random.default_rng(5).normal(size=(7, 1003)).astype(np.float32)
rows *= rows * rows * rows * rows
found = [*counting.extremes(rows), *counting.moments(rows), *counting.moments(rows.astype(np.float64))]
print(hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest())
"""  # of numbers far apart in size, so that the order of a sum shows


@pytest.mark.parametrize("plain", [False, True])
def test_sums_have_the_same_bits_whatever_instructions_numpy_may_use(
    plain: bool,
) -> None:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    present = " ".join(
        name for name in __cpu_dispatch__ if __cpu_features__[name]
    )
    digests = set()
    for disabled in ("", present):
        environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": disabled}
        command = [sys.executable, "-c", PROGRAM.format(plain=plain)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1
