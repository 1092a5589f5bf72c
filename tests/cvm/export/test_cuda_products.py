"""Sums of products on tensor cores: at both ends of every type, where the bytes of an integer are multiplied apart."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from cvm.export import targets
from cvm.program import DTYPE_RANGES, DTYPES, IntArray
from tests.cvm.export.test_cuda import COMPILERS
from tests.support.cuda_programs import CudaProgram
from tests.support.engine_cases import Case


def integers(shape: tuple[int, ...], dtype: str) -> IntArray:
    """Any integers of a type, among them its ends: the same for each shape."""
    low, high = DTYPE_RANGES[dtype]
    array = np.random.default_rng(shape).integers(low, high + 1, shape)
    array.reshape(-1)[[0, -1]] = low, high
    return array.astype(DTYPES[dtype])


def weights(shape: tuple[int, ...]) -> IntArray:
    """Any bytes, but the least of all for the first output and the greatest for the second."""
    array = integers(shape, "i8")
    array[0], array[1] = DTYPE_RANGES["i8"]
    return array


def convolution(
    case: Case,
    image: tuple[int, ...],
    outputs: int,
    groups: int = 1,
    dtype: str = "i16",
    zero_point: int = 0,
) -> None:
    """Windows of 3 x 3 that reach over the top and both sides."""
    case.draft.apply(
        "conv2d",
        case.input(integers(image, dtype), dtype),
        case.draft.array(weights((outputs, 3, 3, image[3] // groups)), "i8"),
        case.draft.array(integers((outputs,), "i16").astype("i4"), "i32"),
        pad=(1, 0, 1, 1),
        stride=(1, 1),
        dilation=(1, 1),
        groups=groups,
        input_zp=zero_point,
    )


def dense(case: Case, rows: int, depth: int, outputs: int) -> None:
    case.draft.apply(
        "dense",
        case.input(integers((rows, depth), "i16"), "i16"),
        case.draft.array(weights((outputs, depth)), "i8"),
        case.draft.array(integers((outputs,), "i16").astype("i4"), "i32"),
        input_zp=0,
    )


def convolutions_of_16_bits(case: Case) -> None:
    """Pieces of 16, 4 and 1 channels; outputs in fours and others."""
    convolution(case, (2, 7, 6, 16), 8)
    convolution(case, (1, 12, 12, 20), 14)
    convolution(case, (1, 4, 5, 3), 70)
    dense(case, 1, 500, 130)
    dense(case, 19, 77, 9)
    dense(case, 2, 64, 2)


def matmul(
    case: Case,
    a: IntArray,
    b: IntArray,
    zero_points: tuple[int, int] = (0, 0),
    constant: str = "",
) -> None:
    """A product of two matrices, one of which may be a constant."""
    operands = []
    for name, array in (("a", a), ("b", b)):
        dtype = str(array.dtype).replace("int", "i")
        add = case.draft.array if name == constant else case.input
        operands.append(add(array, dtype))
    a_zp, b_zp = zero_points
    case.draft.apply("matmul", *operands, a_zp=a_zp, b_zp=b_zp)


def matrices_of_8_bits(case: Case) -> None:
    """Zero points at both ends; every tail of rows, depth and columns."""
    case.draft.most_elements = 8192
    for count, rows, depth, columns, zero_points in (
        (2, 5, 77, 9, (0, 0)),
        (4, 40, 64, 44, (-128, 127)),
        (1, 17, 130, 32, (127, -128)),
        (4, 33, 20, 8, (-128, -128)),
        (2, 1, 3, 1, (127, 127)),
        (1, 129, 65, 35, (0, 5)),
        (1, 8, 200, 66, (-7, 0)),
    ):
        a = integers((count, rows, depth), "i8")
        b = integers((count, depth, columns), "i8")
        matmul(case, a, b, zero_points)


def matrices_of_16_bits(case: Case) -> None:
    """Products that 32 bits hold: both factors have both bytes, read one by one or in sixteens.

    A constant that fits 8 bits is stored in them.
    """
    matmul(case, integers((1, 3, 1), "i16"), integers((1, 1, 5), "i16"))
    wide, narrow = integers((2, 21, 77), "i16"), integers((2, 77, 36), "i16")
    matmul(case, wide, narrow // 40)
    matmul(case, wide // 40, narrow)
    matmul(case, wide // 7, narrow[:, :, :33] // 7)
    byte = integers((2, 77, 7), "i8").astype(np.int16)
    matmul(case, wide, byte, constant="b")
    matmul(case, byte.transpose(0, 2, 1), narrow, constant="a")
    sixteens = integers((2, 21, 80), "i16")
    matmul(case, sixteens, integers((2, 80, 36), "i16") // 41)


def groups(case: Case) -> None:
    """Outputs of a group in one tile and in several, and images of both types."""
    case.draft.most_elements = 16384
    convolution(case, (1, 12, 12, 32), 16, 2, "i8", -128)
    convolution(case, (2, 4, 3, 16), 32, 4, "i8", 127)
    convolution(case, (1, 3, 5, 10), 136, 2, "i8", 5)
    convolution(case, (1, 4, 4, 36), 40, 2, "i16")
    convolution(case, (1, 4, 5, 32), 64, 2, "i16")


def groups_of_their_own(case: Case) -> None:
    """Of few outputs, of little depth, and a channel for each output: these four at once, or not."""
    convolution(case, (1, 4, 5, 12), 6, 3, "i8", -128)
    convolution(case, (1, 4, 5, 6), 8, 2, "i16")
    convolution(case, (2, 4, 5, 8), 8, 8, "i8", 127)
    convolution(case, (2, 4, 5, 12), 12, 12, "i16")
    convolution(case, (2, 4, 5, 6), 6, 6, "i16")


PROGRAMS = {
    convolutions_of_16_bits: {"tile_sums": 6},
    matrices_of_8_bits: {"matrix_sums": 7},
    matrices_of_16_bits: {"matrix_sums": 6},
    groups: {"tile_sums": 5},
    groups_of_their_own: {"window_sum": 3, "channel_sums": 2},
}


def samples_of(case: Case) -> list[dict[str, IntArray]]:
    """That of the case, and others all of whose integers are the least or the greatest, or both in turn."""
    samples = [case.sample]
    for turn in ((0,), (1,), (0, 1)):
        sample = {}
        for name, array in case.sample.items():
            ends = np.array([array.min(), array.max()], array.dtype)
            sample[name] = np.resize(ends[list(turn)], array.shape)
        samples.append(sample)
    return samples


@pytest.mark.parametrize(("compiler", "flags"), COMPILERS)
@pytest.mark.parametrize("fill", PROGRAMS, ids=lambda fill: fill.__name__)
def test_sums_are_right_at_both_ends_of_every_type(
    tmp_path, fill, compiler, flags
):
    case = Case()
    fill(case)
    form = case.proven()
    exported = CudaProgram.write(form, tmp_path / "cuda")
    source = targets.export(form, "cuda", "p").files["p.cu"]
    assert Counter(re.findall(r"(\w+_sums?)<", source)) == PROGRAMS[fill]
    binary = exported.build(compiler, *flags)
    assert exported.differing(binary, samples=samples_of(case)) == []
