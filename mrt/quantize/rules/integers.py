"""Arithmetic of whole numbers (indices, counts, truths), exactly: the integers are the numbers, and nothing is rounded.

Values of integer types are always such; floats are where a cast or a comparison made them. A rule here goes before the one
of `rules.py` wherever every operand is whole.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import DTYPE_RANGES, IntArray
from mrt.errors import Unsupported
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import clip_ends, constant_of, integers_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, Rule, common_layout
from mrt.quantize.rules.elementwise import in_layout, operand_in_layout
from mrt.quantize.rules.registry import RULES
from mrt.quantize.tensor import Layout, Tensor

I32 = DTYPE_RANGES["i32"]
INTEGER_RULES: dict[str, Rule] = {}


def lower_integer(net: LoweringContext, node: ir.Node) -> bool:
    """Lower a node whose operands are all whole; False where there is no rule, or its i32 cannot be proven and another can."""
    _refuse_beyond_i32(node)
    if node.op_type not in INTEGER_RULES or not _takes_integer(net, node):
        return False
    try:
        INTEGER_RULES[node.op_type](net, node)
    except Unproven:
        if node.outputs[0].dtype != ir.DataType.FLOAT or node.op_type not in RULES:
            raise
        return False
    return True


def _takes_integer(net: LoweringContext, node: ir.Node) -> bool:
    """Whether every operand is whole; limits of a Clip may lie beyond i32, where they limit nothing."""
    if node.op_type != "Clip":
        return all(is_integer(net, value) for value in node.inputs)
    return is_integer(net, node.inputs[0]) and all(
        end == np.floor(end) for end in clip_ends(node)
    )


def _refuse_beyond_i32(node: ir.Node) -> None:
    """A constant of an integer type that i32 does not hold has no integers here; the ends of a Clip or Slice only limit."""
    if node.outputs[0].dtype in (
        ir.DataType.FLOAT,
        ir.DataType.BOOL,
    ) or node.op_type in ("Clip", "Slice"):
        return
    for value in node.inputs:
        array = constant_of(value)
        if array is not None and not fits_integer(array):
            raise Unsupported(
                [
                    f"{node.name} ({node.op_type}): a constant of {array.min():.0f}..{array.max():.0f} does not fit i32"
                ]
            )


def is_integer(net: LoweringContext, value: ir.Value | None) -> bool:
    """Whether a value, computed or constant, is represented by its own numbers; an operand left out is no hindrance."""
    if value is None:
        return True
    array = constant_of(value)
    if array is not None:
        return fits_integer(array)
    return net.as_computed(value).integral


def fits_integer(array: FloatArray) -> bool:
    """Whether a constant holds whole numbers of i32 alone."""
    return bool(
        np.all((array == np.floor(array)) & (array >= I32[0]) & (array <= I32[1]))
    )


def computed(net: LoweringContext, node: ir.Node) -> list[Tensor]:
    """The computed operands of a node, as their rules left them."""
    return [
        net.as_computed(value)
        for value in node.inputs
        if value is not None and constant_of(value) is None
    ]


def integer_operand(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Tensor:
    """A whole operand, computed or constant (in i32, or bool), in a layout, with leading axes where its rank is lower."""
    array = constant_of(value)
    if array is None:
        return operand_in_layout(net, value, net.as_computed(value), layout)
    assert value is not None
    integers: IntArray = array.astype(
        np.bool_ if value.dtype == ir.DataType.BOOL else np.int32
    )
    return Tensor(net.constant(in_layout(integers, layout)), np.ones(1), 0, layout)


def in_i32(net: LoweringContext, value: ir.Value | None, layout: Layout) -> Handle:
    """A whole operand in i32."""
    return net.cast_to(integer_operand(net, value, layout), "i32").value


_INSTRUCTIONS = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Max": "maximum",
    "Min": "minimum",
}


def _binary(net: LoweringContext, node: ir.Node) -> None:
    """The instruction of the same meaning on i32."""
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    left, right = (in_i32(net, value, layout) for value in node.inputs)
    shift = {"shift": 0} if node.op_type == "Mul" else {}
    _define(
        net,
        node,
        net.builder.emit(_INSTRUCTIONS[node.op_type], left, right, **shift),
        layout,
    )


def _clip(net: LoweringContext, node: ir.Node) -> None:
    """Relu and Clip: at once, by clamp."""
    x, layout = _single(net, node)
    low, high = 0, I32[1]
    if node.op_type == "Clip":
        ends = clip_ends(node)
        if ends[0] > I32[1] or ends[1] < I32[0]:
            raise Unproven(
                "clamp.fits",
                f"limits {ends[0]:.0f}..{ends[1]:.0f} leave nothing of i32",
            )
        low, high = (int(min(max(end, I32[0]), I32[1])) for end in ends)
    _define(
        net, node, net.builder.emit("clamp", x, min=min(low, high), max=high), layout
    )


def _unary(net: LoweringContext, node: ir.Node) -> None:
    """Neg, Abs, and Floor and Ceil, which leave whole numbers as they are."""
    x, layout = _single(net, node)
    if node.op_type == "Neg":
        x = net.builder.emit("negate", x, input_zp=0, output_zp=0)
    elif node.op_type == "Abs":
        x = net.builder.emit("abs", x)
    _define(net, node, x, layout)


def _sign(net: LoweringContext, node: ir.Node) -> None:
    """-1, 0 or 1: held between them."""
    x, layout = _single(net, node)
    _define(net, node, net.builder.emit("clamp", x, min=-1, max=1), layout)


def _reduce(net: LoweringContext, node: ir.Node) -> None:
    """ReduceSum, ReduceMax, ReduceMin, axis by axis."""
    x, layout = _single(net, node)
    instruction = {
        "ReduceSum": "reduce_sum",
        "ReduceMax": "reduce_max",
        "ReduceMin": "reduce_min",
    }[node.op_type]
    for axis in sorted(layout.index(axis) for axis in integers_of(node, 1)):
        x = net.builder.emit(instruction, x, axis=axis)
    _define(net, node, x, layout)


def _single(net: LoweringContext, node: ir.Node) -> tuple[Handle, Layout]:
    tensor = net.as_computed(node.inputs[0])
    return net.cast_to(tensor, "i32").value, tensor.layout


def _define(net: LoweringContext, node: ir.Node, value: Handle, layout: Layout) -> None:
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))


INTEGER_RULES |= dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), _binary)
INTEGER_RULES |= {"Sign": _sign, "Relu": _clip, "Clip": _clip}
INTEGER_RULES |= dict.fromkeys(("Neg", "Abs", "Floor", "Ceil"), _unary)
INTEGER_RULES |= dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), _reduce)
