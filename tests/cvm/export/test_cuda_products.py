"""Sums of products on tensor cores: at both ends of every type, where the bytes of an integer are multiplied apart."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from cvm.export import targets
from cvm.program import DTYPE_RANGES, DTYPES, IntArray
from tests.support.c_programs import SANITIZERS, needs
from tests.support.cuda_programs import CudaProgram
from tests.support.engine_cases import Case

RNG = np.random.default_rng(11)


def integers(shape: tuple[int, ...], dtype: str) -> IntArray:
    """Any integers of a type, among them its ends."""
    low, high = DTYPE_RANGES[dtype]
    array = RNG.integers(low, high + 1, shape)
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


PROGRAMS = {convolutions_of_16_bits: {"tile_sums": 6}}


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


@needs("g++")
@pytest.mark.parametrize("fill", PROGRAMS, ids=lambda fill: fill.__name__)
def test_sums_are_right_at_both_ends_of_every_type(tmp_path, fill):
    case = Case()
    fill(case)
    form = case.proven()
    exported = CudaProgram.write(form, tmp_path / "cuda")
    source = targets.export(form, "cuda", "p").files["p.cu"]
    assert Counter(re.findall(r"(\w+_sums?)<", source)) == PROGRAMS[fill]
    binary = exported.build("g++", *SANITIZERS)
    assert exported.differing(binary, samples=samples_of(case)) == []
