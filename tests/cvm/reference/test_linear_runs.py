"""What one small vector cannot show of the linear family: blocks, wide accumulators, both ways to convolve."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.reference import convolution
from cvm.reference.linear import conv2d, dense, matmul
from cvm.reference.window import overlap


def image(shape: tuple[int, ...], dtype: type = np.int8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(7).integers(
        limits.min, limits.max, shape, dtype, endpoint=True
    )


@pytest.mark.parametrize("block_bytes", [1, 1000, 20000])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_size_of_a_block_never_changes_the_result(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int, groups: int
) -> None:
    x = image((2, 9, 11, 4))
    w = image((4, 3, 3, 4 // groups))
    b = np.arange(4, dtype=np.int32)
    attributes = {
        "pad": (1, 1, 2, 2),
        "stride": (3, 2),
        "dilation": (2, 1),
        "groups": groups,
        "input_zp": 3,
    }
    whole = conv2d(x, w, b, **attributes)
    monkeypatch.setattr(convolution, "BLOCK_BYTES", block_bytes)
    assert conv2d(x, w, b, **attributes).tolist() == whole.tolist()


def test_one_channel_a_group_equals_a_full_convolution_with_zeros_between() -> (
    None
):
    x, w, b = image((1, 6, 6, 3)), image((6, 3, 3, 1)), np.zeros(6, np.int32)
    full = np.zeros((6, 3, 3, 3), np.int8)
    for output in range(6):
        full[output, :, :, output // 2] = w[output, :, :, 0]
    attributes = {
        "pad": (1, 1, 1, 1),
        "stride": (1, 1),
        "dilation": (1, 1),
        "input_zp": -4,
    }
    assert (
        conv2d(x, w, b, groups=3, **attributes).tolist()
        == conv2d(x, full, b, groups=1, **attributes).tolist()
    )


def test_partial_sums_beyond_32_bits_do_not_hurt() -> None:
    x = np.full(
        (1, 1040), 32767, np.int16
    )  # 520 * 32767 * 127 alone is 2163932680
    w = np.array([[127] * 520 + [-127] * 520], np.int8)
    assert dense(x, w, np.array([5], np.int32), input_zp=0).tolist() == [[5]]


def test_sums_beyond_32_bits_stay_exact() -> None:
    a = np.full((1, 1, 3), -32768, np.int16)
    assert matmul(a, a.transpose(0, 2, 1), a_zp=0, b_zp=0).tolist() == [
        [[3221225472]]
    ]


def test_the_bias_alone_can_demand_the_wide_accumulator() -> None:
    found = dense(
        np.array([[1]], np.int8),
        np.array([[1]], np.int8),
        np.array([2**31 - 1], np.int32),
        input_zp=0,
    )
    assert found.tolist() == [[2147483648]]


@pytest.mark.parametrize(
    ("start", "step", "size", "count", "which", "where"),
    [
        (0, 1, 3, 3, [0, 1, 2], [0, 1, 2]),
        (-3, 2, 4, 4, [2, 3], [1, 3]),  # places -3, -1, 1, 3
        (1, 3, 5, 9, [0, 1], [1, 4]),
        (-4, 1, 3, 4, [], []),
        (3, 1, 3, 4, [], []),
        (-1, 5, 3, 2, [], []),  # places -1, 4: one on each side
    ],
)
def test_overlap(
    start: int,
    step: int,
    size: int,
    count: int,
    which: list[int],
    where: list[int],
) -> None:
    to_places, from_places = overlap(start, step, size, count)
    assert (list(range(count)[to_places]), list(range(size)[from_places])) == (
        which,
        where,
    )
