"""Rewrites operators of opset 20 for an older opset, or a newer one where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, drop_attributes, set_attributes
from mrt.graph.values import (
    constant_integers,
    first,
    float_attribute,
    int_attribute,
    ints_attribute,
    operand,
    rank_of,
    shape_of,
    string_attribute,
)

Integers = tuple[int, ...]


class NotExpressible(Exception):
    """The reason why a node cannot be written in this opset."""


@dataclass(frozen=True)
class OpsetChange:
    """The change of these operators' nodes below opset `since`, or from `until` on."""

    operators: tuple[str, ...]
    since: int
    lower: Callable[[ir.Node, int], None]
    until: int = 10**6

    def applies(self, opset: int) -> bool:
        """Whether nodes have to change for this opset."""
        return opset < self.since or opset >= self.until


def _axes_to_attribute(node: ir.Node, opset: int) -> None:
    """Write the second operand as the attribute `axes`, which it was before."""
    axes = operand(node, 1)
    values = constant_integers(axes)
    if axes is not None and values is None:
        raise NotExpressible("its axes are computed")
    if not values and int_attribute(node, "noop_with_empty_axes", 0):
        raise NotExpressible("noop_with_empty_axes=1")
    drop_attributes(node, "noop_with_empty_axes")
    node.resize_inputs(1)
    if values:
        set_attributes(node, axes=values)


def _write_split(node: ir.Node, opset: int) -> None:
    """Write the sizes of all outputs; before opset 13 they were an attribute."""
    sizes_operand = operand(node, 1)
    sizes = (
        _equal_sizes(node)
        if sizes_operand is None
        else constant_integers(sizes_operand)
    )
    if sizes is None:
        raise NotExpressible("its sizes are computed")
    drop_attributes(node, "num_outputs")
    if opset < 13:
        node.resize_inputs(1)
        set_attributes(node, split=sizes)
    elif sizes_operand is None:
        patch = Patch(node, node.outputs[0])
        value = patch.axes(sizes, "sizes")
        node.resize_inputs(2)
        node.replace_input_with(1, value)


