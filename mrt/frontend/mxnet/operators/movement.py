"""Joining, repeating, reordering and padding: every result is a copy of an element, or the padding."""

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
    """One after the other along an axis."""
    return call.add("Concat", *call.inputs, axis=call.axis(call.int_attribute("dim")))


@operator(
    "stack", attributes={"num_args": count(), "axis": integer(0)}, slots=all_inputs
)
def stack(call: OperatorCall) -> ir.Value:
    """One after the other along a new axis."""
    shape = call.shape()
    axis = call.axis(call.int_attribute("axis"), len(shape) + 1)
    for value in call.inputs:
        call.require(
            call.shape(value) == shape, f"shapes {shape} and {call.shape(value)} differ"
        )
    layered = [
        call.reshape(value, [*shape[:axis], 1, *shape[axis:]]) for value in call.inputs
    ]
    return call.add("Concat", *layered, axis=axis)


@operator("tile", attributes={"reps": integers(None)})
def tile(call: OperatorCall) -> ir.Value:
    """As numpy: the shorter of shape and reps gets ones in front."""
    shape, reps = call.shape(), call.ints_attribute("reps")
    call.require(min(reps, default=1) > 0, f"reps={reps}: expected positive numbers")
    rank = max(len(shape), len(reps))
    data = (
        call.data
        if rank == len(shape)
        else call.reshape(call.data, [*[1] * (rank - len(shape)), *shape])
    )
    return call.add("Tile", data, call.constant([*[1] * (rank - len(reps)), *reps]))


@operator("repeat", attributes={"repeats": positive(), "axis": optional_integer()})
def repeat(call: OperatorCall) -> ir.Value:
    """Every element along the axis several times in a row; without an axis, of the flattened input."""
    repeats, given = call.int_attribute("repeats"), call.optional_int_attribute("axis")
    shape = call.shape() if given is not None else (math.prod(call.shape()),)
    axis = call.axis(given or 0, len(shape))
    apart = call.reshape(call.data, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    times = [1] * (len(shape) + 1)
    times[axis + 1] = repeats
    tiled = call.add("Tile", apart, call.constant(times))
    return call.reshape(
        tiled, [*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]]
    )


@operator("reverse", "flip", attributes={"axis": integers(None)})
def reverse(call: OperatorCall) -> ir.Value:
    """Backwards along the axes."""
    axes = [call.axis(axis) for axis in call.ints_attribute("axis")]
    if not axes:
        return call.add("Identity", call.data)
    call.require(
        len(set(axes)) == len(axes),
        f"axis={call.ints_attribute('axis')}: expected distinct axes",
    )
    return slice_axes(call, {axis: slice(None, None, -1) for axis in axes})


def _expand(
    call: OperatorCall, shape: Sequence[int], data: ir.Value | None = None
) -> ir.Value:
    return call.add(
        "Expand", call.data if data is None else data, call.constant(list(shape))
    )


@operator("broadcast_to", attributes={"shape": integers()})
def broadcast_to(call: OperatorCall) -> ir.Value:
    """0 keeps a dimension; only dimensions of 1 grow."""
    found, wanted = call.shape(), call.ints_attribute("shape")
    call.require(
        len(found) == len(wanted), f"shape={wanted} for an input of shape {found}"
    )
    result = [size or old for size, old in zip(wanted, found, strict=True)]
    return _grow(call, result)


def _grow(call: OperatorCall, result: Sequence[int]) -> ir.Value:
    found = call.shape()
    fits = all(
        old in (1, size) and size > 0 for old, size in zip(found, result, strict=True)
    )
    call.require(
        fits, f"an input of shape {found} cannot be broadcast to {tuple(result)}"
    )
    return _expand(call, result)


@operator(
    "broadcast_axis",
    "broadcast_axes",
    attributes={"axis": integers(), "size": integers()},
)
def broadcast_axis(call: OperatorCall) -> ir.Value:
    """Axes of size 1 get the sizes given."""
    axes, sizes, result = (
        call.ints_attribute("axis"),
        call.ints_attribute("size"),
        list(call.shape()),
    )
    call.require(
        len(axes) == len(sizes), f"axis={axes} and size={sizes} have different lengths"
    )
    for axis, size in zip(axes, sizes, strict=True):
        found = result[call.axis(axis)]
        call.require(
            found == 1,
            f"axis {axis} has size {found}; expected 1, to be broadcast to {size}",
        )
        result[call.axis(axis)] = size
    return _grow(call, result)


@operator(
    "broadcast_like",
    attributes={"lhs_axes": optional_integers(), "rhs_axes": optional_integers()},
    slots=("lhs", "rhs"),
)
def broadcast_like(call: OperatorCall) -> ir.Value:
    """To the shape of the other input, or only some axes to the sizes of some of its axes."""
    result, wanted = list(call.shape()), call.shape(call.inputs[1])
    if call.values["lhs_axes"] is None and call.values["rhs_axes"] is None:
        call.require(
            len(result) == len(wanted),
            f"shapes {tuple(result)} and {wanted} have different ranks",
        )
        return _grow(call, wanted)
    ours, theirs = call.ints_attribute("lhs_axes"), call.ints_attribute("rhs_axes")
    call.require(
        len(ours) == len(theirs) > 0,
        f"lhs_axes={ours} and rhs_axes={theirs}: expected as many of each",
    )
    for left, right in zip(ours, theirs, strict=True):
        result[call.axis(left)] = wanted[call.axis(right, len(wanted))]
    return _grow(call, result)


@operator("depth_to_space", attributes={"block_size": positive()})
def depth_to_space(call: OperatorCall) -> ir.Value:
    """Channels become blocks of pixels; the block is the slower index (DCR)."""
    return _blocks(call, "DepthToSpace", {"mode": "DCR"})


@operator("space_to_depth", attributes={"block_size": positive()})
def space_to_depth(call: OperatorCall) -> ir.Value:
    """Blocks of pixels become channels."""
    return _blocks(call, "SpaceToDepth", {})


def _blocks(call: OperatorCall, name: str, attributes: dict[str, str]) -> ir.Value:
    call.require_rank(4, 4)
    block = call.int_attribute("block_size")
    _, channels, rows, columns = call.shape()
    fits = (
        channels % block**2 == 0
        if name == "DepthToSpace"
        else rows % block == columns % block == 0
    )
    call.require(
        fits, f"block_size={block} does not divide an input of shape {call.shape()}"
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
    """pad_width is (before, after) per axis; ONNX wants all before, then all after."""
    width, shape = list(call.ints_attribute("pad_width")), call.shape()
    call.require(
        len(width) == 2 * len(shape),
        f"pad_width={tuple(width)} does not fit an input of shape {shape}",
    )
    call.require(min(width) >= 0, f"pad_width={tuple(width)} is negative")
    mode = call.string_attribute("mode")
    if mode == "reflect":
        fits = all(amount < shape[index // 2] for index, amount in enumerate(width))
        call.require(
            fits,
            f"pad_width={tuple(width)} reflects more than an input of shape {shape} has",
        )
    value = (
        [call.constant(call.float_attribute("constant_value"))]
        if mode == "constant"
        else []
    )
    return call.add(
        "Pad", call.data, call.constant(width[0::2] + width[1::2]), *value, mode=mode
    )
