"""Boxes: priors on a grid, decoding, overlaps, pooling of regions.

A box is written as two opposite corners, or as its centre and its extent.
"""

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
from mrt.graph.values import Array

FORMATS = ("corner", "center")


def split_boxes(call: OperatorCall, boxes: ir.Value) -> list[ir.Value]:
    """Return the first two and the last two numbers of every box."""
    axis = call.rank(boxes) - 1
    sizes = call.constant([2, 2])
    return call.add_all("Split", boxes, sizes, axis=axis, outputs=2)


def _join_boxes(
    call: OperatorCall, first: ir.Value, second: ir.Value
) -> ir.Value:
    return call.add("Concat", first, second, axis=call.rank(first) - 1)


def _corners(call: OperatorCall, center: ir.Value, half: ir.Value) -> ir.Value:
    """Return the two corners at half the extent from the centre."""
    corner = call.add("Sub", center, half)
    opposite = call.add("Add", center, half)
    return _join_boxes(call, corner, opposite)


def to_corner(call: OperatorCall, boxes: ir.Value) -> ir.Value:
    """Convert (centre, extent) -> (corner, opposite corner)."""
    center, extent = split_boxes(call, boxes)
    half = call.add("Mul", extent, call.constant(0.5))
    return _corners(call, center, half)


def to_center(call: OperatorCall, boxes: ir.Value) -> ir.Value:
    """Convert (corner, opposite corner) -> (centre, extent)."""
    corner, opposite = split_boxes(call, boxes)
    total = call.add("Add", corner, opposite)
    center = call.add("Mul", total, call.constant(0.5))
    extent = call.add("Sub", opposite, corner)
    return _join_boxes(call, center, extent)


def decode(
    call: OperatorCall,
    offsets: ir.Value,
    anchors: ir.Value,
    deviations: Sequence[float],
    largest_stretch: float = 0.0,
) -> ir.Value:
    """Write the corners of the anchors (centre, extent), moved and stretched.

    An anchor moves by offset * extent and grows by exp(offset). Offsets are first
    multiplied by the deviations. If `largest_stretch` is above 0, it bounds the exponent.
    """
    shift, stretch = split_boxes(call, offsets)
    center, extent = split_boxes(call, anchors)
    shift = call.add("Mul", shift, call.constant(list(deviations[:2])))
    stretch = call.add("Mul", stretch, call.constant(list(deviations[2:])))
    if largest_stretch > 0:
        stretch = call.add("Min", stretch, call.constant(largest_stretch))
    moved = call.add("Mul", shift, extent)
    center = call.add("Add", moved, center)
    factor = call.add("Exp", stretch)
    half_extent = call.add("Mul", extent, call.constant(0.5))
    half = call.add("Mul", factor, half_extent)
    return _corners(call, center, half)


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
    """Write corners from offsets and from anchors in the given format."""
    call.require_rank(3, 3)
    batch, count, width = call.shape()
    anchors = call.parameter(1, (1, count, 4), (batch, count, 4))
    call.require(
        width == 4, f"data of shape {call.shape()}: expected four numbers a box"
    )
    if call.string_attribute("format") == "corner":
        anchors = to_center(call, anchors)
    deviations = [call.float_attribute(f"std{index}") for index in range(4)]
    largest_stretch = call.float_attribute("clip")
    return decode(call, call.data, anchors, deviations, largest_stretch)


@operator(
    "_contrib_box_iou",
    attributes={"format": choice(*FORMATS, default="corner")},
    slots=("lhs", "rhs"),
)
def box_iou(call: OperatorCall) -> ir.Value:
    """Write intersection over union of every left box with every right box.

    It is 0 where the union is empty.
    """
    shapes = [call.shape(value) for value in call.inputs]
    call.require(
        all(shape[-1:] == (4,) for shape in shapes),
        f"boxes of shapes {shapes}: expected four numbers each",
    )
    left_axes, right_axes = shapes[0][:-1], shapes[1][:-1]
    left = call.reshape(call.inputs[0], [math.prod(left_axes), 1, 4])
    right = call.reshape(call.inputs[1], [1, math.prod(right_axes), 4])
    if call.string_attribute("format") == "center":
        left = to_corner(call, left)
        right = to_corner(call, right)
    ratio = _intersection_over_union(call, left, right)
    return call.reshape(ratio, [*left_axes, *right_axes])