def _equal_sizes(node: ir.Node) -> Integers:
    """Return equal sizes for all outputs; the last may be smaller."""
    shape = shape_of(first(node))
    if shape is None:
        raise NotExpressible("its shape is not known")
    axis = int_attribute(node, "axis", 0) % len(shape)
    count = len(node.outputs)
    size = -(-shape[axis] // count)
    remaining = [shape[axis] - index * size for index in range(count)]
    return tuple(max(min(size, rest), 0) for rest in remaining)


def _write_pads(node: ir.Node, opset: int) -> None:
    """Write pads for all axes, where only some axes have them."""
    if operand(node, 3) is None:
        return
    axes = constant_integers(operand(node, 3))
    pads = constant_integers(operand(node, 1))
    rank = rank_of(first(node))
    if axes is None or pads is None or rank is None:
        raise NotExpressible("its axes are computed")
    begins = [0] * rank
    ends = [0] * rank
    for index, axis in enumerate(axes):
        begins[axis % rank] = pads[index]
        ends[axis % rank] = pads[index + len(axes)]
    value = Patch(node).axes(begins + ends, "pads")
    node.replace_input_with(1, value)
    node.resize_inputs(3)


def _write_resize(node: ir.Node, opset: int) -> None:
    """Write sizes or scales for all axes.

    Before opset 13 an empty list stood for the one that is absent.
    """
    axes = ints_attribute(node, "axes")
    shape = shape_of(first(node))
    if axes is not None and shape is not None:
        rank = len(shape)
        if axes != tuple(range(rank)):
            _resize_all_axes(node, 2, axes, (1.0,) * rank)
            _resize_all_axes(node, 3, axes, shape)
    drop_attributes(node, "axes")
    if opset < 13:
        nothing = np.zeros(0, np.float32)
        empty = Patch(node).constant(nothing, "none")
        for index in (1, 2):
            if operand(node, index) is None:
                node.replace_input_with(index, empty)


def _resize_all_axes(
    node: ir.Node, index: int, axes: Integers, unchanged: Sequence[float]
) -> None:
    """Complete an operand with the numbers of the axes that do not change."""
    value = operand(node, index)
    if value is None:
        return
    if value.const_value is None:
        raise NotExpressible("its sizes are computed")
    array = value.const_value.numpy()
    numbers = list(unchanged)
    for position, axis in enumerate(axes):
        numbers[axis % len(numbers)] = array[position].item()
    complete = np.array(numbers, array.dtype)
    operand_of_all = Patch(node).constant(complete, "sizes")
    node.replace_input_with(index, operand_of_all)


def _number(patch: Patch, value: float, role: str) -> ir.Value:
    return patch.constant(np.array(value, np.float32), role)


def _write_gelu(node: ir.Node, opset: int) -> None:
    """Rewrite Gelu(x) as x / 2 * (1 + erf(x / sqrt 2)), or as the formula with tanh."""
    patch = Patch(node)
    x = first(node)
    if string_attribute(node, "approximate", "none") == "tanh":
        inner = _gelu_by_tanh(patch, x)
    else:
        scale = _number(patch, math.sqrt(0.5), "scale")
        scaled = patch.add("Mul", x, scale)
        inner = patch.add("Erf", scaled)
    one = _number(patch, 1, "one")
    above = patch.add("Add", inner, one)
    half = _number(patch, 0.5, "half")
    halved = patch.add("Mul", x, half)
    result = patch.add("Mul", halved, above)
    patch.finish(result)


def _gelu_by_tanh(patch: Patch, x: ir.Value) -> ir.Value:
    """Write tanh(sqrt(2 / pi) * (x + 0.044715 x^3))."""
    squared = patch.add("Mul", x, x)
    factor = _number(patch, 0.044715, "cubic")
    scaled = patch.add("Mul", x, factor)
    cubed = patch.add("Mul", squared, scaled)
    total = patch.add("Add", x, cubed)
    scale = _number(patch, math.sqrt(2 / math.pi), "scale")
    argument = patch.add("Mul", total, scale)
    return patch.add("Tanh", argument)


def _write_layer_normalization(node: ir.Node, opset: int) -> None:
    """Rewrite LayerNormalization as (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    patch = Patch(node)
    x = first(node)
    rank = rank_of(x)
    if rank is None:
        raise NotExpressible("its rank is not known")
    start = int_attribute(node, "axis", -1) % rank
    axes = tuple(range(start, rank))
    mean = patch.add("ReduceMean", x, axes=axes, keepdims=1)
    centred = patch.add("Sub", x, mean)
    squared = patch.add("Mul", centred, centred)
    variance = patch.add("ReduceMean", squared, axes=axes, keepdims=1)
    least = float_attribute(node, "epsilon", 1e-5)
    epsilon = _number(patch, least, "epsilon")
    shifted = patch.add("Add", variance, epsilon)
    deviation = patch.add("Sqrt", shifted)
    result = patch.add("Div", centred, deviation)
    for index, operator in ((1, "Mul"), (2, "Add")):
        value = operand(node, index)
        if value is not None:
            result = patch.add(operator, result, value)
    patch.finish(result)


def _write_group_normalization(node: ir.Node, opset: int) -> None:
    """Rewrite GroupNormalization as InstanceNormalization over the flattened groups.

    The scale is one number per group, as up to opset 20.
    """
    patch = Patch(node)
    x = first(node)
    shape = shape_of(x)
    if shape is None:
        raise NotExpressible("its shape is not known")
    groups = int_attribute(node, "num_groups", 1)
    grouped = patch.axes([0, groups, -1], "groups")
    flat = patch.add("Reshape", x, grouped)
    normalized = patch.add(
        "InstanceNormalization",
        flat,
        operand(node, 1),
        operand(node, 2),
        epsilon=float_attribute(node, "epsilon", 1e-5),
    )
    original = patch.axes([0, *shape[1:]], "shape")
    result = patch.add("Reshape", normalized, original)
    patch.finish(result)


def _write_hard_swish(node: ir.Node, opset: int) -> None:
    """Rewrite HardSwish(x) as x * HardSigmoid(x), with alpha 1/6 and beta 1/2."""
    patch = Patch(node)
    x = first(node)
    gate = patch.add("HardSigmoid", x, alpha=1 / 6, beta=0.5)
    result = patch.add("Mul", x, gate)
    patch.finish(result)


def _write_mish(node: ir.Node, opset: int) -> None:
    """Rewrite Mish(x) as x * tanh(softplus(x))."""
    patch = Patch(node)
    x = first(node)
    softplus = patch.add("Softplus", x)
    gate = patch.add("Tanh", softplus)
    result = patch.add("Mul", x, gate)
    patch.finish(result)


def _write_softmax(node: ir.Node, opset: int) -> None:
    """Move the axis to the last place.

    Before opset 13 the operator joined all axes from the given one on, so that only the
    last axis has the same meaning.
    """
    rank = rank_of(first(node))
    if rank is None:
        raise NotExpressible("its rank is not known")
    axis = int_attribute(node, "axis", -1) % rank
    if axis == rank - 1:
        set_attributes(node, axis=axis)
        return
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    swap = tuple(order)
    patch = Patch(node)
    moved = patch.add("Transpose", first(node), perm=swap)
    result = patch.add(node.op_type, moved, axis=rank - 1)
    restored = patch.add("Transpose", result, perm=swap)
    patch.finish(restored)


def _write_not_less(node: ir.Node, opset: int) -> None:
    """Rewrite a >= b as not a < b, which is the same for all numbers but NaN."""
    patch = Patch(node)
    opposite = "Less" if node.op_type == "GreaterOrEqual" else "Greater"
    is_opposite = patch.add(opposite, *node.inputs)
    result = patch.add("Not", is_opposite)
    patch.finish(result)


REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)

# The order matters: an operator that expands into another one comes before that one.
OPSET_CHANGES = (
    OpsetChange(("Gelu",), 20, _write_gelu),
    OpsetChange(
        ("GroupNormalization",), 18, _write_group_normalization, until=21
    ),
    OpsetChange(("Mish",), 18, _write_mish),
    OpsetChange(REDUCTIONS, 18, _axes_to_attribute),
    OpsetChange(("LayerNormalization",), 17, _write_layer_normalization),
    OpsetChange(("HardSwish",), 14, _write_hard_swish),
    OpsetChange(("Split",), 18, _write_split),
    OpsetChange(("Pad",), 18, _write_pads),
    OpsetChange(("Resize",), 18, _write_resize),
    OpsetChange(("ReduceSum", "Squeeze", "Unsqueeze"), 13, _axes_to_attribute),
    OpsetChange(("Softmax", "LogSoftmax"), 13, _write_softmax),
    OpsetChange(("GreaterOrEqual", "LessOrEqual"), 12, _write_not_less),
)
