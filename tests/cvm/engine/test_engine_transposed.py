"""conv2d_transpose in the engine: the reference's bytes, whatever the shape and what follows the sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvm.program import DTYPE_RANGES, Attribute
from cvm.runtime import native
from tests.support.convolution_programs import Convolution, assert_engine_agrees
from tests.support.engine_cases import Case

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)


def transposed(
    shape: tuple[int, int, int, int],
    kernel: tuple[int, int],
    outputs: int,
    *,
    groups: int = 1,
    stride: tuple[int, int] = (1, 1),
    out_pad: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> Convolution:
    return Convolution(
        "conv2d_transpose",
        shape,
        kernel,
        outputs,
        {"stride": stride, "out_pad": out_pad},
        groups=groups,
    )


SHAPES = [
    transposed((1, 1, 1, 1), (1, 1), 1),
    transposed((2, 3, 5, 4), (3, 3), 5, stride=(2, 2)),
    transposed(
        (1, 4, 3, 7), (4, 4), 6, stride=(2, 2), out_pad=(-1, -1, -1, -1)
    ),
    transposed((1, 4, 3, 7), (4, 4), 6, stride=(2, 3), out_pad=(-3, -2, 5, -3)),
    transposed((1, 3, 2, 6), (2, 2), 6, groups=3, stride=(3, 4)),
    transposed((1, 3, 4, 5), (3, 1), 10, groups=5, out_pad=(2, 7, 0, 3)),
    transposed((1, 2, 2, 3), (1, 1), 300, stride=(5, 5), out_pad=(11, 0, 3, 4)),
    transposed((1, 2, 3, 600), (1, 3), 2, stride=(1, 3)),
    transposed((1, 2, 2, 4), (7, 5), 514, groups=2, out_pad=(-6, -1, -2, -3)),
    transposed(
        (3, 1, 9, 8), (1, 8), 8, groups=8, stride=(1, 4), out_pad=(0, 0, -2, -2)
    ),
]


@pytest.mark.parametrize(
    "case",
    SHAPES,
    ids=lambda case: f"{case.shape}-{case.kernel}-{case.attributes['stride']}",
)
def test_a_shape_gives_the_same_bytes(case: Convolution) -> None:
    for number, stages in enumerate(("", "rescale", "clamp")):
        assert_engine_agrees(
            replace(case, stages=stages, input_zp=(0, 127, -128)[number]),
            number,
        )
    assert_engine_agrees(replace(case, dtype="i16"))


@pytest.mark.parametrize("input_zp", [-128, 0, 127])
@pytest.mark.parametrize("constant", [-128, 127])
def test_the_ends_of_every_range_do_not_overflow(
    input_zp: int, constant: int
) -> None:
    case = transposed((1, 3, 4, 40), (3, 3), 4, stride=(2, 2))
    assert_engine_agrees(replace(case, constant=constant, input_zp=input_zp))
    assert_engine_agrees(replace(case, constant=constant, dtype="i16"))


@pytest.mark.parametrize("result", ["i8", "i16", "i32"])
def test_the_result_may_be_a_part_of_a_concat(result: str) -> None:
    case = transposed((1, 3, 4, 5), (3, 3), 7, stride=(2, 2))
    assert_engine_agrees(
        replace(case, stages="rescale", result=result, beside=True)
    )


@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_strides_and_kernels(kernel: int, stride: int, dtype: str) -> None:
    """A kernel shorter than the stride leaves pixels that are the bias alone; pads add such pixels, or cut others off."""
    rng = np.random.default_rng(kernel * 10 + stride)
    for channels, outputs in [(1, 1), (24, 1), (3, 17), (40, 40)]:
        pads = rng.integers(1 - kernel, 3, 4).tolist()
        case = transposed(
            (2, 3, 5, channels),
            (kernel, int(rng.integers(1, 6))),
            outputs,
            stride=(stride, int(rng.integers(1, 4))),
            out_pad=(pads[0], pads[1], 0, 4),
        )
        zero_point = int(rng.integers(-128, 128)) if dtype == "i8" else 0
        stages = "rescale" if channels == 24 else ""
        assert_engine_agrees(
            replace(case, dtype=dtype, input_zp=zero_point, stages=stages),
            kernel,
        )


WIDE = [
    transposed((1, 1, 700, 2), (1, 2), 1, stride=(1, 2)),
    transposed((1, 1, 700, 2), (1, 3), 3, stride=(1, 2), out_pad=(0, 0, 3, -1)),
    transposed((1, 1, 2, 3), (2, 3), 2, stride=(1, 1500)),
    transposed((1, 3, 90, 400), (2, 3), 2, stride=(1, 3)),
    transposed((1, 1, 3, 5), (1, 1), 1, out_pad=(0, 0, 2100, 1500)),
    transposed((1, 2, 66, 7), (4, 4), 40, stride=(2, 2)),
]


@pytest.mark.parametrize("case", WIDE, ids=lambda case: str(case.shape))
def test_rows_of_many_tiles(case: Convolution) -> None:
    assert_engine_agrees(replace(case, input_zp=-7, stages="rescale"))
    assert_engine_agrees(replace(case, dtype="i16"))


def one_channel(
    name: str, channels: int, dtype: str, **attributes: Attribute
) -> tuple[Case, int, tuple[int, ...]]:
    """Return the 16 bits that a convolution with one output gives, and their shape."""
    case, rng = Case(), np.random.default_rng(channels)
    low, high = DTYPE_RANGES[dtype]
    x = case.input(rng.integers(low, high + 1, (2, 7, 9, channels)), dtype)
    kernel = rng.integers(-128, 128, (1, 2, 2, channels)).astype(np.int8)
    weights = case.draft.array(kernel, "i8")
    bias = case.draft.array(np.array([-777], np.int32), "i32")
    sums = case.draft.apply(
        name,
        x,
        weights,
        bias,
        groups=1,
        input_zp=0,
        stride=(2, 2),
        **attributes,
    )
    shift = 33 if dtype == "i8" else 42
    narrow = case.rescale(sums, [2**30 + 3], [shift], "i16")
    return case, narrow, case.draft.types[narrow].shape


LINEAR: list[tuple[str, dict[str, Attribute]]] = [
    ("conv2d_transpose", {"out_pad": (0, 0, 0, 0)}),
    ("conv2d", {"pad": (1, 0, 0, 1), "dilation": (1, 1)}),
]


@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize(("name", "attributes"), LINEAR)
@pytest.mark.parametrize("follows", ["table", "points", "add", "zero"])
def test_results_of_one_channel(
    follows: str, name: str, attributes: dict[str, Attribute], dtype: str
) -> None:
    """Chains take them, and what they load, as if they were channels of one row."""
    case, narrow, shape = one_channel(name, 5, dtype, **attributes)
    rng, draft = np.random.default_rng(3), case.draft
    if follows == "table":
        squares = np.arange(-(2**15), 2**15) ** 2 >> 16
        values = draft.array(squares.astype(np.int16), "i16")
        case.rescale(draft.apply("table", narrow, values), [2**30], [37], "i8")
    elif follows == "points":
        points = np.arange(513) * 100 % 9999
        values = draft.array(points.astype(np.int16), "i16")
        lines = draft.apply("interpolate", narrow, values)
        case.rescale(lines, [2**30], [44], "i8", (0, -5))
    elif follows == "zero":
        zero_point = np.full((1, 1, 1, 1), -3000, np.int32)
        wide = draft.apply("cast", narrow, dtype="i32")
        less = draft.apply("sub", wide, draft.array(zero_point, "i32"))
        case.rescale(less, [2**30 + 1], [38], "i8")
    else:
        wide = case.rescale(narrow, [2**30], [30], "i32")
        for size, bits in [(shape, "i8"), (shape, "i16"), ((1,) * 4, "i16")]:
            other = case.input(rng.integers(-99, 99, size), bits)
            scaled = case.rescale(other, [2**30 + 9], [29], "i32")
            wide = draft.apply("add", wide, scaled)
        case.rescale(wide, [2**30], [37], "i8", (0, 4))
    case.assert_equal_everywhere()
