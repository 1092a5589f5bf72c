"""Boxes themselves: priors on a grid, decoding, overlaps, pooling of regions. A box is its corners or its centre and extent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    boolean,
    choice,
    integer,
    integers,
    operator,
    real,
    reals,
)
from mrt.frontend.mxnet.params import Array

FORMATS = ("corner", "center")


def halves(call: OperatorCall, boxes: ir.Value) -> list[ir.Value]:
    """The first two and the last two numbers of every box."""
    axis = len(call.shape(boxes)) - 1
    return call.add_all("Split", boxes, call.constant([2, 2]), axis=axis, outputs=2)


def _joined(call: OperatorCall, parts: Sequence[ir.Value]) -> ir.Value:
    return call.add("Concat", *parts, axis=len(call.shape(parts[0])) - 1)


def to_corner(call: OperatorCall, boxes: ir.Value) -> ir.Value:
    """(centre, extent) -> (corner, opposite corner)."""
    center, extent = halves(call, boxes)
    half = call.add("Mul", extent, call.constant(0.5))
    return _joined(call, [call.add("Sub", center, half), call.add("Add", center, half)])


def to_center(call: OperatorCall, boxes: ir.Value) -> ir.Value:
    """(corner, opposite corner) -> (centre, extent)."""
    corner, opposite = halves(call, boxes)
    center = call.add("Mul", call.add("Add", corner, opposite), call.constant(0.5))
    return _joined(call, [center, call.add("Sub", opposite, corner)])


def decode(
    call: OperatorCall,
    offsets: ir.Value,
    anchors: ir.Value,
    deviations: Sequence[float],
    most: float = 0.0,
) -> ir.Value:
    """Corners of anchors (centre, extent) moved and stretched: by offset * extent, by exp(offset), at most `most` if above 0."""
    shift, stretch = halves(call, offsets)
    center, extent = halves(call, anchors)
    shift = call.add("Mul", shift, call.constant(list(deviations[:2])))
    stretch = call.add("Mul", stretch, call.constant(list(deviations[2:])))
    if most > 0:
        stretch = call.add("Min", stretch, call.constant(most))
    middle = call.add("Add", call.add("Mul", shift, extent), center)
    half = call.add(
        "Mul", call.add("Exp", stretch), call.add("Mul", extent, call.constant(0.5))
    )
    return _joined(call, [call.add("Sub", middle, half), call.add("Add", middle, half)])


@operator(
    "_contrib_box_decode",
    attributes={
        **{f"std{index}": real(1.0) for index in range(4)},
        "clip": real(-1.0),
        "format": choice(*FORMATS, default="center"),
    },
    slots=("data", "anchors"),
)
def box_decode(call: OperatorCall) -> ir.Value:
    """Corners, from offsets and from anchors in the given format."""
    call.require_rank(3, 3)
    batch, count, width = call.shape()
    anchors = call.parameter(1, (1, count, 4), (batch, count, 4))
    call.require(
        width == 4, f"data of shape {call.shape()}: expected four numbers a box"
    )
    if call.string_attribute("format") == "corner":
        anchors = to_center(call, anchors)
    return decode(
        call,
        call.data,
        anchors,
        [call.float_attribute(f"std{index}") for index in range(4)],
        call.float_attribute("clip"),
    )


@operator(
    "_contrib_box_iou",
    attributes={"format": choice(*FORMATS, default="corner")},
    slots=("lhs", "rhs"),
)
def box_iou(call: OperatorCall) -> ir.Value:
    """The intersection over the union of every box on the left with every one on the right; 0 where the union is empty."""
    shapes = [call.shape(value) for value in call.inputs]
    call.require(
        all(shape[-1:] == (4,) for shape in shapes),
        f"boxes of shapes {shapes}: expected four numbers each",
    )
    counts = [math.prod(shape[:-1]) for shape in shapes]
    left, right = (
        call.reshape(value, size)
        for value, size in zip(
            call.inputs, ([counts[0], 1, 4], [1, counts[1], 4]), strict=True
        )
    )
    if call.string_attribute("format") == "center":
        left, right = to_corner(call, left), to_corner(call, right)
    (a, b), (c, d) = halves(call, left), halves(call, right)
    both = _area(call, call.add("Max", a, c), call.add("Min", b, d))
    either = call.add(
        "Sub", call.add("Add", _area(call, a, b), _area(call, c, d)), both
    )
    exists = call.add("Greater", either, call.constant(0.0))
    share = call.add("Div", both, call.add("Where", exists, either, call.constant(1.0)))
    return call.reshape(share, [*shapes[0][:-1], *shapes[1][:-1]])


def _area(call: OperatorCall, corner: ir.Value, opposite: ir.Value) -> ir.Value:
    sides = call.add("Relu", call.add("Sub", opposite, corner))
    return call.add("ReduceProd", sides, call.constant([2]), keepdims=0)


@operator(
    "_contrib_MultiBoxPrior",
    attributes={
        "sizes": reals((1.0,)),
        "ratios": reals((1.0,)),
        "clip": boolean(False),
        "steps": reals((-1.0, -1.0)),
        "offsets": reals((0.5, 0.5)),
    },
)
def multi_box_prior(call: OperatorCall) -> ir.Value:
    """Corners around every place of the map: each size at the first ratio, then the first size at each other ratio."""
    call.require_rank(4, 4)
    sizes, ratios, steps, offsets = (
        call.floats_attribute(name) for name in ("sizes", "ratios", "steps", "offsets")
    )
    call.require(
        bool(sizes) and bool(ratios),
        f"sizes={sizes}, ratios={ratios}: expected at least one of each",
    )
    call.require(
        len(steps) == len(offsets) == 2,
        f"steps={steps}, offsets={offsets}: expected two numbers each",
    )
    call.require(
        min(steps) > 0 or steps == (-1.0, -1.0),
        f"steps={steps}: expected positive numbers, or none",
    )
    height, width = call.shape()[2:]
    shapes = len(sizes) + len(ratios) - 1
    call.builder.require_space(height * width * shapes * 4)
    boxes = _priors(
        height,
        width,
        [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]],
        steps,
        offsets,
    )
    if call.bool_attribute("clip"):
        boxes = boxes.clip(0, 1)
    return call.add("Identity", call.array(boxes))


def _priors(
    height: int,
    width: int,
    shapes: list[tuple[float, float]],
    steps: Sequence[float],
    offsets: Sequence[float],
) -> Array:
    """[1, height*width*shapes, 4] in float32, reckoned as MXNet does."""
    one = np.float32
    down, across = (
        one(step) if step > 0 else one(1) / one(size)
        for step, size in zip(steps, (height, width), strict=True)
    )
    y = (np.arange(height, dtype=one) + one(offsets[0])) * down
    x = (np.arange(width, dtype=one) + one(offsets[1])) * across
    roots = [(one(size), np.sqrt(one(ratio))) for size, ratio in shapes]
    half_widths = np.array(
        [size * one(height) / one(width) * root / one(2) for size, root in roots], one
    )
    half_heights = np.array([size / root / one(2) for size, root in roots], one)
    boxes = np.empty((height, width, len(shapes), 4), one)
    for corner, sign in ((0, -1), (2, 1)):
        boxes[..., corner] = x[None, :, None] + one(sign) * half_widths
        boxes[..., corner + 1] = y[:, None, None] + one(sign) * half_heights
    return boxes.reshape(1, -1, 4)


@operator(
    "_contrib_ROIAlign",
    attributes={
        "pooled_size": integers(None),
        "spatial_scale": real(),
        "sample_ratio": integer(-1),
        "position_sensitive": boolean(False, only=(False,)),
        "aligned": boolean(False),
    },
    slots=("data", "rois"),
)
def roi_align(call: OperatorCall) -> ir.Value:
    """ONNX's RoiAlign by averages. Rows of rois are the number of an image and the corners of a region of it."""
    call.require_rank(4, 4)
    size = call.ints_attribute("pooled_size")
    call.require(
        len(size) == 2 and min(size) >= 1,
        f"pooled_size={size}: expected two positive integers",
    )
    rois = call.inputs[1]
    call.require(
        call.shape(rois)[1:] == (5,),
        f"rois of shape {call.shape(rois)}: expected five numbers a region",
    )
    image, regions = call.add_all(
        "Split", rois, call.constant([1, 4]), axis=1, outputs=2
    )
    numbers = call.add("Cast", call.reshape(image, [-1]), to=onnx.TensorProto.INT64)
    return call.add(
        "RoiAlign",
        call.data,
        regions,
        numbers,
        output_height=size[0],
        output_width=size[1],
        spatial_scale=call.float_attribute("spatial_scale"),
        sampling_ratio=max(call.int_attribute("sample_ratio"), 0),
        coordinate_transformation_mode="half_pixel"
        if call.bool_attribute("aligned")
        else "output_half_pixel",
        mode="avg",
    )
