"""Pooling in the engine: the reference's bytes on every instruction set, wherever the windows and the result lie."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
import pytest

from cvm.plan.steps import Room
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
PITCHED = At(Room.ARENA, 5)
INSIDE = [
    (ARENA, ARENA),
    (CONSTANT, PITCHED),
    (PITCHED, ARENA),
]  # i8 inputs and outputs are copied first
EDGES = [(INPUT, OUTPUT), (INPUT, PITCHED), (CONSTANT, OUTPUT)]
THREADS = cycle([1, 2, 3, 4])

# Shape of x, kernel, stride, pad.
WINDOWS: dict[
    str,
    tuple[
        tuple[int, ...],
        tuple[int, int],
        tuple[int, int],
        tuple[int, int, int, int],
    ],
] = {
    "one place": ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    "halves": ((2, 6, 4, 24), (2, 2), (2, 2), (0, 0, 0, 0)),
    "padded at the front": ((1, 8, 8, 64), (3, 3), (2, 2), (1, 0, 1, 0)),
    "padded all around": ((2, 5, 7, 33), (3, 3), (1, 1), (1, 1, 1, 1)),
    "pads as large as they may be": (
        (1, 4, 3, 40),
        (4, 5),
        (1, 1),
        (3, 3, 4, 4),
    ),
    "wider than x": ((1, 3, 2, 17), (9, 7), (2, 3), (5, 7, 6, 5)),
    "strides beyond the kernel": ((1, 9, 11, 20), (1, 2), (4, 3), (0, 0, 0, 0)),
    "everything, many channels": ((1, 7, 7, 300), (7, 7), (1, 1), (0, 0, 0, 0)),
    "everything, more places than 16 bits sum": (
        (1, 20, 21, 50),
        (20, 21),
        (1, 1),
        (0, 0, 0, 0),
    ),
    "more channels than a block": (
        (1, 17, 2, 1100),
        (1, 2),
        (1, 1),
        (0, 0, 0, 0),
    ),
    "more places than a tile holds": (
        (1, 1, 90, 16),
        (1, 3),
        (1, 1),
        (0, 0, 1, 1),
    ),
}


def attributes_of(window: str) -> Attributes:
    _, kernel, stride, pad = WINDOWS[window]
    return {"kernel": kernel, "stride": stride, "pad": pad}


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
        for x_at, y_at in INSIDE if type_.dtype == "i8" else INSIDE + EDGES:
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


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32"])
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pool2d_finds_what_the_reference_finds(
    window: str, dtype: str
) -> None:
    x = extreme(TensorType(dtype, WINDOWS[window][0]), 1)
    assert_equal_everywhere("max_pool2d", x, attributes_of(window))


@pytest.mark.parametrize(
    ("dtype", "zero_points"),
    [("i8", (0, 0)), ("i8", (-128, 127)), ("i8", (127, -5)), ("i16", (0, 0))],
)
@pytest.mark.parametrize("window", WINDOWS)
def test_avg_pool2d_finds_what_the_reference_finds(
    window: str, dtype: str, zero_points: tuple[int, int]
) -> None:
    x = extreme(TensorType(dtype, WINDOWS[window][0]), 2)
    named: dict[str, Attribute] = {
        "input_zp": zero_points[0],
        "output_zp": zero_points[1],
    }
    assert_equal_everywhere("avg_pool2d", x, {**attributes_of(window), **named})


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_every_number_of_channels(name: str, dtype: str) -> None:
    attributes: dict[str, Attribute] = {
        "kernel": (2, 2),
        "stride": (1, 1),
        "pad": (0, 0, 1, 0),
    }
    attributes |= (
        {"input_zp": 0, "output_zp": 0} if name == "avg_pool2d" else {}
    )
    for channels in range(1, 71):
        x = extreme(TensorType(dtype, (1, 2, 3, channels)), channels)
        expected = reference(name, [x], attributes)
        for isa in native.isas():
            type_ = TensorType(dtype, expected.shape)
            found = run_step(
                name,
                [x],
                attributes,
                type_,
                at=[ARENA],
                result_at=PITCHED,
                isa=isa,
            )
            np.testing.assert_array_equal(
                found, expected, f"{channels} channels on {isa}"
            )


@pytest.mark.parametrize("end", [-128, 127])
@pytest.mark.parametrize(
    "shape", [(1, 4096, 2048, 1), (1, 512, 256, 16), (1, 512, 256, 80)]
)
def test_the_largest_sums_of_bytes_are_exact(
    end: int, shape: tuple[int, ...]
) -> None:
    """The mean of equal integers is that integer, however many: up to 2^23 of them."""
    x = np.full(shape, end, np.int8)
    attributes: dict[str, Attribute] = {
        "kernel": shape[1:3],
        "stride": (1, 1),
        "pad": (0, 0, 0, 0),
        "input_zp": 0,
        "output_zp": 0,
    }
    type_ = TensorType("i8", (1, 1, 1, shape[-1]))
    for isa in native.isas():
        found = run_step(
            "avg_pool2d",
            [x],
            attributes,
            type_,
            at=[ARENA],
            result_at=ARENA,
            isa=isa,
            threads=2,
        )
        assert (found == end).all()


def test_half_goes_away_from_zero_as_the_reciprocal_says() -> None:
    """SPEC.md: 1.5 to 2, -1.5 to -2."""
    x = np.array([[1, -1], [2, -2]], np.int8).reshape(1, 2, 1, 2)
    attributes: dict[str, Attribute] = {
        "kernel": (2, 1),
        "stride": (1, 1),
        "pad": (0, 0, 0, 0),
        "input_zp": 0,
        "output_zp": 0,
    }
    assert_equal_everywhere(
        "avg_pool2d",
        x,
        attributes,
        np.array([2, -2], np.int8).reshape(1, 1, 1, 2),
    )


HUGE = 2**20


def test_max_pool2d_walks_no_padding() -> None:
    """Two windows of 2^20 by 2^20 on either axis, of which all but one place is padding: x itself."""
    x = extreme(TensorType("i16", (2, 2, 2, 5)), 3)
    pads = (HUGE - 1, HUGE - 1) * 2
    assert_equal_everywhere(
        "max_pool2d",
        x,
        {"kernel": (HUGE, HUGE), "stride": (HUGE, HUGE), "pad": pads},
        x,
    )


def test_avg_pool2d_walks_no_padding() -> None:
    """As for max_pool2d; 2^23 places are the most that a window may have."""
    x = extreme(TensorType("i8", (2, 2, 2, 5)), 4)
    attributes: dict[str, Attribute] = {
        "kernel": (HUGE, 8),
        "stride": (HUGE, 8),
        "pad": (HUGE - 1, HUGE - 1, 7, 7),
    }
    assert_equal_everywhere(
        "avg_pool2d", x, attributes | {"input_zp": 0, "output_zp": 0}, x
    )


GOOD: dict[str, Attribute] = {
    "kernel": (2, 2),
    "stride": (1, 1),
    "pad": (0, 0, 0, 0),
    "input_zp": 0,
    "output_zp": 0,
}
SIZES = "the result's size is not the number of windows"
NUMBERS = "a kernel or stride is not 1..2"
PADS = "a pad is not 0.. below the kernel"
ZERO_POINT = "a zero point is missing or does not fit x"
REFUSED: list[tuple[str, dict[str, Attribute], tuple[int, ...], str]] = [
    ("max_pool2d", {"kernel": (2, 3)}, (1, 2, 2, 4), SIZES),
    ("max_pool2d", {"stride": (2, 2)}, (1, 1, 1, 4), SIZES),
    ("max_pool2d", {"stride": (0, 1)}, (1, 2, 2, 4), NUMBERS),
    ("max_pool2d", {"kernel": (2**63 - 1, 2)}, (1, 2, 2, 4), NUMBERS),
    ("max_pool2d", {"pad": (0, 2, 0, 0)}, (1, 4, 2, 4), PADS),
    ("max_pool2d", {"pad": (-1, 1, 0, 0)}, (1, 2, 2, 4), PADS),
    (
        "max_pool2d",
        {"kernel": (2, 2, 2)},
        (1, 2, 2, 4),
        "kernel, stride or pad is missing",
    ),
    (
        "max_pool2d",
        {},
        (1, 2, 2, 5),
        "not of rank 4 and one dtype, samples and channels",
    ),
    ("avg_pool2d", {"input_zp": 128}, (1, 2, 2, 4), ZERO_POINT),
    ("avg_pool2d", {"output_zp": -129}, (1, 2, 2, 4), ZERO_POINT),
    (
        "avg_pool2d",
        {
            "kernel": (HUGE, 9),
            "stride": (HUGE, 1),
            "pad": (HUGE - 1, HUGE - 2, 8, 8),
        },
        (1, 2, 11, 4),
        "so large that its sum may not fit",
    ),
]


@pytest.mark.parametrize(("name", "changed", "shape", "sentence"), REFUSED)
def test_a_step_that_no_program_has_is_refused(
    name: str,
    changed: dict[str, Attribute],
    shape: tuple[int, ...],
    sentence: str,
) -> None:
    x = np.zeros((1, 3, 3, 4), np.int8)
    with pytest.raises(ValueError, match=sentence):
        run_step(
            name,
            [x],
            GOOD | changed,
            TensorType("i8", shape),
            at=[ARENA],
            result_at=ARENA,
        )


def test_plain_i8_operands_are_refused() -> None:
    """What is stored as q + 128 has another order, and another sum, than plain bytes."""
    x = np.zeros((1, 3, 3, 4), np.int8)
    for x_at, y_at in [(INPUT, ARENA), (ARENA, OUTPUT)]:
        with pytest.raises(
            ValueError, match="i8 inputs and outputs are copied first"
        ):
            run_step(
                "max_pool2d",
                [x],
                GOOD,
                TensorType("i8", (1, 2, 2, 4)),
                at=[x_at],
                result_at=y_at,
            )
