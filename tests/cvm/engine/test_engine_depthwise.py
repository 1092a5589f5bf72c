"""Depthwise convolutions in the engine: the reference's bytes, whatever the shape and what follows the sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvm.proof.validate import validate
from cvm.runtime import native
from tests.support.convolution_programs import Convolution, assert_engine_agrees

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)


def depthwise(
    height: int,
    width: int,
    channels: int,
    kernel: tuple[int, int] = (3, 3),
    *,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    pad: tuple[int, int] = (1, 1),
    batch: int = 1,
    multiplier: int = 1,
) -> Convolution:
    """Padded by `pad` above and left, and so far below and right that the windows cover it exactly."""
    sizes = zip((height, width), pad, kernel, stride, dilation, strict=True)
    after = [
        -(size + before - (k - 1) * d - 1) % s + before * s
        for size, before, k, s, d in sizes
    ]
    pads = (pad[0], after[0], pad[1], after[1])
    attributes = {"pad": pads, "stride": stride, "dilation": dilation}
    return Convolution(
        "conv2d",
        (batch, height, width, channels),
        kernel,
        channels * multiplier,
        attributes,
    )


SHAPES = [
    depthwise(1, 1, 2),
    depthwise(5, 7, 3),
    depthwise(4, 9, 8, batch=2),
    depthwise(3, 4, 13),
    depthwise(2, 131, 16),
    depthwise(7, 6, 17),
    depthwise(5, 5, 37),
    depthwise(2, 3, 321),
    depthwise(1, 1, 64),
    depthwise(5, 9, 144),
    depthwise(3, 4, 64, batch=2),
    depthwise(7, 9, 200, stride=(2, 2)),
    depthwise(4, 9, 127, stride=(1, 2), pad=(0, 2)),
    depthwise(6, 5, 80, dilation=(2, 1)),
    depthwise(6, 6, 32, stride=(2, 2)),
    depthwise(7, 15, 19, stride=(2, 2)),
    depthwise(4, 140, 5, stride=(2, 2), pad=(0, 0)),
    depthwise(9, 8, 16, stride=(2, 1)),
    depthwise(9, 8, 16, stride=(3, 3)),
    depthwise(9, 7, 16, stride=(1, 2)),
    depthwise(8, 7, 4, dilation=(3, 1), stride=(2, 2), pad=(2, 1)),
    depthwise(5, 9, 4, dilation=(1, 2)),
    depthwise(5, 6, 11, dilation=(2, 3), pad=(2, 3)),
    depthwise(2, 3, 6, pad=(9, 11)),
    depthwise(3, 2, 6, pad=(8, 12), stride=(2, 2)),
    depthwise(6, 9, 20, (5, 5), pad=(2, 2)),
    depthwise(6, 40, 20, (5, 5), pad=(2, 2), stride=(2, 2)),
    depthwise(4, 5, 7, (1, 1), pad=(0, 0)),
    depthwise(4, 21, 9, (2, 3), pad=(0, 2)),
    depthwise(3, 3, 130, (1, 3), pad=(0, 1), stride=(2, 2)),
    depthwise(2, 2, 3, (7, 1), pad=(6, 0), stride=(5, 7)),
]
FAST = depthwise(5, 11, 21)


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
        assert_engine_agrees(
            replace(case, stages=stages, dtype="i16", shifts=(38, 50)), number
        )
        words = replace(case, dtype="i16", result="i16", shifts=(34, 42))
        assert_engine_agrees(replace(words, stages=stages), number)


@pytest.mark.parametrize("input_zp", [-128, -1, 0, 127])
@pytest.mark.parametrize("constant", [-128, 127])
@pytest.mark.parametrize("kernel", [(3, 3), (3, 5)])
def test_the_ends_of_every_range_do_not_overflow(
    input_zp: int, constant: int, kernel: tuple[int, int]
) -> None:
    case = replace(
        depthwise(5, 6, 18, kernel), constant=constant, input_zp=input_zp
    )
    for stages in ("", "clamp"):
        assert_engine_agrees(replace(case, stages=stages))
        assert_engine_agrees(
            replace(
                case, stages=stages, dtype="i16", input_zp=0, shifts=(44, 52)
            )
        )


@pytest.mark.parametrize("multiplier", [2, 3, 150])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_a_channel_may_have_several_outputs(
    multiplier: int, dtype: str
) -> None:
    zero_point = -3 if dtype == "i8" else 0
    for stages in ("", "clamp"):
        case = replace(
            depthwise(4, 10, 3, stride=(2, 1), multiplier=multiplier),
            dtype=dtype,
            input_zp=zero_point,
        )
        assert_engine_agrees(replace(case, stages=stages))


@pytest.mark.parametrize(
    ("dtype", "result"), [("i8", "i8"), ("i16", "i8"), ("i16", "i16")]
)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(
    "shifts", [(32, 32), (32, 62), (55, 62), (30, 34), (25, 31)]
)
@pytest.mark.parametrize("channels", [21, 67])
def test_every_shift_of_the_rescale_rounds_alike(
    shifts: tuple[int, int],
    per_channel: bool,
    dtype: str,
    result: str,
    channels: int,
) -> None:
    """67 channels are two runs of blocks of 16-bit pixels, or one of bytes, and what is left."""
    case = replace(depthwise(5, 11, channels), dtype=dtype, result=result)
    case = replace(case, shifts=shifts, per_channel=per_channel)
    for seed in range(3):
        assert_engine_agrees(replace(case, stages="rescale"), seed)


@pytest.mark.parametrize("stages", ["rescale", "clamp"])
@pytest.mark.parametrize("shape", [(1, 5, 7, 3), (1, 4, 9, 40), (2, 3, 3, 70)])
@pytest.mark.parametrize("shifts", [(34, 40), (25, 31)])
def test_a_product_may_become_words_and_be_held(
    shape: tuple[int, int, int, int], shifts: tuple[int, int], stages: str
) -> None:
    """That is how a layer begins whose result channelwise convolutions read."""
    pads = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    for outputs in (1, 17, 48):
        case = Convolution(
            "conv2d", shape, (1, 1), outputs, pads, groups=1, result="i16"
        )
        assert_engine_agrees(replace(case, stages=stages, shifts=shifts))


@pytest.mark.parametrize("isa", ["avxvnni", "avx512vnni"])
@pytest.mark.parametrize("shifts", [(32, 40), (31, 40)])
def test_words_become_words_in_registers(
    shifts: tuple[int, int], isa: str
) -> None:
    """With shifts of 32 bits and more."""
    if isa not in native.isas():
        pytest.skip(f"needs {isa}")
    case = replace(FAST, dtype="i16", result="i16", stages="clamp")
    form = validate(replace(case, shifts=shifts).program(3))
    engine = native.Engine(form, isa=isa)
    in_registers = "registers" in engine.core.epilogues()
    assert in_registers == (min(form.program.constants[3]) >= 32)
    assert in_registers == (shifts[0] == 32)


def test_a_channel_that_is_multiplied_by_zero_becomes_the_zero_point() -> None:
    program = replace(FAST, stages="rescale").program(5)
    program.constants[2][3], program.constants[3][3] = 0, 62
    form = validate(program)
    sample = FAST.sample(1)
    zero_point = program.instructions[1].attributes["output_zp"]
    for isa in native.isas():
        assert np.all(
            native.Engine(form, isa=isa).run(sample)["y"][..., 3] == zero_point
        )


@pytest.mark.parametrize("result", ["i8", "i16", "i32"])
def test_the_result_may_be_a_part_of_a_concat(result: str) -> None:
    assert_engine_agrees(
        replace(FAST, stages="rescale", result=result, beside=True)
    )
    assert_engine_agrees(replace(FAST, stages="", beside=True))