def _intersection_over_union(
    call: OperatorCall, left: ir.Value, right: ir.Value
) -> ir.Value:
    left_corner, left_opposite = split_boxes(call, left)
    right_corner, right_opposite = split_boxes(call, right)
    corner = call.add("Max", left_corner, right_corner)
    opposite = call.add("Min", left_opposite, right_opposite)
    intersection = _area(call, corner, opposite)
    left_area = _area(call, left_corner, left_opposite)
    right_area = _area(call, right_corner, right_opposite)
    total = call.add("Add", left_area, right_area)
    union = call.add("Sub", total, intersection)
    exists = call.add("Greater", union, call.constant(0.0))
    divisor = call.add("Where", exists, union, call.constant(1.0))
    return call.add("Div", intersection, divisor)


def _area(call: OperatorCall, corner: ir.Value, opposite: ir.Value) -> ir.Value:
    signed = call.add("Sub", opposite, corner)
    sides = call.add("Relu", signed)
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
    """Compute the corners of boxes around every pixel of the map.

    Boxes of each size at the first ratio come first, then those of the first size at each
    other ratio.
    """
    call.require_rank(4, 4)
    sizes = call.floats_attribute("sizes")
    ratios = call.floats_attribute("ratios")
    steps = call.floats_attribute("steps")
    offsets = call.floats_attribute("offsets")
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
    shapes = [(size, ratios[0]) for size in sizes]
    shapes += [(sizes[0], ratio) for ratio in ratios[1:]]
    height, width = call.shape()[2:]
    call.builder.require_space(height * width * len(shapes) * 4)
    boxes = _priors((height, width), shapes, steps, offsets)
    if call.bool_attribute("clip"):
        boxes = boxes.clip(0, 1)
    return call.add("Identity", call.array(boxes))


def _priors(
    extent: tuple[int, int],
    shapes: list[tuple[float, float]],
    steps: Sequence[float],
    offsets: Sequence[float],
) -> Array:
    """Return [1, height * width * shapes, 4] in float32, in MXNet's order of operations."""
    float32 = np.float32
    height, width = extent
    row_step = (
        float32(steps[0]) if steps[0] > 0 else float32(1) / float32(height)
    )
    column_step = (
        float32(steps[1]) if steps[1] > 0 else float32(1) / float32(width)
    )
    y = (np.arange(height, dtype=float32) + float32(offsets[0])) * row_step
    x = (np.arange(width, dtype=float32) + float32(offsets[1])) * column_step
    half_widths, half_heights = np.empty((2, len(shapes)), float32)
    for index, (size, ratio) in enumerate(shapes):
        root = np.sqrt(float32(ratio))
        half_widths[index] = (
            float32(size) * float32(height) / float32(width) * root / float32(2)
        )
        half_heights[index] = float32(size) / root / float32(2)
    boxes = np.empty((height, width, len(shapes), 4), float32)
    for corner, sign in ((0, -1), (2, 1)):
        boxes[..., corner] = x[None, :, None] + float32(sign) * half_widths
        boxes[..., corner + 1] = y[:, None, None] + float32(sign) * half_heights
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
    """Write ONNX's RoiAlign with averages.

    A row of rois holds the index of an image and the corners of a region in it.
    """
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
    column_counts = call.constant([1, 4])
    image, regions = call.add_all(
        "Split", rois, column_counts, axis=1, outputs=2
    )
    image_indices = call.reshape(image, [-1])
    image_indices = call.add("Cast", image_indices, to=onnx.TensorProto.INT64)
    is_aligned = call.bool_attribute("aligned")
    coordinates = "half_pixel" if is_aligned else "output_half_pixel"
    return call.add(
        "RoiAlign",
        call.data,
        regions,
        image_indices,
        output_height=size[0],
        output_width=size[1],
        spatial_scale=call.float_attribute("spatial_scale"),
        sampling_ratio=max(call.int_attribute("sample_ratio"), 0),
        coordinate_transformation_mode=coordinates,
        mode="avg",
    )
