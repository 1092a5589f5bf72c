"""Rules of comparisons, logic, choices and casts.

Integers are compared at one scale, so that equal values stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.errors import Unsupported
from mrt.exact.fixed_point import (
    MAX_RATIO,
    SMALLEST_SCALE,
    FloatArray,
    power_of_two_at_least,
)
from mrt.graph.canonical_values import constant_of, is_constant, name_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.elementwise import (
    HALF_RANGE,
    I32,
    operand_in_layout,
)
from mrt.quantize.rules.integer_division import lowest_bits
from mrt.quantize.rules.integers import (
    define_integral,
    in_i32,
    integer_operand,
    is_integer,
    result_layout,
)
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    Format,
    Interval,
    Layout,
    Tensor,
    in_layout,
    quantized,
    wide_format,
)
from mrt.quantize.truncation import truncated
from mrt.quantize.wide_values import as_wide, shared_format
from mrt.table.table import MeasuredRange

_COMPARISONS = {
    "Equal": ("equal", False, np.rint),
    "Greater": ("greater", False, np.floor),
    "GreaterOrEqual": ("greater_equal", False, np.ceil),
    "Less": ("greater", True, np.ceil),
    "LessOrEqual": ("greater_equal", True, np.floor),
}
"""The instruction, whether its operands are swapped, and how a real constant is rounded.

The rounding keeps the answer for every integer q: q > c where q > floor(c), q >= c
where q >= ceil(c), c > q where ceil(c) > q, and c >= q where floor(c) >= q.
"""

_INTERVALS_OF_DTYPES = {
    ir.DataType.INT8: (-(2**7), 2**7 - 1),
    ir.DataType.UINT8: (0, 2**8 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1),
    ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.UINT32: (0, 2**31 - 1),
    ir.DataType.UINT64: (0, 2**31 - 1),
}
"""The integers of an ONNX type that fit i32; for the types not listed, all of i32."""

NARROW = tuple(_INTERVALS_OF_DTYPES)[:4]  # types of 8 and 16 bits


@rule(*_COMPARISONS)
def compare(net: LoweringContext, node: ir.Node) -> None:
    """Write equal, greater or greater_equal on i32; a constant becomes an integer threshold."""
    instruction, swapped, rounding = _COMPARISONS[node.op_type]
    layout = result_layout(net, node)
    constant = constant_of(node.inputs[1])
    if constant is None:
        left, right = _at_one_scale(net, node, layout)
    else:
        x = _comparable(net, node.inputs[0], layout)
        left = net.cast_to(x, "i32").value
        if np.isnan(constant).any():
            raise Unsupported(
                [
                    f"{node.name} ({node.op_type}): it compares with NaN, "
                    "which no number equals or exceeds"
                ]
            )
        steps = _steps(x, _reals_in_layout(constant, layout), rounding)
        right = net.constant(np.clip(steps, *I32).astype(np.int32))
    operands = (right, left) if swapped else (left, right)
    value = net.builder.emit(instruction, *operands)
    if constant is not None and _reaches_ends(net, left):
        value = _with_certain_answers(net, node, value, steps)
    define_integral(net, node.outputs[0], value, layout)


def _in_most_bits(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return a wide value in all its bits, and another one as exact as costs nothing."""
    if name_of(value) in net.plan.wide:
        return as_wide(net, value)
    return net.accumulator(value)


