"""Truths: comparisons, logic, choices and casts. What is compared are integers at one scale, so equals stay equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES, IntArray
from mrt.errors import Unsupported
from mrt.exact.fixed_point import (
    MAX_RATIO,
    SMALLEST_SCALE,
    FloatArray,
    power_of_two_at_least,
)
from mrt.graph.canonical_values import constant_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, common_layout, quantized
from mrt.quantize.rules.elementwise import HALF_RANGE, in_layout, operand_in_layout
from mrt.quantize.rules.integers import I32, computed, integer_operand, is_integer
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Format, Layout, Tensor
from mrt.quantize.truncation import cut_off

# instruction, whether its operands change places, and how a real constant becomes one that whole numbers are held against
# without moving the truth: q > c where q > floor(c), q >= c where q >= ceil(c), and so on
_COMPARISONS = {
    "Equal": ("equal", False, np.rint),
    "Greater": ("greater", False, np.floor),
    "GreaterOrEqual": ("greater_equal", False, np.ceil),
    "Less": ("greater", True, np.ceil),
    "LessOrEqual": ("greater_equal", True, np.floor),
}
_DTYPES_OF_INTEGER = {
    ir.DataType.INT8: (-(2**7), 2**7 - 1), ir.DataType.UINT8: (0, 2**8 - 1), ir.DataType.INT16: (-(2**15), 2**15 - 1),
    ir.DataType.UINT16: (0, 2**16 - 1), ir.DataType.UINT32: (0, 2**31 - 1),
    ir.DataType.UINT64: (0, 2**31 - 1),
}  # fmt: skip


@rule(*_COMPARISONS)
def compare(net: LoweringContext, node: ir.Node) -> None:
    """equal, greater or greater_equal on i32; a constant becomes a threshold between the integers of the other operand."""
    instruction, swapped, rounding = _COMPARISONS[node.op_type]
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    threshold = constant_of(node.inputs[1])
    if threshold is None:
        left, right = _at_one_scale(net, node, layout)
    else:
        x = _steps(net, node.inputs[0], layout)
        left = net.cast_to(x, "i32").value
        if np.isnan(threshold).any():
            raise Unsupported(
                [
                    f"{node.name} ({node.op_type}): it compares with NaN, which no number equals or exceeds"
                ]
            )
        right = net.constant(
            _threshold(x, _arranged_reals(threshold, layout), rounding)
        )
    operands = (right, left) if swapped else (left, right)
    _define(net, node, net.builder.emit(instruction, *operands), layout)


def _steps(net: LoweringContext, value: ir.Value | None, layout: Layout) -> Tensor:
    """An operand whose integers can be held against a threshold: nothing left to clip, its scales where they belong."""
    tensor = net.as_computed(value)
    tensor = tensor if tensor.integral else net.accumulator(value)
    if tensor.clipped or (not tensor.per_tensor and tensor.layout != layout):
        tensor = net.requantized(value)
    return operand_in_layout(net, value, tensor, layout)


def _threshold(x: Tensor, reals: FloatArray, rounding: np.ufunc) -> IntArray:
    """Of other than whole numbers, the integer that an equal number has: columns of a table often hold a threshold itself."""
    with np.errstate(over="ignore"):
        steps = reals / x.scale + x.zero_point
    integers = np.clip(rounding(steps) if x.integral else np.floor(steps + 0.5), *I32)
    if rounding is np.rint and x.integral:
        integers = np.where(
            steps == integers, integers, I32[1]
        )  # no whole number equals a fraction
    thresholds: IntArray = integers.astype(np.int32)
    return thresholds


def _arranged_reals(array: FloatArray, layout: Layout) -> FloatArray:
    """A constant in a layout."""
    reals: FloatArray = array.reshape(
        (1,) * (len(layout) - array.ndim) + array.shape
    ).transpose(layout)
    return reals


def _at_one_scale(net: LoweringContext, node: ir.Node, layout: Layout) -> list[Handle]:
    """Two computed operands in i32: as they are where their scales agree, else as fine as i32 allows."""
    if all(is_integer(net, value) for value in node.inputs):
        return [
            net.cast_to(integer_operand(net, value, layout), "i32").value
            for value in node.inputs
        ]
    narrow = [net.requantized(value) for value in node.inputs]
    if len({(float(tensor.scale[0]), tensor.zero_point) for tensor in narrow}) == 1:
        pairs = zip(node.inputs, narrow, strict=True)
        return [
            net.cast_to(operand_in_layout(net, value, tensor, layout), "i32").value
            for value, tensor in pairs
        ]
    operands = [net.accumulator(value) for value in node.inputs]
    reach = max(abs(end) for tensor in operands for end in net.interval(tensor))
    coarsest = max(float(tensor.scale.max()) for tensor in operands)
    scale = max(
        power_of_two_at_least(max(reach, SMALLEST_SCALE)) / HALF_RANGE,
        coarsest / MAX_RATIO,
    )
    target = Format("i32", scale, 0, -HALF_RANGE, HALF_RANGE - 1)
    pairs = zip(node.inputs, operands, strict=True)
    return [
        net.requantize_to(operand_in_layout(net, value, tensor, layout), target).value
        for value, tensor in pairs
    ]


@rule("And", "Or", "Not")
def logic(net: LoweringContext, node: ir.Node) -> None:
    """logical_and, logical_or, logical_not."""
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    operands = [integer_operand(net, value, layout).value for value in node.inputs]
    _define(
        net,
        node,
        net.builder.emit(f"logical_{node.op_type.lower()}", *operands),
        layout,
    )


@rule("Where")
def choose(net: LoweringContext, node: ir.Node) -> None:
    """select, of whole numbers as they are, of others in the result's format."""
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    condition = integer_operand(net, node.inputs[0], layout).value
    branches = node.inputs[1:]
    if all(is_integer(net, value) for value in branches):
        wholes = [integer_operand(net, value, layout) for value in branches]
        dtypes = {net.dtype(tensor) for tensor in wholes}
        alike = len(dtypes) == 1 and dtypes <= {"bool", "i8", "i16", "i32"}
        left, right = (
            tensor if alike else net.cast_to(tensor, "i32") for tensor in wholes
        )
        return _define(
            net,
            node,
            net.builder.emit("select", condition, left.value, right.value),
            layout,
        )
    ends = [_reach(net, value) for value in branches]
    target = net.format(
        node.outputs[0],
        interval=(min(low for low, _ in ends), max(high for _, high in ends)),
    )
    x, y = (_brought(net, value, target, layout) for value in branches)
    value = net.builder.emit("select", condition, x, y)
    return net.define(
        node.outputs[0],
        Tensor(value, np.array([target.scale]), target.zero_point, layout),
    )


