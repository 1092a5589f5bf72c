"""The same elements in another shape, or in another order of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.mxnet.literals import parse_integer
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    integer,
    integers,
    operator,
    optional_integer,
    optional_integers,
)


@operator("Flatten", "flatten")
def flatten(call: OperatorCall) -> ir.Value:
    """Write a matrix: the first axis, and all others as one."""
    return call.add("Flatten", call.data, axis=1)


@operator(
    "Reshape",
    "reshape",
    attributes={
        "shape": integers(),
        "reverse": boolean(False),
        "target_shape": integers(),
        "keep_highest": boolean(False),
    },
)
def reshape(call: OperatorCall) -> ir.Value:
    """Write a Reshape.

    0, -1, -2, -3 and -4 are resolved here: ONNX has only 0 and -1, and no reverse.
    """
    if call.ints_attribute("shape"):
        shape = _reshaped(
            call,
            call.shape(),
            call.ints_attribute("shape"),
            reverse=call.bool_attribute("reverse"),
        )
    else:
        shape = _target_shape(call)
    keeps_size = math.prod(call.shape()) == math.prod(shape)
    call.require(
        min(shape) > 0 and keeps_size,
        f"cannot reshape {call.shape()} to {tuple(shape)}",
    )
    return call.reshape(call.data, shape)


def _reshaped(
    call: OperatorCall,
    shape: Sequence[int],
    codes: Sequence[int],
    *,
    reverse: bool,
) -> list[int]:
    """Return the new shape.

    `reverse` reads the codes backwards, where the numbers of -4 stand in front of it.
    """
    if not reverse:
        return _forward(call, shape, codes)
    return _forward(call, shape[::-1], codes[::-1])[::-1]


def _forward(
    call: OperatorCall, shape: Sequence[int], codes: Sequence[int]
) -> list[int]:
    """Return the new shape, reading the codes forwards.

    0 copies a dimension, -1 is inferred, -2 copies the rest, -3 merges two, -4 splits one
    into the next two.
    """
    result: list[int] = []
    inferred = -1
    read = 0  # dimensions of the old shape
    position = 0
    while position < len(codes):
        code = codes[position]
        dimensions = shape[read : read + {-2: len(shape), -3: 2}.get(code, 1)]
        read += len(dimensions)
        enough = code > 0 or len(dimensions) >= {-1: 0, -2: 0, -3: 2}.get(
            code, 1
        )
        call.require(
            enough,
            f"shape={tuple(codes)} names more dimensions than {tuple(shape)} has",
        )
        match code:
            case 0 | -2:
                result += dimensions
            case -1:
                # MXNet writes the inferred number at the position of the code, which
                # differs after -2 and -4.
                call.require(
                    inferred < 0 and position == len(result),
                    "-1 twice, or after -2 or -4, in shape",
                )
                inferred = len(result)
                result.append(1)
            case -3:
                result.append(math.prod(dimensions))
            case -4:
                result += _split(
                    call, dimensions[0], codes[position + 1 : position + 3]
                )
                position += 2
            case _:
                call.require(code > 0, f"shape holds {code}")
                result.append(code)
        position += 1
    if inferred >= 0:
        result[inferred] = math.prod(shape) // max(math.prod(result), 1)
    return result


def _split(
    call: OperatorCall, dimension: int, parts: Sequence[int]
) -> list[int]:
    call.require(
        len(parts) == 2 and tuple(parts) != (-1, -1),
        "-4 in shape needs two numbers after it, one known",
    )
    left, right = parts
    if left == -1:
        left = dimension // max(right, 1)
    if right == -1:
        right = dimension // max(left, 1)
    call.require(
        left > 0 and right > 0 and left * right == dimension,
        f"cannot split {dimension} into {tuple(parts)}",
    )
    return [left, right]


def _target_shape(call: OperatorCall) -> list[int]:
    """Return the shape by the oldest attributes.

    One 0 is inferred; keep_highest copies the first size.
    """
    shape = list(call.ints_attribute("target_shape"))
    call.require(bool(shape), "attribute 'shape' is missing")
    if call.bool_attribute("keep_highest"):
        shape[0] = call.shape()[0]
    if shape.count(0) == 1:
        index = shape.index(0)
        shape[index] = 1
        shape[index] = math.prod(call.shape()) // max(math.prod(shape), 1)
    return shape


@operator(
    "reshape_like",
    attributes={
        name: optional_integer()
        for name in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")
    },
    slots=("lhs", "rhs"),
)
def reshape_like(call: OperatorCall) -> ir.Value:
    """Replace some dimensions in a row by dimensions of the other input; by default, all by all."""
    shape, other_shape = call.shape(), call.shape(call.inputs[1])
    replaced = _range(call, "lhs", len(shape))
    replacement = _range(call, "rhs", len(other_shape))
    result = [
        *shape[: replaced.start],
        *other_shape[replacement],
        *shape[replaced.stop :],
    ]
    call.require(
        math.prod(result) == math.prod(shape),
        f"cannot reshape {shape} to {tuple(result)}",
    )
    return call.reshape(call.data, result)


def _range(call: OperatorCall, side: str, rank: int) -> slice:
    begin = call.optional_int_attribute(f"{side}_begin")
    end = call.optional_int_attribute(f"{side}_end")
    first = 0 if begin is None else begin
    last = rank if end is None else end
    if first < 0:
        first += rank
    if last < 0:
        last += rank
    fits = 0 <= first < last <= rank
    call.require(
        fits,
        f"{side}_begin={begin}, {side}_end={end} of {rank} dimensions: expected some of them",
    )
    return slice(first, last)


@operator("transpose", attributes={"axes": integers()})
def transpose(call: OperatorCall) -> ir.Value:
    """Write the axes in another order, by default reversed."""
    rank = len(call.shape())
    axes = call.ints_attribute("axes") or tuple(reversed(range(rank)))
    call.require(
        sorted(axes) == [*range(rank)],
        f"axes={axes} is no order of {rank} dimensions",
    )
    return call.add("Transpose", call.data, perm=list(axes))


@operator(
    "SwapAxis", "swapaxes", attributes={"dim1": integer(0), "dim2": integer(0)}
)
def swap_axis(call: OperatorCall) -> ir.Value:
    """Exchange two axes."""
    first = call.axis_attribute("dim1")
    second = call.axis_attribute("dim2")
    axes = [*range(len(call.shape()))]
    axes[first], axes[second] = axes[second], axes[first]
    return call.add("Transpose", call.data, perm=axes)


@operator(
    "expand_dims", attributes={"axis": Attribute(parse_integer, required=True)}
)
def expand_dims(call: OperatorCall) -> ir.Value:
    """Insert a new axis of size 1."""
    shape = list(call.shape())
    shape.insert(call.axis(call.int_attribute("axis"), len(shape) + 1), 1)
    return call.reshape(call.data, shape)


@operator("squeeze", attributes={"axis": optional_integers()})
def squeeze(call: OperatorCall) -> ir.Value:
    """Drop axes of size 1: all of them, or those given, which may be none. One axis remains."""
    shape = call.shape()
    signed_axes = call.ints_attribute("axis")
    every = call.values["axis"] is None
    axes = {call.axis(axis) for axis in signed_axes}
    if every:
        axes = {axis for axis, size in enumerate(shape) if size == 1}
    call.require(
        all(shape[axis] == 1 for axis in axes),
        f"axis={signed_axes} of shape {shape} is not of size 1",
    )
    call.require(
        every or len(axes) == len(signed_axes),
        f"axis={signed_axes} names an axis twice",
    )
    sizes = [size for axis, size in enumerate(shape) if axis not in axes]
    return call.reshape(call.data, sizes or [1])