def _comparable(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Tensor:
    """Return an operand whose integers can be compared with a threshold.

    Its clip is applied, and scales of channels lie on the last axis.
    """
    tensor = net.as_computed(value)
    if not tensor.integral:
        tensor = _in_most_bits(net, value)
    misplaced_scales = not tensor.per_tensor and tensor.layout != layout
    if tensor.clipped or misplaced_scales:
        tensor = net.requantized(value)
    return operand_in_layout(net, value, tensor, layout)


def _steps(x: Tensor, reals: FloatArray, rounding: np.ufunc) -> FloatArray:
    """Return the integers to compare x with; infinity for one that no number equals.

    If x is not integral, these are the nearest integers: a computed number equal to the
    threshold is rounded to the same integer. Columns of a table often hold the
    threshold itself. A constant without axes stays one.
    """
    scale = x.scale if reals.ndim else x.scale[0]
    with np.errstate(over="ignore"):
        steps = reals / scale + x.zero_point
    nearest = rounding(steps) if x.integral else np.floor(steps + 0.5)
    if rounding is np.rint and x.integral:
        # No integer equals a fraction.
        nearest = np.where(steps == nearest, nearest, np.inf)
    result: FloatArray = nearest
    return result


def _reaches_ends(net: LoweringContext, x: Handle) -> bool:
    """Whether x may be the least or the greatest i32, for which a threshold beyond them cannot stand."""
    proven = net.builder.bounds[x]
    return proven.min == I32[0] or proven.max == I32[1]


def _with_certain_answers(
    net: LoweringContext, node: ir.Node, answer: Handle, steps: FloatArray
) -> Handle:
    """Correct the answer where the integer to compare with is beyond i32, which every number of x exceeds or none."""
    above, below = steps > I32[1], steps < I32[0]
    never = above | below if node.op_type == "Equal" else above
    always = below & ~never
    if node.op_type.startswith("Less"):
        never, always = below, above
    emit = net.builder.emit
    if never.any():
        answer = emit("logical_and", answer, net.constant(~never))
    if always.any():
        answer = emit("logical_or", answer, net.constant(always))
    return answer


def _reals_in_layout(array: FloatArray, layout: Layout) -> FloatArray:
    """Return a constant of reals in a layout."""
    missing = len(layout) - array.ndim
    of_rank = array.reshape((1,) * missing + array.shape)
    reals: FloatArray = of_rank.transpose(layout)
    return reals


def _at_one_scale(
    net: LoweringContext, node: ir.Node, layout: Layout
) -> list[Handle]:
    """Return two computed operands in i32 at one scale.

    Integral operands and wide or requantized ones of equal scale are compared as they
    are; others at the finest scale for which i32 has room.
    """
    values = node.inputs
    if all(is_integer(net, value) for value in values):
        return [in_i32(net, value, layout) for value in values]
    are_wide = all(name_of(value) in net.plan.wide for value in values)
    tensors = [
        as_wide(net, value) if are_wide else net.requantized(value)
        for value in values
    ]
    scales = {(float(tensor.scale[0]), tensor.zero_point) for tensor in tensors}
    handles: list[Handle] = []
    if len(scales) == 1:
        for value, tensor in zip(values, tensors, strict=True):
            operand = operand_in_layout(net, value, tensor, layout)
            handles.append(net.cast_to(operand, "i32").value)
        return handles
    accumulators = [net.accumulator(value) for value in values]
    scale = _finest_common_scale(net, accumulators)
    target = Format("i32", scale, 0, -HALF_RANGE, HALF_RANGE - 1)
    for value, tensor in zip(values, accumulators, strict=True):
        operand = operand_in_layout(net, value, tensor, layout)
        handles.append(net.requantize_to(operand, target).value)
    return handles


def _finest_common_scale(net: LoweringContext, tensors: list[Tensor]) -> float:
    """Return the finest power of two at which the tensors fit half of i32.

    The scale is coarser where a rescale could not reach that from the coarsest tensor.
    """
    bounds = [bound for tensor in tensors for bound in net.interval(tensor)]
    greatest = max(max(map(abs, bounds)), SMALLEST_SCALE)
    coarsest = max(float(tensor.scale.max()) for tensor in tensors)
    return max(
        power_of_two_at_least(greatest) / HALF_RANGE, coarsest / MAX_RATIO
    )


@rule("And", "Or", "Not")
def logic(net: LoweringContext, node: ir.Node) -> None:
    """Write logical_and, logical_or or logical_not."""
    layout = result_layout(net, node)
    operands = [
        integer_operand(net, value, layout).value for value in node.inputs
    ]
    instruction = f"logical_{node.op_type.lower()}"
    value = net.builder.emit(instruction, *operands)
    define_integral(net, node.outputs[0], value, layout)


@rule("Where")
def choose(net: LoweringContext, node: ir.Node) -> None:
    """Write a select: integral operands as they are, others in the result's format."""
    layout = result_layout(net, node)
    condition = integer_operand(net, node.inputs[0], layout).value
    branches = node.inputs[1:]
    if all(is_integer(net, value) for value in branches):
        left, right = _integral_branches(net, branches, layout)
        value = net.builder.emit("select", condition, left, right)
        define_integral(net, node.outputs[0], value, layout)
        return
    filled = net.plan.filled.get(name_of(node.outputs[0]))
    intervals = [_interval(net, branch, filled) for branch in branches]
    low = min(interval[0] for interval in intervals)
    high = max(interval[1] for interval in intervals)
    target = _format_of_choice(net, node, (low, high))
    x, y = (_in_format(net, branch, target, layout) for branch in branches)
    value = net.builder.emit("select", condition, x, y)
    scale = np.array([target.scale])
    net.define(node.outputs[0], Tensor(value, scale, target.zero_point, layout))


def _format_of_choice(
    net: LoweringContext, node: ir.Node, interval: Interval
) -> Format:
    """Return the format of a choice: of a wide one that of its computed branches, if they share one that reaches its constants.

    What is compared with constants behind it is then as in front of it.
    """
    name, branches = name_of(node.outputs[0]), node.inputs[1:]
    if name not in net.plan.wide:
        return net.format(node.outputs[0], interval=interval)
    computed = [it for it in branches if not is_constant(it)]
    shared = shared_format(net, [_in_most_bits(net, it) for it in computed])
    if shared is not None and max(map(abs, interval)) <= shared.highest:
        return shared
    range_ = net.ranges.of(name)
    return wide_format(range_, interval, net.options.scales)


def _integral_branches(
    net: LoweringContext, branches: Sequence[ir.Value | None], layout: Layout
) -> list[Handle]:
    """Return both branches as they are if they share a dtype that select takes, else in i32."""
    tensors = [integer_operand(net, branch, layout) for branch in branches]
    dtypes = {net.dtype(tensor) for tensor in tensors}
    share_dtype = len(dtypes) == 1 and dtypes <= {"bool", "i8", "i16", "i32"}
    if not share_dtype:
        tensors = [net.cast_to(tensor, "i32") for tensor in tensors]
    return [tensor.value for tensor in tensors]


def _interval(
    net: LoweringContext, value: ir.Value | None, filled: MeasuredRange | None
) -> Interval:
    """Return the least and the greatest real of an operand; a fill is within the range of what it fills."""
    array = constant_of(value)
    if array is None:
        return net.interval(_in_most_bits(net, value))
    if filled is not None:
        array = array.clip(filled.min, filled.max)
    return float(array.min()), float(array.max())


def _in_format(
    net: LoweringContext, value: ir.Value | None, target: Format, layout: Layout
) -> Handle:
    """Return an operand in a format and a layout."""
    array = constant_of(value)
    if array is None:
        tensor = net.requantize_to(_in_most_bits(net, value), target)
        return operand_in_layout(net, value, tensor, layout).value
    integers = quantized(array, target).astype(DTYPES[target.dtype])
    return net.constant(in_layout(integers, layout))


@rule("Cast")
def cast(net: LoweringContext, node: ir.Node) -> None:
    """Keep integral values as they are; truncate floats by a lookup table.

    An integer type of fewer bits keeps the lowest bits of integers, as ONNX has it.
    """
    x = net.as_computed(node.inputs[0])
    to = ir.DataType(node.attributes["to"].as_int())
    if to == ir.DataType.BOOL:
        x = x if x.integral else net.requantized(node.inputs[0])
        x = _booleans(net, x)
    elif to != ir.DataType.FLOAT:
        x = x if x.integral else truncated(net, node)
        x = _as_type(net, x, node, to)
    net.define(node.outputs[0], x)


def _booleans(net: LoweringContext, x: Tensor) -> Tensor:
    """Return true where x is not 0."""
    if x.zero_point:
        zero = net.constant(
            np.full([1] * len(x.layout), x.zero_point, np.int32)
        )
        is_zero = net.builder.emit("equal", net.cast_to(x, "i32").value, zero)
        value = net.builder.emit("logical_not", is_zero)
    else:
        value = net.cast_to(x, "bool").value
    return Tensor(value, np.ones(1), 0, x.layout)


def _as_type(
    net: LoweringContext, x: Tensor, node: ir.Node, to: ir.DataType
) -> Tensor:
    """Return x as integers of a type: the lowest bits of integers; floats are clamped, for which ONNX defines no result."""
    low, high = _INTERVALS_OF_DTYPES.get(to, I32)
    proven = net.builder.bounds[x.value]
    if low <= proven.min and proven.max <= high:
        return x
    x = net.cast_to(x, "i32")
    operand = node.inputs[0]
    is_integer = operand is not None and operand.dtype != ir.DataType.FLOAT
    if is_integer and to in NARROW:
        value = lowest_bits(net, x.value, x.layout, (low, high))
    else:
        value = net.builder.emit("clamp", x.value, min=low, max=high)
    return replace(x, value=value)
