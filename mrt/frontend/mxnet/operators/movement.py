"""Joining, repeating, reordering and padding; every result holds copies of elements, or padding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    all_inputs,
    choice,
    count,
    integer,
    integers,
    operator,
    optional_integer,
    optional_integers,
    positive,
    real,
)
from mrt.frontend.mxnet.operators.slicing import slice_axes


@operator(
    "Concat",
    "concat",
    "_sparse_concat",
    attributes={"num_args": count(), "dim": integer(1)},
    slots=all_inputs,
)
def concat(call: OperatorCall) -> ir.Value:
    """Join the inputs along an axis."""
    return call.add("Concat", *call.inputs, axis=call.axis_attribute("dim"))


@operator(
    "stack",
    attributes={"num_args": count(), "axis": integer(0)},
    slots=all_inputs,
)
def stack(call: OperatorCall) -> ir.Value:
    """Join the inputs along a new axis."""
    shape = call.shape()
    axis = call.axis(call.int_attribute("axis"), len(shape) + 1)
    for value in call.inputs:
        other = call.shape(value)
        call.require(other == shape, f"shapes {shape} and {other} differ")
    layer = [*shape[:axis], 1, *shape[axis:]]
    layers = [call.reshape(value, layer) for value in call.inputs]
    return call.add("Concat", *layers, axis=axis)


@operator("tile", attributes={"reps": integers(None)})
def tile(call: OperatorCall) -> ir.Value:
    """Repeat as numpy.tile does: the shorter of shape and reps gets ones in front."""
    shape = call.shape()
    reps = call.ints_attribute("reps")
    call.require(
        min(reps, default=1) > 0, f"reps={reps}: expected positive numbers"
    )
    missing_axes = max(len(reps) - len(shape), 0)
    missing_reps = max(len(shape) - len(reps), 0)
    data = call.data
    if missing_axes:
        data = call.reshape(data, [1] * missing_axes + list(shape))
    repeats = call.constant([1] * missing_reps + list(reps))
    return call.add("Tile", data, repeats)


@operator(
    "repeat", attributes={"repeats": positive(), "axis": optional_integer()}
)
def repeat(call: OperatorCall) -> ir.Value:
    """Repeat each element several times in a row along the axis.

    Without an axis, the flattened input is repeated.
    """
    repeats = call.int_attribute("repeats")
    signed_axis = call.optional_int_attribute("axis")
    shape = call.shape()
    if signed_axis is None:
        shape = (math.prod(shape),)
    axis = call.axis(signed_axis or 0, len(shape))
    leading, trailing = shape[: axis + 1], shape[axis + 1 :]
    separate = call.reshape(call.data, [*leading, 1, *trailing])
    times = [1] * (len(shape) + 1)
    times[axis + 1] = repeats
    tiled = call.add("Tile", separate, call.constant(times))
    result = list(shape)
    result[axis] *= repeats
    return call.reshape(tiled, result)


@operator("reverse", "flip", attributes={"axis": integers(None)})
def reverse(call: OperatorCall) -> ir.Value:
    """Reverse the order of the elements along the axes."""
    signed_axes = call.ints_attribute("axis")
    axes = [call.axis(axis) for axis in signed_axes]
    if not axes:
        return call.add("Identity", call.data)
    call.require(
        len(set(axes)) == len(axes),
        f"axis={signed_axes}: expected distinct axes",
    )
    backwards = slice(None, None, -1)
    return slice_axes(call, dict.fromkeys(axes, backwards))


@operator("broadcast_to", attributes={"shape": integers()})
def broadcast_to(call: OperatorCall) -> ir.Value:
    """Expand dimensions of 1 to a shape; a 0 in the shape keeps a dimension."""
    shape = call.shape()
    target_shape = call.ints_attribute("shape")
    call.require(
        len(shape) == len(target_shape),
        f"shape={target_shape} for an input of shape {shape}",
    )
    result = [new or old for new, old in zip(target_shape, shape, strict=True)]
    return _expand(call, result)


def _expand(call: OperatorCall, result: Sequence[int]) -> ir.Value:
    """Broadcast the first input to a shape of the same rank."""
    shape = call.shape()
    sizes = zip(shape, result, strict=True)
    fits = all(old in (1, new) and new > 0 for old, new in sizes)
    call.require(
        fits,
        f"an input of shape {shape} cannot be broadcast to {tuple(result)}",
    )
    return call.add("Expand", call.data, call.constant(list(result)))


@operator(
    "broadcast_axis",
    "broadcast_axes",
    attributes={"axis": integers(), "size": integers()},
)
def broadcast_axis(call: OperatorCall) -> ir.Value:
    """Expand axes of size 1 to the sizes in the attribute."""
    axes = call.ints_attribute("axis")
    sizes = call.ints_attribute("size")
    call.require(
        len(axes) == len(sizes),
        f"axis={axes} and size={sizes} have different lengths",
    )
    result = list(call.shape())
    for signed_axis, size in zip(axes, sizes, strict=True):
        axis = call.axis(signed_axis)
        call.require(
            result[axis] == 1,
            f"axis {signed_axis} has size {result[axis]}; expected 1, "
            f"to be broadcast to {size}",
        )
        result[axis] = size
    return _expand(call, result)


@operator(
    "broadcast_like",
    attributes={
        "lhs_axes": optional_integers(),
        "rhs_axes": optional_integers(),
    },
    slots=("lhs", "rhs"),
)
def broadcast_like(call: OperatorCall) -> ir.Value:
    """Expand the first input to the shape of the second, or some of its axes to sizes of some."""
    result = list(call.shape())
    target_shape = call.shape(call.inputs[1])
    if call.values["lhs_axes"] is None and call.values["rhs_axes"] is None:
        call.require(
            len(result) == len(target_shape),
            f"shapes {tuple(result)} and {target_shape} have different ranks",
        )
        return _expand(call, target_shape)
    left_axes = call.ints_attribute("lhs_axes")
    right_axes = call.ints_attribute("rhs_axes")
    call.require(
        len(left_axes) == len(right_axes) > 0,
        f"lhs_axes={left_axes} and rhs_axes={right_axes}: expected as many of each",
    )
    for left_axis, right_axis in zip(left_axes, right_axes, strict=True):
        result[call.axis(left_axis)] = target_shape[
            call.axis(right_axis, len(target_shape))
        ]
    return _expand(call, result)


@operator("depth_to_space", attributes={"block_size": positive()})
def depth_to_space(call: OperatorCall) -> ir.Value:
    """Turn channels into blocks of pixels; the block is the slower index (DCR)."""
    return _blocks(call, "DepthToSpace", {"mode": "DCR"})


@operator("space_to_depth", attributes={"block_size": positive()})
def space_to_depth(call: OperatorCall) -> ir.Value:
    """Turn blocks of pixels into channels."""
    return _blocks(call, "SpaceToDepth", {})


def _blocks(
    call: OperatorCall, name: str, attributes: dict[str, str]
) -> ir.Value:
    call.require_rank(4, 4)
    block = call.int_attribute("block_size")
    _, channels, rows, columns = call.shape()
    fits = {
        "DepthToSpace": channels % block**2 == 0,
        "SpaceToDepth": rows % block == columns % block == 0,
    }
    call.require(
        fits[name],
        f"block_size={block} does not divide an input of shape {call.shape()}",
    )
    return call.add(name, call.data, blocksize=block, **attributes)


@operator(
    "Pad",
    "pad",
    attributes={
        "mode": choice("constant", "edge", "reflect", required=True),
        "pad_width": integers(None),
        "constant_value": real(0.0),
    },
)
def pad(call: OperatorCall) -> ir.Value:
    """Write a Pad.

    pad_width lists (before, after) of each axis; ONNX lists all before, then all after.
    """
    width = call.ints_attribute("pad_width")
    shape = call.shape()
    call.require(
        len(width) == 2 * len(shape),
        f"pad_width={width} does not fit an input of shape {shape}",
    )
    call.require(min(width) >= 0, f"pad_width={width} is negative")
    mode = call.string_attribute("mode")
    if mode == "reflect":
        fits = all(
            amount < shape[index // 2] for index, amount in enumerate(width)
        )
        call.require(
            fits,
            f"pad_width={width} reflects more than an input of shape {shape} has",
        )
    value = None
    if mode == "constant":
        value = call.constant(call.float_attribute("constant_value"))
    pads = call.constant(width[0::2] + width[1::2])
    operands = [call.data, pads] if value is None else [call.data, pads, value]
    return call.add("Pad", *operands, mode=mode)
