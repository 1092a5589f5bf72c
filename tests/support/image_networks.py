"""Makes valid programs from a seed that resemble those that the quantizer writes for images.

They are large enough for vectors, pieces and threads. `cvm_programs` uses every
instruction on a few elements. Here an image of 8..40 pixels a side goes through blocks
of 3..70 channels. Their scales make few values saturate, so that a wrong bit reaches
the outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from cvm.errors import Invalid
from cvm.program import Program, TensorType
from tests.support.cvm_programs import Draft, Frozen, generator_of

MOST_ELEMENTS = 100_000  # of one value
MOST_PRODUCTS = 10_000_000  # of one instruction
MOST_BLOCKS = 5
LIMIT = 2**30 - 1

Block = Callable[[Draft, int], int]


def image_network(seed: int | Frozen) -> Program:
    """Return an NCHW image, two to five blocks in NHWC, and an ending."""
    draft = Draft(generator_of(seed), most_elements=MOST_ELEMENTS)
    shape = (
        1,
        draft.between(3, 12),
        draft.between(8, 40),
        draft.between(8, 40),
    )
    dtype = "i16" if draft.below(4) == 0 else "i8"
    ends = {"i8": (-128, 127), "i16": (-2047, 2047)}[dtype]
    image = draft.input_of(TensorType(dtype, shape), *ends)
    x = draft.apply("transpose", image, perm=(0, 2, 3, 1))
    for _ in range(draft.between(2, MOST_BLOCKS)):
        x = _one_of(draft, BLOCKS, x)
    _one_of(draft, ENDINGS, x)
    return draft.finish()


def _one_of(d: Draft, blocks: tuple[Block, ...], x: int) -> int:
    while True:
        try:
            return blocks[d.below(len(blocks))](d, x)
        except Invalid:
            continue


def _zero_point(d: Draft, dtype: str) -> int:
    return d.between(-128, 127) if dtype == "i8" and d.chance() else 0


def _scaled(
    d: Draft, x: int, shift: int, dtype: str, zero_points: tuple[int, int]
) -> int:
    """Divide by about 2^(shift - 31): by one factor, or one for each channel."""
    count = d.types[x].shape[-1] if d.chance() else 1
    multiplier = d.constant("i32", (count,), 2**30, 2**31 - 1)
    shifts = d.constant("i8", (count,), shift, shift + 1)
    return d.apply(
        "rescale", x, multiplier, shifts, input_zp=zero_points[0], output_zp=zero_points[1], dtype=dtype
    )  # fmt: skip


def _noise_bits(d: Draft, taps: int, dtype: str) -> int:
    """Return how many bits a sum of so many products mostly needs."""
    return {"i8": 12, "i16": 16}[dtype] + taps.bit_length() // 2


def _activation(d: Draft, total: int, bits: int) -> int:
    """Turn an accumulator into the next layer's input.

    It is rescaled, and sometimes clamped as by a ReLU6.
    """
    dtype = "i16" if d.below(4) == 0 else "i8"
    kept = {"i8": 5, "i16": 9}[dtype]
    y = _scaled(d, total, 31 + bits - kept, dtype, (0, _zero_point(d, dtype)))
    return (
        d.apply("clamp", y, min=-d.below(60), max=d.between(40, 127))
        if d.chance()
        else y
    )


def _pads(d: Draft, size: int, extent: int, stride: int) -> tuple[int, int]:
    """Return pads before and after, so that the strides divide the rest."""
    before = d.below(extent // 2 + 1)
    return before, (extent - size - before) % stride


def _sums(
    d: Draft,
    x: int,
    kernel: int,
    stride: int = 1,
    outputs: int = 0,
    groups: int = 1,
) -> tuple[int, int]:
    """Add a conv2d; return it and how many bits its sums mostly need."""
    dtype, (_, height, width, channels) = d.types[x].dtype, d.types[x].shape
    outputs = outputs or d.between(3, 70)
    dilation = 2 if kernel > 1 and stride == 1 and d.below(4) == 0 else 1
    extent = (kernel - 1) * dilation + 1
    top, bottom, left, right = (
        *_pads(d, height, extent, stride),
        *_pads(d, width, extent, stride),
    )
    # In two of three cases the image keeps its size.
    if stride == 1 and d.below(3):
        top, bottom, left, right = (extent // 2,) * 4
    taps = kernel * kernel * channels // groups
    if height * width // stride**2 * outputs * taps > MOST_PRODUCTS:
        raise Invalid("size", "too many products")
    w = d.constant(
        "i8", (outputs, kernel, kernel, channels // groups), -127, 127
    )
    b = d.constant("i32", (outputs,), -(2**12), 2**12)
    total = d.apply(
        "conv2d", x, w, b, pad=(top, bottom, left, right), stride=(stride, stride), dilation=(dilation, dilation),
        groups=groups, input_zp=_zero_point(d, dtype),
    )  # fmt: skip
    return total, _noise_bits(d, taps, dtype)


def convolution(d: Draft, x: int) -> int:
    return _activation(d, *_sums(d, x, d.between(1, 3), d.between(1, 2)))


def pointwise(d: Draft, x: int) -> int:
    return _activation(d, *_sums(d, x, 1))


def depthwise(d: Draft, x: int) -> int:
    channels = d.types[x].shape[3]
    outputs = channels * (2 if d.below(4) == 0 and channels < 36 else 1)
    return _activation(
        d,
        *_sums(
            d,
            x,
            (3, 3, 5, 2)[d.below(4)],
            d.between(1, 2),
            outputs,
            groups=channels,
        ),
    )


def grouped(d: Draft, x: int) -> int:
    groups = 3 if d.types[x].shape[3] % 3 == 0 else 2
    return _activation(d, *_sums(d, x, 3, 1, groups * d.between(1, 20), groups))


def residual(d: Draft, x: int) -> int:
    """Add a convolution and its input, both with 12 bits behind the point."""
    dtype, channels = d.types[x].dtype, d.types[x].shape[3]
    total, bits = _sums(d, x, (1, 3)[d.below(2)], outputs=channels)
    branch = _scaled(d, total, 31 + bits - 19, "i32", (0, 0))
    shortcut = _scaled(
        d, x, {"i8": 18, "i16": 22}[dtype], "i32", (_zero_point(d, dtype), 0)
    )
    added = d.apply(
        "add", *((branch, shortcut) if d.chance() else (shortcut, branch))
    )
    return _activation(d, _leaky(d, added) if d.below(4) == 0 else added, 19)


def _leaky(d: Draft, x: int) -> int:
    """Return x where it is positive, else a part of it: the difference of two clamped values."""
    above = d.apply("clamp", x, min=0, max=LIMIT)
    below = _scaled(
        d, d.apply("negate", x, input_zp=0, output_zp=0), 33, "i32", (0, 0)
    )
    return d.apply("sub", above, d.apply("clamp", below, min=0, max=LIMIT))


def fire(d: Draft, x: int) -> int:
    """Join two or three convolutions side by side."""
    parts = []
    for kernel in (1, 3, 1)[: d.between(2, 3)]:
        total, bits = _sums(d, x, kernel, outputs=d.between(3, 24))
        parts.append(_scaled(d, total, 31 + bits - 5, "i8", (0, 0)))
    return d.apply("concat", *parts, axis=3)


def gated(d: Draft, x: int) -> int:
    """Return x * table(x)."""
    if d.types[x].dtype != "i8":
        raise Invalid("dtype", "tables have 256 entries")
    values = d.apply("table", x, d.constant("i8", (256,), -127, 127))
    return _activation(d, d.apply("mul", x, values, shift=0), 12)


def pooled(d: Draft, x: int) -> int:
    """Return the greatest or the average of each window."""
    dtype, (_, height, width, _) = d.types[x].dtype, d.types[x].shape
    kernel, stride = d.between(2, 3), d.between(1, 2)
    top, left = d.below(2), d.below(2)
    pad = (
        top,
        (kernel - height - top) % stride,
        left,
        (kernel - width - left) % stride,
    )
    window = {
        "kernel": (kernel, kernel),
        "stride": (stride, stride),
        "pad": pad,
    }
    if d.chance():
        return d.apply("max_pool2d", x, **window)
    return d.apply(
        "avg_pool2d",
        x,
        **window,
        input_zp=_zero_point(d, dtype),
        output_zp=_zero_point(d, dtype),
    )


def enlarged(d: Draft, x: int) -> int:
    """Double height and width by repetition, interpolation or a transposed convolution."""
    dtype, channels = d.types[x].dtype, d.types[x].shape[3]
    how = d.below(3)
    if how == 0:
        return d.apply(
            "resize",
            x,
            scale=(2, 1, 2, 1),
            offset=(0, 0),
            border=(1, 1),
            mode="nearest",
        )
    if how == 1:
        total = d.apply(
            "resize",
            x,
            scale=(2, 1, 2, 1),
            offset=(0, 0),
            border=(1, 1),
            mode="bilinear",
        )
        return _activation(d, total, {"i8": 9, "i16": 13}[dtype])
    outputs = d.between(3, 12)
    w = d.constant("i8", (outputs, 3, 2, channels), -127, 127)
    b = d.constant("i32", (outputs,), -(2**12), 2**12)
    total = d.apply(
        "conv2d_transpose", x, w, b, out_pad=(-1, 0, 0, 0), stride=(2, 2), groups=1, input_zp=_zero_point(d, dtype)
    )  # fmt: skip
    return _activation(d, total, _noise_bits(d, 2 * channels, dtype))


def image_ending(d: Draft, x: int) -> int:
    """Transpose the image back to NCHW."""
    return d.apply("transpose", x, perm=(0, 3, 1, 2))


def labels_ending(d: Draft, x: int) -> int:
    """End with the average of every channel, a dense layer, and sometimes an argmax."""
    dtype, (_, height, width, channels) = d.types[x].dtype, d.types[x].shape
    wide = _scaled(
        d, x, {"i8": 22, "i16": 26}[dtype], "i32", (_zero_point(d, dtype), 0)
    )
    total = d.apply("reduce_sum", d.apply("reduce_sum", wide, axis=1), axis=2)
    mean = _scaled(
        d, total, 31 + 7 + (height * width).bit_length() // 2, "i8", (0, 0)
    )
    flat = d.apply("reshape", mean, shape=(1, channels))
    logits = _dense(d, flat)
    return d.apply("argmax", logits, axis=1) if d.chance() else logits


def flat_ending(d: Draft, x: int) -> int:
    """End with a dense layer on every pixel."""
    return _dense(d, d.apply("reshape", x, shape=(1, d.types[x].elements)))


def _dense(d: Draft, x: int) -> int:
    dtype, inputs = d.types[x].dtype, d.types[x].shape[1]
    outputs = d.between(2, 40)
    if inputs * outputs > MOST_PRODUCTS // 30:
        raise Invalid("size", "too many products")
    w = d.constant("i8", (outputs, inputs), -127, 127)
    b = d.constant("i32", (outputs,), -(2**12), 2**12)
    total = d.apply("dense", x, w, b, input_zp=_zero_point(d, dtype))
    return _scaled(
        d, total, 31 + _noise_bits(d, inputs, dtype) - 12, "i16", (0, 0)
    )


def attention_ending(d: Draft, x: int) -> int:
    """End with a product of pixels and pixels."""
    _, height, width, channels = d.types[x].shape
    if (height * width) ** 2 * channels > MOST_PRODUCTS:
        raise Invalid("size", "too many products")
    rows = d.apply("reshape", x, shape=(1, height * width, channels))
    columns = d.apply("transpose", rows, perm=(0, 2, 1))
    total = d.apply(
        "matmul", rows, columns, a_zp=0, b_zp=_zero_point(d, d.types[x].dtype)
    )
    return _activation(d, total, _noise_bits(d, channels, d.types[x].dtype))


BLOCKS: tuple[Block, ...] = (
    convolution,
    convolution,
    pointwise,
    depthwise,
    depthwise,
    grouped,
    residual,
    residual,
    fire,
    gated,
    pooled,
    enlarged,
)
ENDINGS: tuple[Block, ...] = (
    image_ending,
    labels_ending,
    flat_ending,
    attention_ending,
)
