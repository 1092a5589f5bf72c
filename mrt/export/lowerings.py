"""How operators of opset 20 are written in an older (or, where their meaning changed, a newer) opset."""

from __future__ import annotations

import math
from collections.abc import Callable
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


class RefusalError(Exception):
    """Why a node cannot be written in this opset."""


@dataclass(frozen=True)
class LoweringContext:
    """`lower` rewrites a node of one of the operators for an opset below `since` (or from `until` on)."""

    operators: tuple[str, ...]
    since: int
    lower: Callable[[ir.Node, int], None]
    until: int = 10**6

    def applies(self, opset: int) -> bool:
        """Whether this opset needs it."""
        return opset < self.since or opset >= self.until


def _axes_to_attribute(node: ir.Node, opset: int) -> None:
    """The second operand was the attribute `axes`."""
    axes = operand(node, 1)
    values = constant_integers(axes)
    if axes is not None and values is None:
        raise RefusalError("its axes are computed")
    if not values and int_attribute(node, "noop_with_empty_axes", 0):
        raise RefusalError("noop_with_empty_axes=1")
    drop_attributes(node, "noop_with_empty_axes")
    node.resize_inputs(1)
    if values:
        set_attributes(node, axes=values)


def _write_split(node: ir.Node, opset: int) -> None:
    """Sizes were written out, before opset 13 in an attribute."""
    sizes = constant_integers(operand(node, 1))
    if operand(node, 1) is None:
        shape = shape_of(first(node))
        if shape is None:
            raise RefusalError("its shape is not known")
        total, count = (
            shape[int_attribute(node, "axis", 0) % len(shape)],
            len(node.outputs),
        )
        size = -(-total // count)
        sizes = tuple(max(min(size, total - index * size), 0) for index in range(count))
    if sizes is None:
        raise RefusalError("its sizes are computed")
    drop_attributes(node, "num_outputs")
    if opset < 13:
        node.resize_inputs(1)
        set_attributes(node, split=sizes)
    elif operand(node, 1) is None:
        value = Patch(node, node.outputs[0]).constant(
            np.array(sizes, np.int64), "sizes"
        )
        node.resize_inputs(2)
        node.replace_input_with(1, value)


def _write_pads(node: ir.Node, opset: int) -> None:
    """Pads were given for all axes."""
    axes, pads, rank = (
        constant_integers(operand(node, 3)),
        constant_integers(operand(node, 1)),
        rank_of(first(node)),
    )
    if operand(node, 3) is None:
        return
    if axes is None or pads is None or rank is None:
        raise RefusalError("its axes are computed")
    whole = [0] * (2 * rank)
    for index, axis in enumerate(axes):
        whole[axis % rank], whole[axis % rank + rank] = (
            pads[index],
            pads[index + len(axes)],
        )
    node.replace_input_with(1, Patch(node).constant(np.array(whole, np.int64), "pads"))
    node.resize_inputs(3)


def _write_resize(node: ir.Node, opset: int) -> None:
    """Sizes or scales were given for all axes; before opset 13 what is left out was an empty list."""
    axes, shape = ints_attribute(node, "axes"), shape_of(first(node))
    if axes is not None and shape is not None and axes != tuple(range(len(shape))):
        _resize_all_axes(node, axes, shape)
    drop_attributes(node, "axes")
    if opset < 13:
        empty = Patch(node).constant(np.zeros(0, np.float32), "none")
        for index in (1, 2):
            if operand(node, index) is None:
                node.replace_input_with(index, empty)


def _resize_all_axes(
    node: ir.Node, axes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    for index, whole in ((2, [1.0] * len(shape)), (3, list(shape))):
        value = operand(node, index)
        if value is None:
            continue
        if value.const_value is None:
            raise RefusalError("its sizes are computed")
        for axis, size in zip(axes, value.const_value.numpy().tolist(), strict=True):
            whole[axis % len(shape)] = size
        array = np.array(whole, value.const_value.numpy().dtype)
        node.replace_input_with(index, Patch(node).constant(array, "sizes"))


def _write_gelu(node: ir.Node, opset: int) -> None:
    """x / 2 * (1 + erf(x / sqrt 2)), or the formula with tanh."""
    patch, x = Patch(node), first(node)

    def number(value: float, role: str) -> ir.Value:
        return patch.constant(np.array(value, np.float32), role)

    if string_attribute(node, "approximate", "none") == "tanh":
        cubed = patch.add(
            "Mul",
            patch.add("Mul", x, x),
            patch.add("Mul", x, number(0.044715, "cubic")),
        )
        scaled = patch.add(
            "Mul", patch.add("Add", x, cubed), number(math.sqrt(2 / math.pi), "scale")
        )
        inner = patch.add("Tanh", scaled)
    else:
        inner = patch.add("Erf", patch.add("Mul", x, number(math.sqrt(0.5), "scale")))
    above = patch.add("Add", inner, number(1, "one"))
    patch.finish(patch.add("Mul", patch.add("Mul", x, number(0.5, "half")), above))


def _write_layer_normalization(node: ir.Node, opset: int) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias."""
    patch, x = Patch(node), first(node)
    rank = rank_of(x)
    if rank is None:
        raise RefusalError("its rank is not known")
    axes = tuple(range(int_attribute(node, "axis", -1) % rank, rank))
    centred = patch.add("Sub", x, patch.add("ReduceMean", x, axes=axes, keepdims=1))
    variance = patch.add(
        "ReduceMean", patch.add("Mul", centred, centred), axes=axes, keepdims=1
    )
    epsilon = patch.constant(
        np.array(float_attribute(node, "epsilon", 1e-5), np.float32), "epsilon"
    )
    result = patch.add(
        "Div", centred, patch.add("Sqrt", patch.add("Add", variance, epsilon))
    )
    for index, operator in ((1, "Mul"), (2, "Add")):
        value = operand(node, index)
        result = result if value is None else patch.add(operator, result, value)
    patch.finish(result)


def _write_group_normalization(node: ir.Node, opset: int) -> None:
    """InstanceNormalization over the groups, each flattened; the scale is one per group, as up to opset 20."""
    patch, x, shape = Patch(node), first(node), shape_of(first(node))
    if shape is None:
        raise RefusalError("its shape is not known")
    groups = int_attribute(node, "num_groups", 1)
    flat = patch.add("Reshape", x, patch.axes([0, groups, -1], "groups"))
    epsilon = float_attribute(node, "epsilon", 1e-5)
    result = patch.add(
        "InstanceNormalization",
        flat,
        operand(node, 1),
        operand(node, 2),
        epsilon=epsilon,
    )
    patch.finish(patch.add("Reshape", result, patch.axes([0, *shape[1:]], "shape")))


def _write_hard_swish(node: ir.Node, opset: int) -> None:
    patch, x = Patch(node), first(node)
    patch.finish(
        patch.add("Mul", x, patch.add("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    )


def _write_mish(node: ir.Node, opset: int) -> None:
    patch, x = Patch(node), first(node)
    patch.finish(patch.add("Mul", x, patch.add("Tanh", patch.add("Softplus", x))))


def _write_softmax(node: ir.Node, opset: int) -> None:
    """Before opset 13 all axes from the given one on were one: the last axis is the only one that means the same."""
    rank = rank_of(first(node))
    if rank is None:
        raise RefusalError("its rank is not known")
    axis = int_attribute(node, "axis", -1) % rank
    if axis == rank - 1:
        set_attributes(node, axis=axis)
        return
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    patch = Patch(node)
    moved = patch.add("Transpose", first(node), perm=tuple(order))
    patch.finish(
        patch.add(
            "Transpose",
            patch.add(node.op_type, moved, axis=rank - 1),
            perm=tuple(order),
        )
    )


def _write_not_less(node: ir.Node, opset: int) -> None:
    """a >= b is not a < b (of numbers that are numbers)."""
    patch = Patch(node)
    opposite = "Less" if node.op_type == "GreaterOrEqual" else "Greater"
    patch.finish(patch.add("Not", patch.add(opposite, *node.inputs)))


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip

# In this order: what expands into another operator comes before that one.
LOWERINGS = (
    LoweringContext(("Gelu",), 20, _write_gelu),
    LoweringContext(("GroupNormalization",), 18, _write_group_normalization, until=21),
    LoweringContext(("Mish",), 18, _write_mish),
    LoweringContext(REDUCTIONS, 18, _axes_to_attribute),
    LoweringContext(("LayerNormalization",), 17, _write_layer_normalization),
    LoweringContext(("HardSwish",), 14, _write_hard_swish),
    LoweringContext(("Split",), 18, _write_split),
    LoweringContext(("Pad",), 18, _write_pads),
    LoweringContext(("Resize",), 18, _write_resize),
    LoweringContext(("ReduceSum", "Squeeze", "Unsqueeze"), 13, _axes_to_attribute),
    LoweringContext(("Softmax", "LogSoftmax"), 13, _write_softmax),
    LoweringContext(("GreaterOrEqual", "LessOrEqual"), 12, _write_not_less),
)
