"""Gates: y = a * x * g(x) + b, such as SiLU, HardSwish and GELU, whose channels have scales of their own.

One lookup table gives all channels one scale, in front of it and behind it. A gate g is
near 0 far below 0 and near 1 far above, so one range of x serves it for all channels;
the product with x then keeps the scale of each channel.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, IntArray
from mrt.exact.fixed_point import SMALLEST_SCALE, FloatArray, usable_scale
from mrt.exact.functions import ELEMENTWISE
from mrt.exact.precision import divide
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.values import IMAGE_RANK
from mrt.quantize.builder import Handle
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.sampled_curve import SampledCurve
from mrt.quantize.tensor import Format, Tensor
from mrt.quantize.wide_tables import SEGMENT, close_points

CHANNELS = 1  # the axis of an image in the float model
LONGEST_GATE = 8  # nodes
OPERATORS = ("Gelu", "HardSwish", "Mish")  # gates that are one operator
GREATEST_ARGUMENT = 16.0
# A gate g takes x from -16 to 16 in 16 bits; its result has 14 bits behind the point.
ARGUMENT_FORMAT = Format(
    "i16", GREATEST_ARGUMENT / 2**15, 0, *DTYPE_RANGES["i16"]
)
RESULT_SCALE = 2.0**-14
ONE = 2**14
GREATEST = 2 * ONE - 1
# x * g(x) over the limit of g, in steps that make it the product of both integers.
PRODUCT_FORMAT = Format(
    "i32", ARGUMENT_FORMAT.scale * RESULT_SCALE, 0, *DTYPE_RANGES["i32"]
)
UNPROVEN = (-np.inf, np.inf)


def is_gate(value: ir.Value | None) -> bool:
    """Whether an image is written as a gate: an operator that is one, or x times a function of x.

    It may be multiplied by a number, and one may be added.
    """
    node = None if value is None else value.producer()
    for _ in range(LONGEST_GATE):
        if node is None or not _is_affine(node):
            break
        x = node.inputs[0]
        node = None if x is None else x.producer()
    if node is None or len(node.outputs[0].shape or ()) != IMAGE_RANK:
        return False
    if node.op_type in OPERATORS:
        return True
    if node.op_type != "Mul":
        return False
    left, right = node.inputs
    return _is_function_of(left, right) or _is_function_of(right, left)


def _is_affine(node: ir.Node) -> bool:
    """Whether a node multiplies a value by one number, or adds one."""
    if node.op_type not in ("Add", "Mul"):
        return False
    array = constant_of(node.inputs[1])
    return array is not None and array.size == 1


def comes_from_gates(value: ir.Value) -> bool:
    """Whether an image is a gate's result or joins one."""
    node = value.producer()
    joined = node.inputs if node and node.op_type == "Concat" else (value,)
    return any(is_gate(operand) for operand in joined)


def _is_function_of(g: ir.Value | None, x: ir.Value | None) -> bool:
    """Whether g is computed from x alone, by a short chain of element-wise operators."""
    for _ in range(LONGEST_GATE):
        node = None if g is None else g.producer()
        if node is None or node.op_type not in ELEMENTWISE:
            return False
        computed = [
            operand for operand in node.inputs if not is_constant(operand)
        ]
        if len(computed) != 1:
            return False
        g = computed[0]
        if g is x:
            return True
    return False


def lower_gate(net: LoweringContext, value: ir.Value, curve: Curve) -> bool:
    """Write a * x * g(x) + b where readers take scales of channels; return False where a table serves.

    The sum is left in i32, from which each reader requantizes it.
    """
    gated, gain, offset = curve.without_affine()
    if len(shape_of(value)) != IMAGE_RANK or curve.root is value or gain <= 0:
        return False
    x = net.as_computed(curve.root)
    if net.is_requantized(x) or x.clipped or x.centred:
        return False
    greatest_results = _greatest_results(net, value)
    if greatest_results is None or x.layout[-1] != CHANNELS:
        return False
    limit = _limit(gated)
    if not 0 < limit < np.inf:
        return False
    table = net.curves.entries(
        ("gate", gated.recipe), lambda: _gate_entries(gated, limit)
    )
    if not _goes_from_0_to_1(table):
        return False
    gain *= limit
    argument = net.requantize_to(x, ARGUMENT_FORMAT).value
    scale = _scales_of_factor(net, x, (greatest_results + abs(offset)) / gain)
    factor = net.rescale(x, x.scale / scale, "i16", 0)
    product = _product(net, argument, factor, table)
    result = Tensor(product, scale * RESULT_SCALE * gain, 0, x.layout)
    net.define(value, _plus(net, result, offset))
    return True


