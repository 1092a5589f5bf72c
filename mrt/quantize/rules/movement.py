"""Rules of operators that move elements and keep their values: the integers move the same way."""

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
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import FIRST
from mrt.quantize.rules.integers import fits_integer
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    Format,
    Tensor,
    identity,
    quantized,
    quantized_point,
)
from mrt.quantize.wide_values import as_wide


def movable(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the form in which a value is moved.

    Integral values move as they are, values on the output path as accumulators with one
    scale, products of which sums take rows as accumulators, wide values in all their bits,
    codes as codes, all others requantized.
    """
    code = net.code_of(value)
    if code is not None:
        return code
    if name_of(value) in net.plan.wide:
        return as_wide(net, value)
    tensor = net.as_computed(value)
    on_output_path = name_of(value) in net.plan.output_path
    if tensor.integral or (on_output_path and tensor.per_tensor):
        return tensor
    if _is_cut_for_sums(value):
        return tensor
    return net.requantized(value)


def _is_cut_for_sums(value: ir.Value | None) -> bool:
    """Whether a product of all steps of a recurrence is cut into rows, of which sums take some.

    These sums take accumulators, as they would take those of a product of each step.
    """
    assert value is not None
    node = value.producer()
    if node is None or node.op_type != "Gemm" or value.is_graph_output():
        return False
    readers = [use.node for use in value.uses()]
    takes_rows = all(
        reader.op_type == "Slice" and integers_of(reader, 3) == (0,)
        for reader in readers
    )
    return takes_rows and any(_is_for_a_sum(node) for node in readers)


def _is_for_a_sum(node: ir.Node) -> bool:
    readers = [use.node.op_type for use in node.outputs[0].uses()]
    return len(readers) == 1 and readers[0] in ("Add", "Sub")


@rule("Reshape")
def reshape(net: LoweringContext, node: ir.Node) -> None:
    """Write a reshape in the float model's order of axes, which defines its row-major order."""
    shape = shape_of(node.outputs[0])
    array = constant_of(node.inputs[0])
    if array is not None:
        _constant_output(net, node, array.reshape(shape))
        return
    x = net.to_float_layout(movable(net, node.inputs[0]))
    value = net.reshaped(x.value, shape)
    reshaped = replace(x, value=value, layout=identity(len(shape)))
    net.define(node.outputs[0], reshaped)


def _constant_output(
    net: LoweringContext, node: ir.Node, array: FloatArray
) -> None:
    """Write an output that is constant: booleans and integers as they are, other reals in 16 bits.

    A constant of a program has at least one axis, so it is reshaped.
    """
    layout = identity(array.ndim)
    if fits_integer(array):
        is_boolean = node.outputs[0].dtype == ir.DataType.BOOL
        integers = array.astype(np.bool_ if is_boolean else np.int32)
        handle = net.constant(integers)
        value = net.reshaped(handle, array.shape)
        net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))
        return
    interval = float(array.min()), float(array.max())
    target = net.format(node.outputs[0], interval=interval)
    handle = net.constant(quantized(array, target).astype(DTYPES[target.dtype]))
    value = net.reshaped(handle, array.shape)
    scale = np.array([target.scale])
    net.define(node.outputs[0], Tensor(value, scale, target.zero_point, layout))


@rule("Transpose")
def transpose(net: LoweringContext, node: ir.Node) -> None:
    """Change only the layout of the tensor, without an instruction."""
    x = movable(net, node.inputs[0])
    perm = tuple(node.attributes["perm"].as_ints())
    layout = tuple(perm.index(axis) for axis in x.layout)
    net.define(node.outputs[0], replace(x, layout=layout))


