"""slice and its relatives, split and crop; each result is an ONNX Slice with constant bounds."""

from __future__ import annotations

from itertools import pairwise

import onnx_ir as ir

from mrt.frontend.mxnet.literals import parse_integer
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Values,
    boolean,
    count,
    indices,
    integer,
    integers,
    operator,
)


def slice_axes(
    call: OperatorCall, taken: dict[int, slice], value: ir.Value | None = None
) -> ir.Value:
    """Write a Slice with one Python slice for each axis; the value is the first input by default.

    All bounds lie inside the axis, except the end of a backward slice that includes the
    first element.
    """
    value = call.data if value is None else value
    shape = call.shape(value)
    begins, ends, steps = [], [], []
    for axis, bounds in taken.items():
        begin, end, step = bounds.indices(shape[axis])
        begins.append(begin)
        ends.append(end if end >= 0 else -shape[axis] - 1)
        steps.append(step)
    operands = [
        call.constant(numbers) for numbers in (begins, ends, [*taken], steps)
    ]
    return call.add("Slice", value, *operands)


@operator(
    "slice",
    "crop",
    "_sparse_slice",
    attributes={
        "begin": indices(),
        "end": indices(),
        "step": indices(required=False),
    },
)
def slice_(call: OperatorCall) -> ir.Value:
    """Slice the first axes as numpy does; None is the default of each bound."""
    begins = call.optional_ints_attribute("begin")
    ends = call.optional_ints_attribute("end")
    shape = call.shape()
    steps = call.optional_ints_attribute("step") or (None,) * len(begins)
    fits = 0 < len(begins) == len(ends) == len(steps) <= len(shape)
    call.require(
        fits,
        f"begin, end and step of {len(begins)}, {len(ends)} and {len(steps)} items on shape {shape}",
    )
    call.require(0 not in steps, "step holds 0")
    slices = [
        slice(begin, end, step)
        for begin, end, step in zip(begins, ends, steps, strict=True)
    ]
    return slice_axes(call, dict(enumerate(slices)))


@operator(
    "slice_axis",
    attributes={
        "axis": Attribute(parse_integer, required=True),
        "begin": Attribute(parse_integer, required=True),
        "end": Attribute(parse_integer, required=True, none_allowed=True),
    },
)
def slice_axis(call: OperatorCall) -> ir.Value:
    """Write the elements from begin to end of one axis; refuse bounds outside, as MXNet does."""
    axis = call.axis_attribute()
    begin = call.int_attribute("begin")
    end = call.optional_int_attribute("end")
    size = call.shape()[axis]
    if begin < 0:
        begin += size
    if end is None:
        end = size
    elif end < 0:
        end += size
    call.require(
        0 <= begin < end <= size,
        f"begin={begin}, end={end} on an axis of size {size}",
    )
    return slice_axes(call, {axis: slice(begin, end)})


@operator(
    "slice_like", attributes={"axes": integers()}, slots=("data", "shape_like")
)
def slice_like(call: OperatorCall) -> ir.Value:
    """Write the first elements of each given axis, as many as the other input has.

    All axes are sliced if none is given. A negative axis counts from the end of the first
    input, in both inputs.
    """
    shape, other_shape = call.shape(), call.shape(call.inputs[1])
    axes = call.ints_attribute("axes")
    if not axes:
        call.require(
            len(shape) == len(other_shape),
            f"shapes {shape} and {other_shape} have different numbers of dimensions",
        )
        axes = tuple(range(len(shape)))
    distinct_axes = dict.fromkeys(call.axis(axis) for axis in axes)
    for axis in distinct_axes:
        call.require(
            axis < len(other_shape),
            f"axis {axis} is outside the {len(other_shape)} dimensions of the other input",
        )
    for axis in distinct_axes:
        call.require(
            other_shape[axis] <= shape[axis],
            f"axis {axis} of {shape} is smaller than that of {other_shape}",
        )
    return slice_axes(
        call, {axis: slice(0, other_shape[axis]) for axis in distinct_axes}
    )


def _number(values: Values, name: str) -> int:
    number = values[name]
    assert isinstance(number, int)
    return number