def _reach(net: LoweringContext, value: ir.Value | None) -> tuple[float, float]:
    array = constant_of(value)
    return (
        net.interval(net.accumulator(value))
        if array is None
        else (float(array.min()), float(array.max()))
    )


def _brought(
    net: LoweringContext, value: ir.Value | None, target: Format, layout: Layout
) -> Handle:
    array = constant_of(value)
    if array is None:
        return operand_in_layout(
            net, value, net.requantize_to(net.accumulator(value), target), layout
        ).value
    return net.constant(
        in_layout(quantized(array, target).astype(DTYPES[target.dtype]), layout)
    )


@rule("Cast")
def cast(net: LoweringContext, node: ir.Node) -> None:
    """Whole numbers and truths stay what they are as floats; floats are cut off toward zero by a table."""
    x, to = net.as_computed(node.inputs[0]), ir.DataType(node.attributes["to"].as_int())
    if to == ir.DataType.BOOL:
        x = _booleans(net, x if x.integral else net.requantized(node.inputs[0]))
    elif to != ir.DataType.FLOAT:
        x = x if x.integral else cut_off(net, node)
        x = _within(net, x, _DTYPES_OF_INTEGER.get(to, I32))
    net.define(node.outputs[0], x)


def _booleans(net: LoweringContext, x: Tensor) -> Tensor:
    """Whatever is not 0."""
    if x.zero_point:
        zero = net.constant(np.full([1] * len(x.layout), x.zero_point, np.int32))
        same = net.builder.emit("equal", net.cast_to(x, "i32").value, zero)
        value = net.builder.emit("logical_not", same)
    else:
        value = net.cast_to(x, "bool").value
    return Tensor(value, np.ones(1), 0, x.layout)


def _within(net: LoweringContext, x: Tensor, limits: tuple[int, int]) -> Tensor:
    """Held to the numbers of an integer type; which number a cast gives beyond them ONNX leaves open."""
    proven = net.builder.bounds[x.value]
    if limits[0] <= proven.min and proven.max <= limits[1]:
        return x
    x = net.cast_to(x, "i32")
    return replace(
        x, value=net.builder.emit("clamp", x.value, min=limits[0], max=limits[1])
    )


def _define(net: LoweringContext, node: ir.Node, value: Handle, layout: Layout) -> None:
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))
