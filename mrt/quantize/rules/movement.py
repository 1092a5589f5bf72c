"""Operators that move elements and leave their values: the integers move the same way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, DTYPES
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import (
    constant_of,
    integers_of,
    name_of,
    require_constant,
    shape_of,
)
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, identity, quantized, quantized_point
from mrt.quantize.rules.integers import fits_integer
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Format, Tensor


def movable(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """The narrow form, except that whole numbers move as they are, and a head as the wide accumulator it still is."""
    tensor = net.as_computed(value)
    if tensor.integral or (name_of(value) in net.output_path and tensor.per_tensor):
        return tensor
    return net.requantized(value)


@rule("Reshape")
def reshape(net: LoweringContext, node: ir.Node) -> None:
    """Row-major order is that of the float model's axes."""
    shape = shape_of(node.outputs[0])
    array = constant_of(node.inputs[0])
    if array is not None:
        return _constant_output(net, node, array.reshape(shape))
    x = net.to_float_layout(movable(net, node.inputs[0]))
    return net.define(
        node.outputs[0],
        replace(x, value=net.reshaped(x.value, shape), layout=identity(len(shape))),
    )


def _constant_output(net: LoweringContext, node: ir.Node, array: FloatArray) -> None:
    """What the model gives whatever its inputs are: whole numbers as they are, others in 16 bits."""
    layout = identity(array.ndim)
    if fits_integer(array):
        whole = net.reshaped(
            net.constant(array.astype(np.int32)), array.shape
        )  # a constant has one axis or more
        return net.define(node.outputs[0], Tensor(whole, np.ones(1), 0, layout))
    target = net.format(
        node.outputs[0], interval=(float(array.min()), float(array.max()))
    )
    value = net.reshaped(
        net.constant(quantized(array, target).astype(DTYPES[target.dtype])), array.shape
    )
    return net.define(
        node.outputs[0],
        Tensor(value, np.array([target.scale]), target.zero_point, layout),
    )


@rule("Transpose")
def transpose(net: LoweringContext, node: ir.Node) -> None:
    """Nothing moves: only the note of which physical axis is which changes."""
    x = movable(net, node.inputs[0])
    perm = tuple(node.attributes["perm"].as_ints())
    net.define(
        node.outputs[0], replace(x, layout=tuple(perm.index(axis) for axis in x.layout))
    )


@rule("Slice")
def slice_(net: LoweringContext, node: ir.Node) -> None:
    """A contiguous slice, then every n-th element where steps ask for it."""
    x = movable(net, node.inputs[0])
    shape = net.shape(x)
    start, size, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts, ends, axes, step_list = (integers_of(node, index) for index in (1, 2, 3, 4))
    if step_list == (-1,):
        value = net.builder.emit("reverse", x.value, axis=x.layout.index(axes[0]))
        return net.define(node.outputs[0], replace(x, value=value))
    for first, last, axis, step in zip(starts, ends, axes, step_list, strict=True):
        place = x.layout.index(axis % len(shape))
        count = -(-(last - first) // step)
        start[place], size[place], steps[place] = first, (count - 1) * step + 1, step
    value = x.value
    if tuple(size) != shape:
        value = net.builder.emit("slice", value, start=tuple(start), size=tuple(size))
    return net.define(node.outputs[0], replace(x, value=_every_nth(net, value, steps)))


def _every_nth(net: LoweringContext, value: Handle, steps: list[int]) -> Handle:
    """Elements 0, n, 2n, ... of each axis: pooling with a 1x1 window on an image's rows and columns, else split and cut."""
    type_ = net.builder.types[value]
    if (
        type_.rank == 4
        and type_.dtype in ("i8", "i16")
        and steps[0] == steps[3] == 1
        and steps != [1, 1, 1, 1]
    ):
        return net.builder.emit(
            "max_pool2d",
            value,
            kernel=(1, 1),
            stride=(steps[1], steps[2]),
            pad=(0, 0, 0, 0),
        )
    for axis, step in enumerate(steps):
        if step > 1:
            value = _every_nth_of_axis(net, value, axis, step)
    return value


def _every_nth_of_axis(
    net: LoweringContext, value: Handle, axis: int, step: int
) -> Handle:
    """[.., n] padded to a multiple of step, seen as [.., n/step, step], the first of each kept."""
    shape = net.builder.types[value].shape
    count = -(-shape[axis] // step)
    before, after = (
        int(np.prod(part, dtype=np.int64)) for part in (shape[:axis], shape[axis + 1 :])
    )
    value = net.reshaped(value, (before, shape[axis], after))
    if count * step > shape[axis]:
        value = net.builder.emit(
            "pad", value, pads=(0, 0, 0, count * step - shape[axis], 0, 0), value=0
        )
    value = net.reshaped(value, (before, count, step, after))
    value = net.builder.emit(
        "slice", value, start=(0, 0, 0, 0), size=(before, count, 1, after)
    )
    return net.reshaped(value, (*shape[:axis], count, *shape[axis + 1 :]))


@rule("Pad")
def pad(net: LoweringContext, node: ir.Node) -> None:
    """Padding with the integer that stands for the constant; where x has none for it, x is brought to the result's format."""
    fill = require_constant(node, 2).item()
    x = movable(net, node.inputs[0])
    if x.integral and fill == int(fill) and abs(fill) < 2**31:
        least, most = DTYPE_RANGES[net.dtype(x)]
        x = x if least <= fill <= most else net.cast_to(x, "i32")
    elif not _can_stand_for(net, x, fill):
        low, high = net.interval(x)
        target = net.format(node.outputs[0], interval=(min(low, fill), max(high, fill)))
        x = net.requantize_to(net.as_computed(node.inputs[0]), target)
    pads, rank = integers_of(node, 1), len(x.layout)
    grow = tuple(
        amount for axis in x.layout for amount in (pads[axis], pads[axis + rank])
    )
    value = x.value
    if any(grow):
        value = net.builder.emit("pad", value, pads=grow, value=_point(net, x, fill))
    net.define(node.outputs[0], replace(x, value=value))


def _can_stand_for(net: LoweringContext, x: Tensor, real: float) -> bool:
    """Whether a real number lies where x can be itself, or is 0, which has an integer in every format.

    Between whole numbers there is nothing: there a step is too coarse.
    """
    if x.integral and real != int(real):
        return False
    proven = net.builder.bounds[x.value]
    steps = real / float(x.scale[0]) + x.zero_point
    return x.low <= real <= x.high and (
        real == 0 or proven.min - 0.5 <= steps < proven.max + 0.5
    )


def _point(net: LoweringContext, x: Tensor, real: float) -> int:
    """The nearest integer to a real number in x's dtype."""
    return quantized_point(
        real,
        Format(
            net.dtype(x), float(x.scale[0]), x.zero_point, *DTYPE_RANGES[net.dtype(x)]
        ),
    )