def _plus(net: LoweringContext, x: Tensor, offset: float) -> Tensor:
    """Return x and a number."""
    if not offset:
        return x
    steps = np.floor(offset / x.scale + 0.5).astype(np.int32)
    shape = (*[1] * (len(x.layout) - 1), len(steps))
    number = net.constant(steps.reshape(shape))
    return replace(x, value=net.builder.emit("add", x.value, number))


def _product(
    net: LoweringContext, argument: Handle, factor: Handle, table: IntArray
) -> Handle:
    """Return the factor times g, in steps of both: g by lines where these are close, in 128ths of its steps."""
    emit, points = net.builder.emit, close_points(table)
    if points is None:
        gate = emit("table", argument, net.constant(table))
        return emit("mul", factor, gate, shift=0)
    gate = emit("interpolate", argument, net.constant(points))
    wide = emit("cast", factor, dtype="i32")
    return emit("mul", wide, gate, shift=SEGMENT.bit_length() - 1)


def _limit(curve: Curve) -> float:
    """Return g at the greatest x that it takes, its limit far above 0: 1, or another number where g is a multiple of a gate."""
    greatest = Decimal(ARGUMENT_FORMAT.most) * Decimal(ARGUMENT_FORMAT.scale)
    limit = float(divide(curve.exactly(greatest), greatest))
    return 1.0 if abs(limit - 1) < RESULT_SCALE else limit


def _gate_entries(curve: Curve, limit: float) -> IntArray:
    """Return g = y / x, divided by its limit, at every integer of x, half up; at 0 the mean of its neighbours."""
    integers = np.arange(
        ARGUMENT_FORMAT.least, ARGUMENT_FORMAT.most + 1, dtype=np.int64
    )
    sampled = SampledCurve(curve, ARGUMENT_FORMAT.scale, 0, integers)
    steps = replace(PRODUCT_FORMAT, scale=PRODUCT_FORMAT.scale * limit)
    products = sampled.entries(steps).astype(np.int64)
    divisors = np.where(integers == 0, 1, integers)
    entries = (2 * products + divisors) // (2 * divisors)
    zero = -ARGUMENT_FORMAT.least
    entries[zero] = (entries[zero - 1] + entries[zero + 1] + 1) // 2
    clipped: IntArray = entries.clip(-GREATEST, GREATEST).astype(np.int16)
    return clipped


def _goes_from_0_to_1(entries: IntArray) -> bool:
    """Whether g is 0 at -16 and 1 at 16, so that it may take x clipped there."""
    lowest, highest = int(entries[0]), int(entries[-1])
    is_bounded = int(np.abs(entries.astype(np.int32)).max()) < GREATEST
    return abs(lowest) <= 1 and abs(highest - ONE) <= 1 and is_bounded


def _scales_of_factor(
    net: LoweringContext, x: Tensor, greatest_results: FloatArray
) -> FloatArray:
    """Return the scales of x as a factor.

    It reaches as far as the result's format and as far as g takes, but not beyond what is
    proven of a channel.
    """
    proven = net.builder.bounds[x.value]
    magnitude = np.maximum(np.abs(proven.lo), np.abs(proven.hi)) * x.scale
    needed = np.minimum(
        np.maximum(greatest_results, GREATEST_ARGUMENT), magnitude
    )
    ideal = np.maximum(needed, SMALLEST_SCALE) / DTYPE_RANGES["i16"][1]
    scales = net.options.scales
    return np.array([usable_scale(float(scale), scales) for scale in ideal])


def _greatest_results(
    net: LoweringContext, value: ir.Value
) -> FloatArray | None:
    """Return how far the channels' formats reach, as one number or one for each.

    These are the formats in which the reader takes the value: its own, a part of what a
    Concat joins, or that of a sum's operand. None where no reader takes scales of channels.
    """
    greatest_results = _greatest_of_channels(net, value)
    uses = list(value.uses())
    if greatest_results is not None or len(uses) != 1:
        return greatest_results
    reader, index = uses[0].node, uses[0].idx
    joined = _greatest_of_channels(net, reader.outputs[0])
    if joined is None:
        return None
    if reader.op_type == "Concat":
        first = sum(
            shape_of(operand)[CHANNELS] for operand in reader.inputs[:index]
        )
        return joined[first : first + shape_of(value)[CHANNELS]]
    if not is_sum(reader):
        return None
    return np.array([net.format(value, interval=UNPROVEN).highest])


def _greatest_of_channels(
    net: LoweringContext, value: ir.Value
) -> FloatArray | None:
    """Return the greatest real of each channel's format, if the channels have scales."""
    name = name_of(value)
    if net.table.scales_of_channels(name) is None:
        return None
    target = net.format(value, interval=UNPROVEN)
    factors = net.channel_factors(name, target)
    return target.highest * np.array(factors)
