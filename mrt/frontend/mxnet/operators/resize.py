"""Resizing of images: up-sampling, bilinear resizing, averages over a number of bins."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Values,
    all_inputs,
    boolean,
    choice,
    count,
    ignored,
    integer,
    integers,
    operator,
    optional_real,
    positive,
)
from mrt.frontend.mxnet.params import Array


def _up_sampling_slots(values: Values) -> tuple[str, ...]:
    return (
        ("data", "weight")
        if values["sample_type"] == "bilinear"
        else all_inputs(values)
    )


@operator(
    "UpSampling",
    attributes={
        "scale": positive(),
        "num_filter": integer(0),
        "sample_type": choice("nearest", "bilinear", required=True),
        "multi_input_mode": choice("concat", "sum", default="concat"),
        "num_args": count(),
        **ignored("workspace"),
    },
    slots=_up_sampling_slots,
)
def up_sampling(call: OperatorCall) -> ir.Value:
    """Write an up-sampling; nearest repeats pixels.

    Several inputs all grow to the size to which the first one grows.
    """
    for value in call.inputs[
        : 1 if call.string_attribute("sample_type") == "bilinear" else None
    ]:
        call.require(
            len(call.shape(value)) == 4,
            f"input of shape {call.shape(value)}: expected 4 dimensions",
        )
    if call.string_attribute("sample_type") == "bilinear":
        return _bilinear(call)
    scale = call.int_attribute("scale")
    target = [size * scale for size in call.shape()[2:]]
    grown = [_nearest(call, value, target) for value in call.inputs]
    if len(grown) == 1:
        return grown[0]
    if call.string_attribute("multi_input_mode") == "concat":
        return call.add("Concat", *grown, axis=1)
    call.require(
        len({call.shape(value) for value in grown}) == 1,
        "multi_input_mode=sum of inputs of different shapes",
    )
    total = grown[0]
    for value in grown[1:]:
        total = call.add("Add", total, value)
    return total


def _nearest(
    call: OperatorCall, value: ir.Value, target: list[int]
) -> ir.Value:
    rows, columns = call.shape(value)[2:]
    factor = target[0] // rows
    call.require(
        [rows * factor, columns * factor] == target,
        f"an input of shape {call.shape(value)} does not grow to {target}",
    )
    attributes = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    return call.add(
        "Resize",
        value,
        None,
        call.constant([1.0, 1.0, float(factor), float(factor)]),
        **attributes,
    )


def _bilinear(call: OperatorCall) -> ir.Value:
    """Write a transposed convolution of each channel, whose kernel is a parameter."""
    scale, channels = call.int_attribute("scale"), call.shape()[1]
    filters = call.int_attribute("num_filter")
    call.require(
        filters == channels,
        f"num_filter={filters} for {channels} channels; expected as many",
    )
    size, pad = 2 * scale - scale % 2, math.ceil((scale - 1) / 2)
    weight = call.parameter(1, (channels, 1, size, size))
    attributes: dict[str, int | list[int]] = {
        "kernel_shape": [size, size],
        "strides": [scale, scale],
        "dilations": [1, 1],
        "pads": [pad] * 4,
        "output_padding": [0, 0],
        "group": channels,
    }
    return call.add("ConvTranspose", call.data, weight, **attributes)


_MODES = (
    "size",
    "odd_scale",
    "like",
    "to_even_down",
    "to_even_up",
    "to_odd_down",
    "to_odd_up",
)


def _resize_slots(values: Values) -> tuple[str, ...]:
    return ("data", "like") if values["mode"] == "like" else ("data",)


@operator(
    "_contrib_BilinearResize2D",
    attributes={
        "height": integer(1),
        "width": integer(1),
        "scale_height": optional_real(),
        "scale_width": optional_real(),
        "mode": choice(*_MODES, default="size"),
        "align_corners": boolean(True),
    },
    slots=_resize_slots,
)
def bilinear_resize(call: OperatorCall) -> ir.Value:
    """Write a linear Resize with aligned corners; without align_corners, ONNX's half_pixel.

    A single row or column is then the first of the input, as in pytorch_half_pixel.
    """
    call.require_rank(4, 4)
    batch, channels, rows, columns = call.shape()
    sizes = [_size(call, 2, "height", rows), _size(call, 3, "width", columns)]
    call.require(
        min(sizes) >= 1, f"a result of {sizes[0]} rows and {sizes[1]} columns"
    )
    if sizes == [rows, columns]:
        return call.add("Identity", call.data)
    halves = "pytorch_half_pixel" if min(sizes) == 1 else "half_pixel"
    coordinates = (
        "align_corners" if call.bool_attribute("align_corners") else halves
    )
    attributes = {
        "mode": "linear",
        "coordinate_transformation_mode": coordinates,
    }
    return call.add(
        "Resize",
        call.data,
        None,
        None,
        call.constant([batch, channels, *sizes]),
        **attributes,
    )


def _size(call: OperatorCall, axis: int, name: str, size: int) -> int:
    """Return the size of one axis of the result."""
    mode = call.string_attribute("mode")
    scale = call.optional_float_attribute(f"scale_{name}")
    match mode:
        case "like":
            like = call.shape(call.inputs[1])
            call.require(
                len(like) == 4, f"like of shape {like}: expected 4 dimensions"
            )
            return like[axis]
        case "size" if scale is None:
            return call.int_attribute(name)
        case "size" | "odd_scale":
            call.require(
                scale is not None and 0 < scale < 2**15,
                f"mode={mode}: scale_{name}={scale}",
            )
            assert scale is not None
            times = float(
                np.float32(scale)
            )  # MXNet multiplies in single precision
            even = mode == "size" or size % 2 == 0
            return (
                int(np.float32(size * times))
                if even
                else int(np.float32((size - 1) * times)) + 1
            )
    parity = 0 if "even" in mode else 1
    if size % 2 == parity:
        return size
    return size - 1 if mode.endswith("down") else size + 1


# The most entries of a matrix that averages entire images at once.
MOST_ENTRIES = 2**20


@operator(
    "_contrib_AdaptiveAvgPooling2D", attributes={"output_size": integers()}
)
def adaptive_average_pooling(call: OperatorCall) -> ir.Value:
    """Average over bins of each channel.

    Where the sizes divide, the bins are windows of one size. Otherwise they overlap, and
    the averages are products with a constant matrix.
    """
    call.require_rank(4, 4)
    sizes = call.ints_attribute("output_size") or (1,)
    call.require(
        len(sizes) <= 2 and min(sizes) >= 1,
        f"output_size={sizes}: expected 1 or 2 positive numbers",
    )
    rows, columns = sizes if len(sizes) == 2 else sizes * 2
    if (rows, columns) == (1, 1):
        return call.add("GlobalAveragePool", call.data)
    batch, channels, height, width = call.shape()
    if height % rows == 0 and width % columns == 0:
        kernel = [height // rows, width // columns]
        return call.add(
            "AveragePool",
            call.data,
            kernel_shape=kernel,
            strides=kernel,
            pads=[0, 0, 0, 0],
        )
    call.require(
        max(height * rows, width * columns) <= 2**24,
        f"output_size={sizes} is too large",
    )
    down, across = _bins(height, rows), _bins(width, columns)
    if down.size * across.size > MOST_ENTRIES:
        return _one_axis(call, _one_axis(call, call.data, across), down)
    flat = call.reshape(call.data, [batch * channels, height * width])
    product = call.add("MatMul", flat, call.array(np.kron(down, across)))
    return call.reshape(product, [batch, channels, rows, columns])


def _bins(size: int, number: int) -> Array:
    """Return the weight of each element in each bin, [size, number].

    Bin i holds the elements from floor(i size / number) to ceil((i + 1) size / number).
    """
    bins, element = np.arange(number), np.arange(size)[:, None]
    begin, end = bins * size // number, -(-(bins + 1) * size // number)
    return np.where(
        (element >= begin) & (element < end),
        (1 / (end - begin)).astype(np.float32),
        np.float32(0),
    )


def _one_axis(call: OperatorCall, value: ir.Value, weights: Array) -> ir.Value:
    """Average the last axis, and exchange the last two."""
    product = call.add("MatMul", value, call.array(weights))
    return call.add("Transpose", product, perm=[0, 1, 3, 2])
