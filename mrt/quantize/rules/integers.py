"""Exact rules for integral values (indices, counts, booleans): nothing is rounded.

The program's integers are the numbers themselves. Values of ONNX's integer types are
always integral. Floats are integral if a cast or a comparison made them. A rule of this
file takes precedence over the operator's rule in RULES if every operand is integral.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import IntArray
from mrt.errors import Unsupported
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import (
    clip_ends,
    constant_of,
    integers_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.elementwise import I32, operand_in_layout
from mrt.quantize.rules.registry import INTEGER_RULES, RULES, integer_rule
from mrt.quantize.tensor import (
    Layout,
    Tensor,
    common_layout,
    in_layout,
)

NOT_COMPUTED_WITH = ("Clip", "Slice")
"""Operators whose constants are bounds or positions, never numbers of the result."""


def lower_integer(net: LoweringContext, node: ir.Node) -> bool:
    """Write a node with integral operands exactly; return False if it needs another rule.

    It does if it has no exact rule, or if it is a float operator with another rule
    whose result cannot be proven to fit i32.
    """
    _refuse_beyond_i32(node)
    exact_rule = INTEGER_RULES.get(node.op_type)
    if exact_rule is None or not _has_integral_operands(net, node):
        return False
    try:
        exact_rule(net, node)
    except Unproven:
        is_float = node.outputs[0].dtype == ir.DataType.FLOAT
        if not is_float or node.op_type not in RULES:
            raise
        return False
    return True


def _has_integral_operands(net: LoweringContext, node: ir.Node) -> bool:
    """Whether every operand is integral; a bound of a Clip may be any integer, or infinite.

    A bound beyond i32 excludes no integer.
    """
    if node.op_type != "Clip":
        return all(is_integer(net, value) for value in node.inputs)
    low, high = clip_ends(node)
    if low != np.floor(low) or high != np.floor(high):
        return False
    return is_integer(net, node.inputs[0])


def _refuse_beyond_i32(node: ir.Node) -> None:
    """Raise Unsupported where a constant of an integer type does not fit i32.

    A constant of a Clip or Slice need not fit, because it is only a bound.
    """
    not_integers = (ir.DataType.FLOAT, ir.DataType.BOOL)
    if (
        node.outputs[0].dtype in not_integers
        or node.op_type in NOT_COMPUTED_WITH
    ):
        return
    for value in node.inputs:
        array = constant_of(value)
        if array is None or fits_integer(array):
            continue
        raise Unsupported(
            [
                f"{node.name or name_of(node.outputs[0])} ({node.op_type}): a constant of "
                f"{array.min():.0f}..{array.max():.0f} does not fit i32"
            ]
        )


def is_integer(net: LoweringContext, value: ir.Value | None) -> bool:
    """Whether a value is integral: computed or constant."""
    array = constant_of(value)
    if array is not None:
        return fits_integer(array)
    return net.as_computed(value).integral


def fits_integer(array: FloatArray) -> bool:
    """Whether a constant holds only integers that fit i32."""
    is_integral = array == np.floor(array)
    in_range = (array >= I32[0]) & (array <= I32[1])
    return bool(np.all(is_integral & in_range))


def computed(net: LoweringContext, node: ir.Node) -> list[Tensor]:
    """Return the computed operands of a node, as their rules left them."""
    operands = [value for value in node.inputs if value is not None]
    return [
        net.as_computed(value) for value in operands if not is_constant(value)
    ]


def result_layout(net: LoweringContext, node: ir.Node) -> Layout:
    """Return the layout in which the operands of an element-wise operator are combined."""
    return common_layout(computed(net, node), len(shape_of(node.outputs[0])))


def integer_operand(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Tensor:
    """Return an integral operand in a layout, with leading axes of size 1 where its rank is lower.

    A constant has dtype i32, or bool if it is boolean.
    """
    array = constant_of(value)
    if array is None:
        return operand_in_layout(net, value, net.as_computed(value), layout)
    assert value is not None
    dtype = np.bool_ if value.dtype == ir.DataType.BOOL else np.int32
    integers: IntArray = array.astype(dtype)
    return Tensor(
        net.constant(in_layout(integers, layout)), np.ones(1), 0, layout
    )


def in_i32(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Handle:
    """Return an integral operand in i32."""
    return net.cast_to(integer_operand(net, value, layout), "i32").value


def define_integral(
    net: LoweringContext, value: ir.Value, handle: Handle, layout: Layout
) -> None:
    """Make integers the representation of an integral value."""
    net.define(value, Tensor(handle, np.ones(1), 0, layout))


_INSTRUCTIONS = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Max": "maximum",
    "Min": "minimum",
    "ReduceSum": "reduce_sum",
    "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min",
}


@integer_rule("Add", "Sub", "Mul", "Max", "Min")
def _binary(net: LoweringContext, node: ir.Node) -> None:
    """Write the instruction of the same meaning on i32."""
    layout = result_layout(net, node)
    left = in_i32(net, node.inputs[0], layout)
    right = in_i32(net, node.inputs[1], layout)
    shift = {"shift": 0} if node.op_type == "Mul" else {}
    value = net.builder.emit(_INSTRUCTIONS[node.op_type], left, right, **shift)
    define_integral(net, node.outputs[0], value, layout)


@integer_rule("Relu", "Clip")
def _clip(net: LoweringContext, node: ir.Node) -> None:
    """Write Relu and Clip as a clamp."""
    x, layout = _single(net, node)
    low, high = 0, I32[1]
    if node.op_type == "Clip":
        low, high = _bounds_in_i32(*clip_ends(node))
    value = net.builder.emit("clamp", x, min=min(low, high), max=high)
    define_integral(net, node.outputs[0], value, layout)


def _bounds_in_i32(low: float, high: float) -> tuple[int, int]:
    """Return the bounds of a Clip, moved into i32."""
    if low > I32[1] or high < I32[0]:
        raise Unproven(
            "clamp.fits", f"limits {low:.0f}..{high:.0f} leave nothing of i32"
        )
    return int(min(max(low, I32[0]), I32[1])), int(
        min(max(high, I32[0]), I32[1])
    )


@integer_rule("Neg", "Abs", "Floor", "Ceil")
def _unary(net: LoweringContext, node: ir.Node) -> None:
    """Write Neg and Abs; Floor and Ceil leave integers as they are."""
    x, layout = _single(net, node)
    if node.op_type == "Neg":
        x = net.builder.emit("negate", x, input_zp=0, output_zp=0)
    elif node.op_type == "Abs":
        x = net.builder.emit("abs", x)
    define_integral(net, node.outputs[0], x, layout)


@integer_rule("Sign")
def _sign(net: LoweringContext, node: ir.Node) -> None:
    """Write -1, 0 or 1, by a clamp."""
    x, layout = _single(net, node)
    value = net.builder.emit("clamp", x, min=-1, max=1)
    define_integral(net, node.outputs[0], value, layout)


@integer_rule("ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(net: LoweringContext, node: ir.Node) -> None:
    """Write ReduceSum, ReduceMax or ReduceMin, axis by axis."""
    x, layout = _single(net, node)
    instruction = _INSTRUCTIONS[node.op_type]
    for axis in sorted(layout.index(axis) for axis in integers_of(node, 1)):
        x = net.builder.emit(instruction, x, axis=axis)
    define_integral(net, node.outputs[0], x, layout)


def _single(net: LoweringContext, node: ir.Node) -> tuple[Handle, Layout]:
    """Return the only operand in i32, and its layout."""
    tensor = net.as_computed(node.inputs[0])
    return net.cast_to(tensor, "i32").value, tensor.layout