@rule("Slice")
def slice_(net: LoweringContext, node: ir.Node) -> None:
    """Write a contiguous slice, then every n-th element of axes with a step n; or a reverse."""
    x = movable(net, node.inputs[0])
    starts, stops, axes, steps = (
        integers_of(node, index) for index in (1, 2, 3, 4)
    )
    if steps == (-1,):
        value = net.builder.emit(
            "reverse", x.value, axis=x.layout.index(axes[0])
        )
        net.define(node.outputs[0], replace(x, value=value))
        return
    shape = net.shape(x)
    rank = len(shape)
    begin, size, strides = [0] * rank, list(shape), [1] * rank
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        physical = x.layout.index(axis % rank)
        count = -(-(stop - start) // step)
        begin[physical] = start
        size[physical] = (count - 1) * step + 1
        strides[physical] = step
    value = x.value
    if tuple(size) != shape:
        value = net.builder.emit(
            "slice", value, start=tuple(begin), size=tuple(size)
        )
    net.define(
        node.outputs[0], replace(x, value=_every_nth(net, value, strides))
    )


def _every_nth(
    net: LoweringContext, value: Handle, strides: list[int]
) -> Handle:
    """Return elements 0, n, 2n, ... of each axis.

    On the rows and columns of an image this is a pooling with a window of 1x1.
    """
    type_ = net.builder.types[value]
    batch_and_channels_stay = strides[0] == strides[-1] == 1
    is_image = type_.rank == 4 and type_.dtype in ("i8", "i16")
    if is_image and batch_and_channels_stay and strides != [1, 1, 1, 1]:
        return net.builder.emit(
            "max_pool2d",
            value,
            kernel=(1, 1),
            stride=(strides[1], strides[2]),
            pad=(0, 0, 0, 0),
        )
    for axis, step in enumerate(strides):
        if step > 1:
            value = _every_nth_of_axis(net, value, axis, step)
    return value


def _every_nth_of_axis(
    net: LoweringContext, value: Handle, axis: int, step: int
) -> Handle:
    """Return elements 0, n, 2n, ... of one axis.

    The axis is padded to a multiple of the step and split into [n/step, step], and the
    first element of each step is kept.
    """
    shape = net.builder.types[value].shape
    length = shape[axis]
    count = -(-length // step)
    before = int(np.prod(shape[:axis], dtype=np.int64))
    after = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    value = net.reshaped(value, (before, length, after))
    missing = count * step - length
    if missing > 0:
        pads = (0, 0, 0, missing, 0, 0)
        value = net.builder.emit("pad", value, pads=pads, value=0)
    value = net.reshaped(value, (before, count, step, after))
    size = (before, count, 1, after)
    value = net.builder.emit("slice", value, start=(0, 0, 0, 0), size=size)
    return net.reshaped(value, (*shape[:axis], count, *shape[axis + 1 :]))


@rule("Pad")
def pad(net: LoweringContext, node: ir.Node) -> None:
    """Pad with the integer that represents the constant.

    If x cannot represent the constant, it is requantized to the result's format first.
    """
    fill = require_constant(node, 2).item()
    x = _padded_operand(net, node, fill)
    pads = integers_of(node, 1)
    rank = len(x.layout)
    physical_pads: list[int] = []
    for axis in x.layout:
        physical_pads += (pads[axis], pads[axis + rank])
    value = x.value
    if any(physical_pads):
        point = _point(net, x, fill)
        value = net.builder.emit(
            "pad", value, pads=tuple(physical_pads), value=point
        )
    net.define(node.outputs[0], replace(x, value=value))


def _padded_operand(net: LoweringContext, node: ir.Node, fill: float) -> Tensor:
    """Return the operand of a Pad in a form that can represent the constant."""
    x = movable(net, node.inputs[0])
    if x.octaves is not None and fill != 0:
        x = net.as_computed(node.inputs[0])
    if x.integral and fill == int(fill) and abs(fill) < 2**31:
        least, most = DTYPE_RANGES[net.dtype(x)]
        return x if least <= fill <= most else net.cast_to(x, "i32")
    if _can_stand_for(net, x, fill):
        return x
    low, high = net.interval(x)
    interval = min(low, fill), max(high, fill)
    target = net.format(node.outputs[0], interval=interval)
    return net.requantize_to(net.as_computed(node.inputs[0]), target)


def _can_stand_for(net: LoweringContext, x: Tensor, real: float) -> bool:
    """Whether x can represent a real number: one in its interval, or 0.

    0 has an integer in every format. An integral value cannot represent a fraction.
    """
    if x.integral and real != int(real):
        return False
    if not x.low <= real <= x.high:
        return False
    proven = net.builder.bounds[x.value]
    steps = real / float(x.scale[0]) + x.zero_point
    return real == 0 or proven.min - 0.5 <= steps < proven.max + 0.5


def _point(net: LoweringContext, x: Tensor, real: float) -> int:
    """Return the nearest integer to a real number in x's dtype; of codes, the one of 0."""
    if x.octaves is not None:
        return FIRST
    dtype = net.dtype(x)
    format_ = Format(
        dtype, float(x.scale[0]), x.zero_point, *DTYPE_RANGES[dtype]
    )
    return quantized_point(real, format_)
