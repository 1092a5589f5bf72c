"""Reductions in the engine: the reference's bytes on every instruction set, along every axis."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
import pytest

from cvm.program import Attribute, IntArray, TensorType, dtype_name
from cvm.runtime import native
from tests.support.engine_steps import (
    ARENA,
    CONSTANT,
    INPUT,
    OUTPUT,
    At,
    extreme,
    reference,
    run_step,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

Attributes = Mapping[str, Attribute]
INSIDE = [
    (ARENA, ARENA),
    (CONSTANT, ARENA),
]  # i8 inputs and outputs are copied first
EDGES = [(INPUT, OUTPUT), (INPUT, ARENA)]
ORDERED = ("i8", "i16", "i32")
SHAPES = [
    (1,),
    (7,),
    (300,),
    (3, 1),
    (2, 65),
    (2, 3, 5),
    (3, 4, 130),
    (5, 1500),
    (20, 2, 1030),
    (2, 1, 3, 2, 1, 4),
]
THREADS = cycle([1, 2, 3, 4])


def assert_equal_everywhere(
    name: str,
    x: IntArray,
    attributes: Attributes,
    expected: IntArray | None = None,
) -> None:
    expected = (
        reference(name, [x], attributes) if expected is None else expected
    )
    type_ = TensorType(dtype_name(expected), expected.shape)
    for isa in native.isas():
        for x_at, y_at in INSIDE if x.dtype == np.int8 else INSIDE + EDGES:
            threads = next(THREADS)
            found = run_step(
                name,
                [x],
                attributes,
                type_,
                at=[x_at],
                result_at=y_at,
                isa=isa,
                threads=threads,
            )
            np.testing.assert_array_equal(
                found,
                expected,
                f"{x_at} to {y_at} on {isa} with {threads} threads",
            )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "argmax"])
def test_extremes_along_every_axis(name: str, shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        for dtype in ORDERED:
            assert_equal_everywhere(
                name, extreme(TensorType(dtype, shape), axis), {"axis": axis}
            )


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_along_every_axis(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        most = (2**31 - 1) // shape[axis]
        x = extreme(TensorType("i32", shape), axis, low=-most, high=most)
        assert_equal_everywhere("reduce_sum", x, {"axis": axis})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("descending", [False, True])
def test_every_row_is_sorted(shape: tuple[int, ...], descending: bool) -> None:
    for dtype in ORDERED:
        assert_equal_everywhere(
            "argsort",
            extreme(TensorType(dtype, shape), 1),
            {"descending": descending},
        )


def test_the_lowest_of_equal_indices_is_the_greatest() -> None:
    """Column 0 holds 5 twice, column 1 only equals, column 2 its greatest at the end."""
    x = np.array([[1, -4, -9], [5, -4, -128], [5, -4, 3]], np.int8)
    assert_equal_everywhere(
        "argmax", x, {"axis": 0}, np.array([1, 0, 2], np.int32)
    )
    assert_equal_everywhere(
        "argmax", x, {"axis": 1}, np.array([0, 0, 0], np.int32)
    )


@pytest.mark.parametrize(
    ("descending", "expected"),
    [(False, [3, 0, 2, 1, 4, 5]), (True, [1, 4, 5, 0, 2, 3])],
)
def test_equals_keep_their_order_in_both_directions(
    descending: bool, expected: list[int]
) -> None:
    x = np.array([-1, 7, -1, -128, 7, 7], np.int8)
    assert_equal_everywhere(
        "argsort", x, {"descending": descending}, np.array(expected, np.int32)
    )


def test_sorting_many_equals_is_stable() -> None:
    x = extreme(TensorType("i8", (2, 5000)), 1, low=-2, high=2)
    assert_equal_everywhere("argsort", x, {"descending": True})


def test_a_sum_that_no_proof_allows_wraps() -> None:
    x = np.full((3, 2), 2**31 - 1, np.int32)
    expected = np.full((1, 2), 2**31 - 3, np.int32)  # 3 * (2^31 - 1) - 2^32
    assert_equal_everywhere("reduce_sum", x, {"axis": 0}, expected)
    assert_equal_everywhere(
        "reduce_sum", x, {"axis": 1}, np.full((3, 1), -2, np.int32)
    )


REFUSED: list[tuple[str, str, dict[str, Attribute], TensorType, str]] = [
    (
        "reduce_max",
        "i8",
        {"axis": 2},
        TensorType("i8", (2, 1)),
        "axis is missing or not one of x",
    ),
    (
        "reduce_max",
        "i8",
        {"axis": -1},
        TensorType("i8", (2, 1)),
        "axis is missing or not one of x",
    ),
    (
        "reduce_min",
        "i8",
        {},
        TensorType("i8", (2, 1)),
        "axis is missing or not one of x",
    ),
    (
        "reduce_max",
        "i8",
        {"axis": 1},
        TensorType("i8", (1, 3)),
        "not one element per row",
    ),
    (
        "reduce_max",
        "i8",
        {"axis": 1},
        TensorType("i16", (2, 1)),
        "x or the result has a wrong dtype",
    ),
    (
        "reduce_min",
        "u8",
        {"axis": 1},
        TensorType("u8", (2, 1)),
        "x or the result has a wrong dtype",
    ),
    (
        "reduce_sum",
        "i16",
        {"axis": 1},
        TensorType("i16", (2, 1)),
        "x or the result is not i32",
    ),
    (
        "argmax",
        "i16",
        {"axis": 1},
        TensorType("i16", (2,)),
        "x or the result has a wrong dtype",
    ),
    (
        "argsort",
        "i16",
        {"descending": 0},
        TensorType("i32", (3, 2)),
        "the result is not i32 of x's shape",
    ),
    ("argsort", "i16", {}, TensorType("i32", (2, 3)), "descending is missing"),
]


@pytest.mark.parametrize(
    ("name", "dtype", "attributes", "result", "sentence"), REFUSED
)
def test_a_step_that_no_program_has_is_refused(
    name: str,
    dtype: str,
    attributes: dict[str, Attribute],
    result: TensorType,
    sentence: str,
) -> None:
    x = extreme(TensorType(dtype, (2, 3)), 1)
    with pytest.raises(ValueError, match=sentence):
        run_step(name, [x], attributes, result, at=[ARENA], result_at=ARENA)


def test_operands_with_gaps_between_rows_are_refused() -> None:
    x, gaps = np.zeros((2, 3), np.int32), At(ARENA.room, 4)
    for x_at, y_at in [(gaps, ARENA), (ARENA, gaps)]:
        with pytest.raises(ValueError, match="x and the result are dense"):
            run_step(
                "reduce_sum",
                [x],
                {"axis": 0},
                TensorType("i32", (1, 3)),
                at=[x_at],
                result_at=y_at,
            )


def test_plain_i8_inputs_are_refused() -> None:
    """As bytes, -1 would be greater than 1."""
    x = np.zeros((2, 3), np.int8)
    with pytest.raises(ValueError, match="x or the result has a wrong dtype"):
        run_step(
            "argmax",
            [x],
            {"axis": 0},
            TensorType("i32", (3,)),
            at=[INPUT],
            result_at=OUTPUT,
        )
