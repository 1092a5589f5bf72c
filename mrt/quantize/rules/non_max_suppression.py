"""The rule of NonMaxSuppression of the domain "mrt": one nms on 16-bit corners and exact scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES, IntArray
from mrt.errors import Unsupported
from mrt.graph.canonical_values import constant_of, is_constant
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.elementwise import I32
from mrt.quantize.rules.integers import fits_integer
from mrt.quantize.rules.registry import own_rule
from mrt.quantize.tensor import (
    OUTPUT_BITS,
    Tensor,
    choose_format,
    identity,
    quantized,
)
from mrt.table.table import MeasuredRange

MOST_DENOMINATOR = 2**30


@own_rule("NonMaxSuppression")
def suppress(net: LoweringContext, node: ir.Node) -> None:
    """Write an nms, with its thresholds expressed in integers."""
    boxes, classes = _boxes(net, node.inputs[0]), _classes(net, node.inputs[2])
    scores, least = _scores(net, node)
    scores = _without_background(net, node, scores, classes, least)
    overlap, inclusive = _overlap(node)
    value = net.builder.emit(
        "nms", boxes, scores, classes,
        keep=_integer(node, "keep"), candidates=_integer(node, "candidates"), least_score=least,
        overlap=overlap, inclusive=inclusive, gaps=bool(_integer(node, "gaps")),
    )  # fmt: skip
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, identity(2)))


def _integer(node: ir.Node, name: str) -> int:
    return node.attributes[name].as_int()


def _boxes(net: LoweringContext, value: ir.Value | None) -> Handle:
    """Return the corners in at most 16 bits, at any scale and zero point.

    Neither changes the ratio of an intersection to a union.
    """
    array = constant_of(value)
    if array is None:
        return net.cast_to(
            net.to_float_layout(net.in_16_bits(value)), "i32"
        ).value
    interval = float(array.min()), float(array.max())
    target = choose_format(
        MeasuredRange(*interval, *interval),
        OUTPUT_BITS,
        interval=interval,
        scales=net.options.scales,
        scheme="symmetric",
    )
    return net.constant(quantized(array, target).astype(DTYPES["i32"]))


def _scores(net: LoweringContext, node: ir.Node) -> tuple[Handle, int]:
    """Return the scores in i32, and the least integer that passes the score threshold."""
    value = node.inputs[1]
    if is_constant(value):
        raise Unsupported(
            [f"{node.name} ({node.op_type}): its scores are constant"]
        )
    tensor = net.accumulator(value)
    if not tensor.per_tensor or tensor.clipped:
        tensor = net.requantized(value)
    tensor = net.to_float_layout(tensor)
    least_score = Fraction(node.attributes["least_score"].as_float())
    steps = least_score / Fraction(float(tensor.scale[0])) + tensor.zero_point
    least = min(max(math.ceil(steps), I32[0] + 1), I32[1])
    return net.cast_to(tensor, "i32").value, least


def _classes(net: LoweringContext, value: ir.Value | None) -> Handle:
    """Return the classes in i32; one for all boxes of a row where they are constant and equal."""
    array = constant_of(value)
    if array is not None and fits_integer(array):
        first = array[:, :1]
        all_equal = bool((array == first).all())
        classes = first if all_equal else array
        return net.constant(classes.astype(np.int32))
    tensor = net.to_float_layout(
        net.as_computed(value)
        if net.as_computed(value).integral
        else net.in_16_bits(value)
    )
    if tensor.integral:
        return net.cast_to(tensor, "i32").value
    return net.rescale(tensor, tensor.scale, "i32", 0)


def _without_background(
    net: LoweringContext,
    node: ir.Node,
    scores: Handle,
    classes: Handle,
    least: int,
) -> Handle:
    """Return the scores, with those of background boxes lowered below the threshold."""
    number = node.attributes["background"].as_float()
    low, high = net.builder.bounds[classes].min, net.builder.bounds[classes].max
    if number != math.floor(number) or not low <= number <= high:
        return scores
    background = net.builder.emit("equal", classes, _single(net, int(number)))
    return net.builder.emit(
        "select", background, _single(net, least - 1), scores
    )


def _single(net: LoweringContext, number: int) -> Handle:
    array: IntArray = np.full((1, 1), number, np.int32)
    return net.constant(array)


def _overlap(node: ir.Node) -> tuple[tuple[int, int], bool]:
    """Return the limit as a fraction, and whether a union that equals it passes.

    A limit below 0 is passed by every union, one above 1 by none.
    """
    limit = Fraction(node.attributes["overlap"].as_float())
    inclusive = bool(_integer(node, "inclusive"))
    if not 0 <= limit <= 1:
        return ((0, 1), True) if limit < 0 else ((1, 1), False)
    near = limit.limit_denominator(MOST_DENOMINATOR)
    return (near.numerator, near.denominator), inclusive
