"""conv2d_transpose in the engine: the reference's bytes, whatever the shape and what follows the sums."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cvm.runtime import native
from tests.support.convolution_programs import Convolution, assert_engine_agrees

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
