"""The derivatives of the operators between images with channels.

A rule receives the derivative by a node's output, and adds to the graph the terms that
it contributes to the derivatives by the node's operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.values import (
    Attribute,
    constant,
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    operand,
    scalar,
    shape_of,
    string_attribute,
)

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class GradientWriter(Protocol):
    """The graph to which rules add."""

    def give(self, value: ir.Value, term: ir.Value) -> None:
        """Add one more term to the derivative by a value."""

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Attribute
    ) -> ir.Value:
        """Add a node; return its output."""

    def add_all(
        self,
        operator: str,
        count: int,
        *inputs: ir.Value | None,
        **attributes: Attribute,
    ) -> Iterator[ir.Value]:
        """Add a node with so many outputs; return its outputs."""

    def constant(self, array: Array) -> ir.Value:
        """Add a constant."""


DerivativeRule = Callable[[GradientWriter, ir.Node, ir.Value], bool]
"""A function that gives the operands of a node their terms of the derivative.

It computes them from the derivative by the node's output, and returns False if it
cannot.
"""


def _conv(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    weights = constant(operand(node, 1))
    input_shape = shape_of(node.inputs[0])
    output_shape = shape_of(node.outputs[0])
    if (
        weights is None
        or weights.ndim != 4
        or input_shape is None
        or output_shape is None
    ):
        return False
    gradient: ir.Value | None
    if ints_attribute(node, "strides") == (1, 1):
        gradient = _conv_by_conv(write, node, derivative, weights)
    else:
        sizes = input_shape[2:], output_shape[2:]
        gradient = _conv_by_transposed(write, node, derivative, sizes)
    if gradient is None:
        return False
    write.give(first(node), gradient)
    return True


def _conv_by_conv(
    write: GradientWriter, node: ir.Node, derivative: ir.Value, weights: Array
) -> ir.Value | None:
    """For strides of 1, write a convolution with the weights rotated.

    Return None where the node pads more than its window overlaps the border.
    """
    pads = ints_attribute(node, "pads")
    dilations = ints_attribute(node, "dilations")
    assert pads is not None and dilations is not None
    groups, kernel = int_attribute(node, "group", 1), weights.shape[2:]
    overlap = [
        (size - 1) * dilation
        for size, dilation in zip(kernel, dilations, strict=True)
    ]
    padding = tuple(overlap[axis % 2] - pads[axis] for axis in range(4))
    if min(padding) < 0:
        return None
    by_group = weights.reshape(groups, -1, *weights.shape[1:])
    flipped = by_group.swapaxes(1, 2)[..., ::-1, ::-1]
    flipped = np.ascontiguousarray(flipped).reshape(
        -1, len(weights) // groups, *kernel
    )
    return write.add(
        "Conv",
        derivative,
        write.constant(flipped),
        group=groups,
        pads=padding,
        dilations=dilations,
        strides=(1, 1),
    )


def _conv_by_transposed(
    write: GradientWriter,
    node: ir.Node,
    derivative: ir.Value,
    sizes: tuple[Shape, Shape],
) -> ir.Value:
    """For other strides, write a transposed convolution with the same weights.

    `sizes` are the height and the width of the node's input and of its output.
    """
    input_size, output_size = sizes
    kernel = (shape_of(node.inputs[1]) or ())[2:]
    strides, pads, dilations = (
        ints_attribute(node, name) for name in ("strides", "pads", "dilations")
    )
    assert strides is not None and pads is not None and dilations is not None
    missing: list[int] = []
    for axis in (0, 1):
        overlap = (kernel[axis] - 1) * dilations[axis]
        unpadded = (output_size[axis] - 1) * strides[axis] + overlap + 1
        computed = unpadded - pads[axis] - pads[axis + 2]
        missing.append(input_size[axis] - computed)
    return write.add(
        "ConvTranspose",
        derivative,
        node.inputs[1],
        group=int_attribute(node, "group", 1),
        pads=pads,
        dilations=dilations,
        strides=strides,
        output_padding=tuple(missing),
    )


def _gemm(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    weights = constant(operand(node, 1))
    if weights is None or int_attribute(node, "transA", 0):
        return False
    transposed = weights if int_attribute(node, "transB", 0) else weights.T
    factor = write.constant(np.ascontiguousarray(transposed))
    write.give(first(node), write.add("MatMul", derivative, factor))
    return True


def _clip(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    """Pass the derivative on, but 0 where the clip stops a number at a bound."""
    low: float | None = 0.0
    high: float | None = None
    if node.op_type == "Clip":
        low = scalar(operand(node, 1))
        high = scalar(operand(node, 2))
    for operator, bound in (("Greater", low), ("Less", high)):
        if bound is not None:
            limit = write.constant(np.array(bound, np.float32))
            within = write.add(operator, node.outputs[0], limit)
            factor = write.add("Cast", within, to=int(ir.DataType.FLOAT))
            derivative = write.add("Mul", derivative, factor)
    write.give(first(node), derivative)
    return True


def _sum(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    def same() -> ir.Value:
        return derivative

    return _give_operand(write, node, 0, same) and _give_operand(
        write, node, 1, same
    )


def _difference(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    def same() -> ir.Value:
        return derivative

    def negative() -> ir.Value:
        return write.add("Neg", derivative)

    return _give_operand(write, node, 0, same) and _give_operand(
        write, node, 1, negative
    )


def _product(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    def times_second() -> ir.Value:
        return write.add("Mul", derivative, node.inputs[1])

    def times_first() -> ir.Value:
        return write.add("Mul", derivative, node.inputs[0])

    return _give_operand(write, node, 0, times_second) and _give_operand(
        write, node, 1, times_first
    )


def _give_operand(
    write: GradientWriter,
    node: ir.Node,
    index: int,
    term: Callable[[], ir.Value],
) -> bool:
    """Give one operand its term, unless it is a constant.

    An operand that was broadcast gets the sum over its copies.
    """
    value = node.inputs[index]
    assert value is not None
    if value.const_value is not None:
        return True
    input_shape = shape_of(value)
    output_shape = shape_of(node.outputs[0])
    if input_shape is None or output_shape is None:
        return False
    gradient = term()
    if input_shape != output_shape:
        axes = write.constant(
            np.array(_broadcast_axes(input_shape, output_shape), np.int64)
        )
        gradient = write.add("ReduceSum", gradient, axes, keepdims=1)
        gradient = _reshaped(write, gradient, input_shape)
    write.give(value, gradient)
    return True


def _broadcast_axes(input_shape: Shape, output_shape: Shape) -> list[int]:
    """Return the axes of the output along which an operand of this shape is repeated."""
    aligned = (1,) * (len(output_shape) - len(input_shape)) + input_shape
    return [
        axis for axis, size in enumerate(output_shape) if aligned[axis] != size
    ]


def _concat(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    axis = int_attribute(node, "axis", 0)
    sizes: list[int] = []
    for value in node.inputs:
        shape = shape_of(value)
        if shape is None:
            return False
        sizes.append(shape[axis])
    lengths = write.constant(np.array(sizes))
    terms = write.add_all("Split", len(sizes), derivative, lengths, axis=axis)
    for value, term in zip(node.inputs, terms, strict=True):
        if value is not None and value.const_value is None:
            write.give(value, term)
    return True


def _max_pool(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    """Pass the derivative to the greatest number of each window.

    Of equal greatest numbers in a window, only one gets it.
    """
    input_shape = shape_of(node.inputs[0])
    if input_shape is None or int_attribute(node, "storage_order", 0):
        return False
    attributes: dict[str, Attribute] = {
        "ceil_mode": int_attribute(node, "ceil_mode", 0)
    }
    for name in ("kernel_shape", "strides", "pads", "dilations"):
        integers = ints_attribute(node, name)
        if integers is not None:
            attributes[name] = integers
    _, places = write.add_all("MaxPool", 2, node.inputs[0], **attributes)
    ones = (1,) * (len(input_shape) - 2)
    shape = write.constant(np.array(input_shape, np.int64))
    gradient = write.add(
        "MaxUnpool", derivative, places, shape, kernel_shape=ones, strides=ones
    )
    write.give(first(node), gradient)
    return True


def _reduce_sum(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    input_shape = shape_of(node.inputs[0])
    axes = constant_integers(operand(node, 1))
    if input_shape is None or axes is None:
        return False
    kept = list(input_shape)
    for axis in axes:
        kept[axis] = 1
    derivative = _reshaped(write, derivative, kept)
    shape = write.constant(np.array(input_shape, np.int64))
    write.give(first(node), write.add("Expand", derivative, shape))
    return True


def _reshape(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    input_shape = shape_of(node.inputs[0])
    if input_shape is None:
        return False
    write.give(first(node), _reshaped(write, derivative, input_shape))
    return True


def _transpose(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    perm = ints_attribute(node, "perm")
    if perm is None:
        return False
    inverse = tuple(int(axis) for axis in np.argsort(perm))
    write.give(first(node), write.add("Transpose", derivative, perm=inverse))
    return True


def _slice(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    """Pass the derivative back to the positions that were taken, with zeros at the others."""
    input_shape = shape_of(node.inputs[0])
    output_shape = shape_of(node.outputs[0])
    starts, axes, steps = (
        constant_integers(operand(node, index)) for index in (1, 3, 4)
    )
    if input_shape is None or output_shape is None:
        return False
    if starts is None or axes is None or steps is None or min(steps) < 1:
        return False
    shape = list(output_shape)
    for axis, start, step in zip(axes, starts, steps, strict=True):
        place = axis % len(input_shape)
        size = input_shape[place]
        begin = max(start + size, 0) if start < 0 else min(start, size)
        derivative = _spread(
            write, derivative, shape=shape, axis=place, step=step
        )
        span = shape[place] * step
        zeros = begin, size - begin - span
        derivative = _padded(
            write, derivative, rank=len(input_shape), axis=place, zeros=zeros
        )
        shape[place] = size
    write.give(first(node), derivative)
    return True


def _spread(
    write: GradientWriter,
    value: ir.Value,
    *,
    shape: Sequence[int],
    axis: int,
    step: int,
) -> ir.Value:
    """Put `step` - 1 zeros behind each index of one axis of a value of this shape."""
    before, behind = shape[: axis + 1], shape[axis + 1 :]
    value = _reshaped(write, value, [*before, 1, *behind])
    zeros = 0, step - 1
    value = _padded(
        write, value, rank=len(shape) + 1, axis=axis + 1, zeros=zeros
    )
    spread = shape[axis] * step
    return _reshaped(write, value, [*shape[:axis], spread, *behind])


def _padded(
    write: GradientWriter,
    value: ir.Value,
    *,
    rank: int,
    axis: int,
    zeros: tuple[int, int],
) -> ir.Value:
    """Add so many zeros on either side of one axis; a negative number removes elements."""
    pads = np.zeros((2, rank), np.int64)
    pads[:, axis] = zeros
    return write.add("Pad", value, write.constant(pads.reshape(-1)))


def _pad(write: GradientWriter, node: ir.Node, derivative: ir.Value) -> bool:
    pads = constant_integers(operand(node, 1))
    is_constant = string_attribute(node, "mode", "constant") == "constant"
    if pads is None or not is_constant or operand(node, 3) is not None:
        return False
    negative = write.constant(-np.array(pads, np.int64))
    write.give(first(node), write.add("Pad", derivative, negative))
    return True


def _reshaped(
    write: GradientWriter, value: ir.Value, shape: Sequence[int]
) -> ir.Value:
    sizes = write.constant(np.array(shape, np.int64))
    return write.add("Reshape", value, sizes)


def _sigmoid(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    result = node.outputs[0]
    one = write.constant(np.array(1, np.float32))
    slope = write.add("Mul", result, write.add("Sub", one, result))
    write.give(first(node), write.add("Mul", derivative, slope))
    return True


def _softmax(
    write: GradientWriter, node: ir.Node, derivative: ir.Value
) -> bool:
    """Pass the derivative on as if there were no Softmax.

    Softmax keeps the order of the classes, but in its outputs differences near 0 and 1
    vanish.
    """
    write.give(first(node), derivative)
    return True


RULES: dict[str, DerivativeRule] = {
    "Add": _sum,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "Gemm": _gemm,
    "MaxPool": _max_pool,
    "Mul": _product,
    "Pad": _pad,
    "ReduceSum": _reduce_sum,
    "Relu": _clip,
    "Reshape": _reshape,
    "Sigmoid": _sigmoid,
    "Slice": _slice,
    "Softmax": _softmax,
    "Sub": _difference,
    "Transpose": _transpose,
}