@operator(
    "SliceChannel",
    "split",
    attributes={
        "num_outputs": count(),
        "axis": integer(1),
        "squeeze_axis": boolean(False),
    },
    outputs=lambda values: _number(values, "num_outputs"),
)
def slice_channel(call: OperatorCall) -> list[ir.Value]:
    """Write equal parts of an axis, each as a Slice.

    squeeze_axis drops the axis, which must then have size 1.
    """
    number = call.int_attribute("num_outputs")
    axis = call.axis_attribute()
    shape = call.shape()
    call.require(
        shape[axis] % number == 0,
        f"num_outputs={number} does not divide axis {axis} of size {shape[axis]}",
    )
    size = shape[axis] // number
    return _parts(call, [index * size for index in range(number + 1)])


def _sections() -> Attribute:
    """Declare the number of parts; at 0, the indices determine them."""

    def parse(text: str) -> int:
        value = parse_integer(text)
        if not 0 <= value <= 10_000:
            raise ValueError("expected an integer from 0 to 10000")
        return value

    return Attribute(parse, 0)


def _split_outputs(values: Values) -> int:
    cuts = values["indices"]
    assert isinstance(cuts, tuple)
    return _number(values, "sections") or max(len(cuts), 1)


@operator(
    "_split_v2",
    attributes={
        "indices": integers(None),
        "axis": integer(1),
        "squeeze_axis": boolean(False),
        "sections": _sections(),
    },
    outputs=_split_outputs,
)
def split_v2(call: OperatorCall) -> list[ir.Value]:
    """Split as numpy does, into parts that begin at each index, or into sections.

    The first index is 0. Where sections differ in size, the first ones are longer.
    """
    sections = call.int_attribute("sections")
    begins = call.ints_attribute("indices")
    size = call.shape()[call.axis_attribute()]
    if sections:
        call.require(
            sections <= size, f"sections={sections} on an axis of size {size}"
        )
        least, longer = divmod(size, sections)
        return _parts(
            call,
            [
                index * least + min(index, longer)
                for index in range(sections + 1)
            ],
        )
    bounds = [*begins, size]
    is_ascending = all(begin < end for begin, end in pairwise(bounds))
    call.require(
        begins[:1] == (0,) and is_ascending,
        f"indices={begins} on an axis of size {size}: expected 0 first, then ever larger ones",
    )
    return _parts(call, bounds)


def _parts(call: OperatorCall, bounds: list[int]) -> list[ir.Value]:
    axis = call.axis_attribute()
    shape = call.shape()
    parts = [
        slice_axes(call, {axis: slice(begin, end)})
        for begin, end in pairwise(bounds)
    ]
    if not call.bool_attribute("squeeze_axis"):
        return parts
    largest = max(end - begin for begin, end in pairwise(bounds))
    call.require(largest == 1, f"squeeze_axis=True on parts of size {largest}")
    call.require(
        len(shape) > 1,
        "squeeze_axis=True leaves no dimension, which to MXNet is an unknown shape",
    )
    rest = [*shape[:axis], *shape[axis + 1 :]]
    return [call.reshape(part, rest) for part in parts]


def _crop_slots(values: Values) -> tuple[str, ...]:
    return ("data", "crop_like")[: _number(values, "num_args")]


@operator(
    "Crop",
    attributes={
        "num_args": Attribute(count().parse, required=True, only=(1, 2)),
        "offset": integers((0, 0)),
        "h_w": integers((0, 0)),
        "center_crop": boolean(False),
    },
    slots=_crop_slots,
)
def crop(call: OperatorCall) -> ir.Value:
    """Write a window of rows and columns, at an offset or in the middle.

    It is as large as h_w or as the second input.
    """
    call.require_rank(4, 4)
    rows, columns = call.shape()[2:]
    size, offset = call.ints_attribute("h_w"), call.ints_attribute("offset")
    if len(call.inputs) == 2:
        reference = call.shape(call.inputs[1])
        call.require(
            len(reference) == 4,
            f"crop_like of shape {reference}: expected 4 dimensions",
        )
        size = reference[2:]
    call.require(
        len(size) == len(offset) == 2,
        f"h_w={size}, offset={offset}: expected 2 numbers each",
    )
    call.require(
        0 < size[0] <= rows and 0 < size[1] <= columns,
        f"h_w={size} on an input of shape {call.shape()}",
    )
    if call.bool_attribute("center_crop"):
        offset = (rows - size[0]) // 2, (columns - size[1]) // 2
    inside = (
        0 <= offset[0] <= rows - size[0] and 0 <= offset[1] <= columns - size[1]
    )
    call.require(
        inside,
        f"offset={offset}, h_w={size} leaves an input of shape {call.shape()}",
    )
    return slice_axes(
        call,
        {
            2 + axis: slice(offset[axis], offset[axis] + size[axis])
            for axis in (0, 1)
        },
    )
